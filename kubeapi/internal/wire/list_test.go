package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// plainFields encodes fields as their names and values.
type plainFields struct{}

func (plainFields) AppendField(encoded []byte, name string, value []byte) []byte {
	return append(append(encoded, name...), value...)
}

func (plainFields) DecodeFields([]byte, Limits, runtime.Object) error { return nil }

func TestFieldsAreKeptOnlyForAStatusAndWithinTheLimitOfAValue(t *testing.T) {
	limits := Limits{ValueBytes: 100, TokenBytes: 10}
	half := []byte(strings.Repeat("x", 60))

	header := NewListHeader(limits, plainFields{})
	header.KeepForStatus("message", half)
	header.KeepForStatus("unknown", half)
	header.KeepForStatus("reason", half)
	require.Equal(t, "message"+string(half), string(header.statusFields))

	require.NoError(t, header.SetKind("PodList"))
	header.KeepForStatus("code", nil)
	require.Empty(t, header.statusFields)

	header = NewListHeader(limits, plainFields{})
	header.KeepForStatus("message", half)
	require.NoError(t, header.Begin("items"))
	require.Empty(t, header.statusFields)
	header.KeepForStatus("code", half)
	require.Empty(t, header.statusFields)
}
