package kubeapi

import (
	"encoding/binary"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allocatedBy is what a function allocates in all.
func allocatedBy(call func()) int {
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	call()
	goruntime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// emptyMaps is a CBOR array of about so many bytes.
func emptyMaps(size int) string {
	return "\x9a" + string(binary.BigEndian.AppendUint32(nil, uint32(size))) + strings.Repeat("\xa0", size)
}

// Fails if whether bytes are well-formed CBOR is found out by decoding them without a limit.
func TestACBOREventThatCannotBeDecodedTakesNoMoreThan256MiB(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		fields []string
	}{
		"an array":                        {emptyMaps(15 << 20), nil},
		"a bad string beside many values": {"\xa2\x41a" + emptyMaps(15<<20) + "\x44spec\x61\xff", []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := "\xa2\x44type\x45ADDED\x46object" + test.object
			source := newSourceOf(t, answers(200, body, "Content-Type", "application/cbor-seq"),
				Options{Encodings: []Encoding{CBOR}, Fields: test.fields})
			bytes := allocatedBy(func() {
				watching, err := source.Watch(metav1.ListOptions{})
				require.NoError(t, err)
				defer watching.Stop()
				status, ok := (<-watching.ResultChan()).Object.(*metav1.Status)
				require.True(t, ok)
				require.Equal(t, CauseBadFrame, status.Details.Causes[0].Type)
			})
			require.Less(t, bytes, mostAllocated)
		})
	}
}
