package wiretest

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// RequireList requires that a body has a list, in whichever pieces it arrives.
func RequireList(t *testing.T, encoding wire.Encoding, body []byte, want *carp.CarpList, limits wire.Limits) {
	for name, deliver := range Deliveries {
		t.Run(name, func(t *testing.T) {
			got := ReadList(encoding, deliver(bytes.NewReader(body)), limits)
			require.Equal(t, io.EOF, got.Err)
			require.Equal(t, wire.Header{TypeMeta: want.TypeMeta, ListMeta: want.ListMeta}, got.Header)
			require.Len(t, got.Items, len(want.Items))
			for i, raw := range got.Items {
				object := &carp.Carp{}
				require.NoError(t, encoding.Into(raw, limits, object))
				require.Equal(t, &want.Items[i], object)
			}
		})
	}
}

// BenchmarkList measures how fast the items are cut out of a list.
func BenchmarkList(b *testing.B, encoding wire.Encoding, body []byte, limits wire.Limits) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		list := encoding.List(bytes.NewReader(body), limits)
		var err error
		for err == nil {
			_, err = list.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
