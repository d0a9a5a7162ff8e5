//go:build unix

package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe, such as a shell makes for <(command), delivers its token to the first request and nothing
// to the second. Without a writer it blocks the first.
func TestATokenFileThatIsNotRegularIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for name, path := range map[string]string{
		"a pipe":      pipe,
		"a device":    os.DevNull,
		"a directory": t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://h", nil)
			err := BearerTokenFile(path)(r)
			require.EqualError(
				t, err,
				"bearer token: "+path+" is "+name+"; it must be a regular file, because it is read repeatedly",
			)
		})
	}
}

func TestATokenFileMayBeALink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.Symlink(file(t, "linked"), link))
	require.Equal(t, "Bearer linked", authorized(t, BearerTokenFile(link)))
}

// Opening a pipe blocks until there is a writer.
func TestACAFileThatBecomesAPipeBlocksNothing(t *testing.T) {
	path := file(t, newAuthority(t, "one").pem())
	trust, err := newCAFileTransport(path, &http.Transport{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	require.ErrorContains(t, trust.reload(), path+" is a pipe")
}

// A shell makes such a pipe for <(command).
func TestACAThatCameThroughAPipeIsReadOnce(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	written := make(chan error, 1)
	ca := newAuthority(t, "one").pem()
	go func() { written <- os.WriteFile(pipe, []byte(ca), 0o600) }()
	trust, err := newCAFileTransport(pipe, &http.Transport{})
	require.NoError(t, err)
	require.NoError(t, <-written)
	require.NoError(t, trust.reload())
}
