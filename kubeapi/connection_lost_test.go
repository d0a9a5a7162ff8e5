package kubeapi

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// Fails if only some texts of errors count: the kernel ends a dead connection with ETIMEDOUT, which
// has none of them.
func TestAConnectionThatFailsBeforeTheHeadersIsLost(t *testing.T) {
	for _, cause := range []error{
		syscall.ETIMEDOUT, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH,
	} {
		for _, operation := range []string{"read", "write"} {
			t.Run(operation+" "+cause.Error(), func(t *testing.T) {
				failed := &net.OpError{
					Op:  operation,
					Net: "tcp",
					Err: os.NewSyscallError(operation, cause),
				}
				source := newSource(
					t, server(func(*http.Request) (*http.Response, error) { return nil, failed }))
				_, err := source.List(metav1.ListOptions{})
				require.Equal(t, cache.CauseConnectionLost, cache.CauseOf(err), "%v", err)
				_, err = source.Watch(metav1.ListOptions{})
				require.Equal(t, cache.CauseConnectionLost, cache.CauseOf(err), "%v", err)
			})
		}
	}
}

func TestAConnectionThatCannotBeMadeIsNotLost(t *testing.T) {
	failed := &net.OpError{
		Op:  "dial",
		Net: "tcp",
		Err: os.NewSyscallError("connect", syscall.ETIMEDOUT),
	}
	source := newSource(
		t, server(func(*http.Request) (*http.Response, error) { return nil, failed }))
	_, err := source.List(metav1.ListOptions{})
	require.Equal(t, cache.CauseUnreachable, cache.CauseOf(err), "%v", err)
}
