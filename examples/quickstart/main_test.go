package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

// ran is what a run of the program came to.
type ran struct {
	code           int
	stdout, stderr string
}

func runWith(ctx context.Context, args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// This is the command of the README over a real socket, shortened: the cut comes
// after a third of the time and lasts as long as always. It fails if the network is
// not cut, does not come back, or the mirror loses anything by it.
func TestTheCommandSurvivesTheCutOverARealSocket(t *testing.T) {
	t.Parallel()
	got := runWith(t.Context(), "-for", "3s")

	require.Equal(t, exitEqual, got.code, "stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
	require.Empty(t, got.stderr)
	require.Regexp(t, `✗ failure reported, cause "cut"`, got.stdout)
	require.Regexp(t, `✗ failure reported, cause "refused"`, got.stdout)
	require.Contains(t, got.stdout, "without a list")
	require.Contains(t, got.stdout, "nothing is lost")
	require.Regexp(t, `mirror equals the source: \d+ objects, version \d+\n`, got.stdout)
	require.NotContains(t, got.stdout, "\x1b", "no colours and no cursor tricks where there is no terminal")
	require.NotContains(t, got.stdout, "\r")
}

func TestAnAddressWithoutAnAPIIsRefusedAtOnceWithAClearMessage(t *testing.T) {
	t.Parallel()
	page := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = w.Write([]byte("<html>hello</html>"))
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"a web page":          {page(http.StatusOK), "not a Kubernetes-style API"},
		"no such page":        {page(http.StatusNotFound), "404"},
		"a page for a login":  {page(http.StatusUnauthorized), "-token-file"},
		"a page that forbids": {page(http.StatusForbidden), "403"},
		"a redirection": {http.RedirectHandler("http://elsewhere.example/", http.StatusFound).ServeHTTP,
			"another address"},
		"JSON of its own": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"hello": "world"}`))
		}, "not a Kubernetes-style API"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.handler)
			defer server.Close()
			started := time.Now()
			got := runWith(t.Context(), "-server", server.URL)
			require.Equal(t, exitFailed, got.code)
			require.Contains(t, got.stderr, "cannot mirror pods from "+server.URL)
			require.Contains(t, got.stderr, test.says)
			require.Less(t, time.Since(started), 3*time.Second, "it is not to try again")
		})
	}
}

func TestAServerWithAnUnknownCertificateIsRefusedAndWithItsCAAccepted(t *testing.T) {
	t.Parallel()
	source := cachetest.NewSource(cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}})
	defer source.Close()
	server := httptest.NewTLSServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: source}},
	}))
	defer server.Close()
	got := runWith(t.Context(), "-server", server.URL)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "-ca-file names a PEM file")

	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, certificatePEM(server.Certificate()), 0o600))
	got = runWith(t.Context(), "-server", server.URL, "-ca-file", ca, "-for", "1ms")
	require.Equal(t, exitEqual, got.code, got.stderr)
	require.Contains(t, got.stdout, "mirror equals the source: 0 objects")
}

func TestAServerWhoseCertificateIsOfNoCAInTheFileIsNotAdvisedToNameOne(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, certificatePEM(otherCA(t)), 0o600))
	got := runWith(t.Context(), "-server", server.URL, "-ca-file", ca)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "its certificate does not pass the check with those in the -ca-file")
	require.NotContains(t, got.stderr, "names a PEM file")
}

func TestHTTPToAServerThatSpeaksHTTPSIsAdvisedAtOnce(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is none
	server.StartTLS()
	defer server.Close()
	started := time.Now()
	got := runWith(t.Context(), "-server", "http"+strings.TrimPrefix(server.URL, "https"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "it speaks https, not http; begin the -server with https://")
	require.Contains(t, got.stderr, "400")
	require.Less(t, time.Since(started), 3*time.Second, "it is not to try again")
}

func TestAServerThatNobodyRunsIsGivenUpAfterThreeAttempts(t *testing.T) {
	t.Parallel()
	network, err := listenOnLoopback()
	require.NoError(t, err)
	require.NoError(t, network.Close())
	got := runWith(t.Context(), "-server", network.URL())
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "nobody listens")
	require.Contains(t, got.stderr, "connection refused")
}

func TestFilesThatCannotBeUsedAreReportedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	nothing := filepath.Join(t.TempDir(), "nothing")
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no CA file":     {[]string{"-server", "http://localhost", "-ca-file", nothing}, "-ca-file: CA certificates"},
		"no token file":  {[]string{"-server", "http://localhost", "-token-file", nothing}, "-token-file cannot be used"},
		"no file at all": {[]string{"-server", "http://localhost", "-token-file", os.DevNull}, "must be a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t.Context(), test.args...)
			require.Equal(t, exitFailed, got.code)
			require.Contains(t, got.stderr, test.says)
		})
	}
}
