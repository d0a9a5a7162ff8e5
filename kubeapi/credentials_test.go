package kubeapi

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func authorized(t *testing.T, authorize func(*http.Request) error) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://h", nil)
	require.NoError(t, authorize(r))
	return r.Header.Get("Authorization")
}

func TestAReplacedTokenIsInUseAtOnce(t *testing.T) {
	path := file(t, " first\n")
	authorize := BearerTokenFile(path)
	require.Equal(t, "Bearer first", authorized(t, authorize))
	require.NoError(
		t, os.WriteFile(path, []byte("secnd\n"), 0o600)) // same length, and within the same tick
	require.Equal(t, "Bearer secnd", authorized(t, authorize))
}

func TestErrorsOfATokenFileNameTheFileAndNotTheToken(t *testing.T) {
	for name, path := range map[string]string{
		"missing":       filepath.Join(t.TempDir(), "absent"),
		"unnamed":       "",
		"directory":     t.TempDir(),
		"empty":         file(t, " \n"),
		"two lines":     file(t, "hush\nX-Evil: hush"),
		"not ASCII":     file(t, "hüsh"),
		"far too large": file(t, string(make([]byte, maxCredentialBytes+1))),
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://h", nil)
			err := BearerTokenFile(path)(r)
			require.ErrorContains(t, err, "bearer token: ")
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "hush")
			require.Empty(t, r.Header.Get("Authorization"))
		})
	}
}

func TestClientWithCATrustsThatCAAndSpeaksHTTP2(t *testing.T) {
	var proto string
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto = r.Proto
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, podList())
	})
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()

	client, err := ClientWithCA(
		file(
			t,
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		),
	)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	_, err = newSourceFor(
		t, Options{BaseURL: s.URL, Resource: pods, HTTPClient: client}).List(
		metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", proto)

	_, err = newSourceFor(t, Options{BaseURL: s.URL, Resource: pods}).List(metav1.ListOptions{})
	require.ErrorContains(t, err, "certificate", "the default client does not know this CA")
}

func TestErrorsOfClientWithCANameTheFile(t *testing.T) {
	for name, path := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "absent"),
		"no PEM":  file(t, "hello"),
	} {
		t.Run(name, func(t *testing.T) {
			client, err := ClientWithCA(path)
			require.Nil(t, client)
			require.ErrorContains(t, err, path)
		})
	}
}

// A program may have its own function to connect securely, which does not know the CA.
func TestClientWithCADoesNotConnectInAWayOfTheProgram(t *testing.T) {
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	others := errors.New("connected in the program's way")
	http.DefaultTransport = &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nil, others },
		//lint:ignore SA1019 It is obeyed as long as it exists.
		DialTLS: func(string, string) (net.Conn, error) { return nil, others },
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	client, err := ClientWithCA(
		file(
			t,
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		),
	)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	require.NoError(t, get(t.Context(), client, s.URL))
}

// A program may replace http.DefaultTransport by its own implementation.
func TestClientWithCADoesNotNeedTheStandardTransport(t *testing.T) {
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	http.DefaultTransport = respondWith(200, podList())
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	client, err := ClientWithCA(
		file(
			t,
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		),
	)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(s.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}
