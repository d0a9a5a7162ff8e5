package kubeapi

import (
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// volume is mounted like a kubelet's: files are links into a directory, which is replaced as a
// whole by renaming a link.
type volume struct {
	t    *testing.T
	dir  string
	next int
}

func newVolume(t *testing.T, files map[string]string) *volume {
	t.Helper()
	v := &volume{t: t, dir: t.TempDir()}
	v.replace(files)
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)))
	}
	return v
}

func (v *volume) replace(files map[string]string) {
	v.t.Helper()
	v.next++
	version := "..version" + string(rune('a'+v.next))
	require.NoError(v.t, os.Mkdir(filepath.Join(v.dir, version), 0o700))
	for name, content := range files {
		require.NoError(
			v.t, os.WriteFile(filepath.Join(v.dir, version, name), []byte(content), 0o600))
	}
	link := filepath.Join(v.dir, "..data_tmp")
	require.NoError(v.t, os.Symlink(version, link))
	require.NoError(v.t, os.Rename(link, filepath.Join(v.dir, "..data")))
}

// podAt returns a pod of a cluster whose API has this address.
func podAt(dir, host, port string) pod {
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	return pod{dir: dir, getenv: func(name string) string { return variables[name] }}
}

func serviceAccount(ca, token string) map[string]string {
	return map[string]string{"ca.crt": ca, "token": token, "namespace": "shop"}
}

func TestInClusterUsesTheAddressOfTheVariables(t *testing.T) {
	dir := newVolume(t, serviceAccount(newAuthority(t, "one").pem(), "t")).dir
	for _, c := range []struct{ host, port, want string }{
		{"10.0.0.1", "443", "https://10.0.0.1:443"},
		{"fd00::1", "6443", "https://[fd00::1]:6443"},
		{"fe80::1%eth0", "6443", "https://[fe80::1%25eth0]:6443"},
		{"kubernetes.default.svc", "443", "https://kubernetes.default.svc:443"},
	} {
		options, err := podAt(dir, c.host, c.port).options()
		require.NoError(t, err)
		require.Equal(t, c.want, options.BaseURL)
		options.Resource = pods
		newSourceFor(t, options)
	}
}

func TestInvalidVariablesAreQuoted(t *testing.T) {
	dir := newVolume(t, serviceAccount(newAuthority(t, "one").pem(), "t")).dir
	for _, c := range [][2]string{
		{"10.0.0.1", "tcp://10.0.0.1:443"}, // the form of links between Docker containers
		{"10.0.0.1", "https"},
		{"10.0.0.1/x", "443"},
		{"user@h", "443"},
		{"h?x", "443"},
		{"h", "443#x"},
		{"two words", "443"},
		{"[fd00::1]", "443"},
	} {
		_, err := podAt(dir, c[0], c[1]).options()
		require.ErrorContains(
			t, err, `KUBERNETES_SERVICE_HOST "`+c[0]+`" and KUBERNETES_SERVICE_PORT "`+c[1]+`"`)
		require.NotErrorIs(t, err, ErrNotInCluster)
	}
}

func TestOutsideOfAClusterTheMissingPartIsNamed(t *testing.T) {
	ca := newAuthority(t, "one").pem()
	whole := newVolume(t, serviceAccount(ca, "t")).dir
	noCA := newVolume(t, map[string]string{"token": "t"}).dir
	for name, c := range map[string]struct {
		pod     pod
		missing string
		file    bool
	}{
		"host": {podAt(whole, "", "443"), "KUBERNETES_SERVICE_HOST", false},
		"port": {podAt(whole, "10.0.0.1", ""), "KUBERNETES_SERVICE_PORT", false},
		"files": {
			podAt(filepath.Join(whole, "absent"), "10.0.0.1", "443"),
			filepath.Join(whole, "absent", "token"), true,
		},
		"CA": {podAt(noCA, "10.0.0.1", "443"), filepath.Join(noCA, "ca.crt"), true},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := c.pod.options()
			require.ErrorIs(t, err, ErrNotInCluster)
			require.ErrorContains(t, err, c.missing)
			require.Equal(t, c.file, errors.Is(err, fs.ErrNotExist))
			require.Zero(t, options)
		})
	}
	t.Run("this program", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		_, err := InCluster()
		require.ErrorIs(t, err, ErrNotInCluster)
	})
}

// In a cluster whose files are unusable, a program must not look for another cluster.
func TestInvalidFilesAreNotErrNotInCluster(t *testing.T) {
	ca := newAuthority(t, "one").pem()
	for name, files := range map[string]map[string]string{
		"token":  serviceAccount(ca, " \n"),
		"ca.crt": serviceAccount("hush", "hush"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := newVolume(t, files).dir
			_, err := podAt(dir, "10.0.0.1", "443").options()
			require.ErrorContains(t, err, filepath.Join(dir, name))
			require.NotErrorIs(t, err, ErrNotInCluster)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestThePodsNamespaceIsRead(t *testing.T) {
	in := func(content string) (string, error) {
		return pod{dir: newVolume(t, map[string]string{"namespace": content}).dir}.namespace()
	}
	name, err := in("shop\n")
	require.NoError(t, err)
	require.Equal(t, "shop", name)
	for _, bad := range []string{"", "\n", "two words", "../x"} {
		_, err := in(bad)
		require.ErrorContains(t, err, "namespace")
		require.NotErrorIs(t, err, ErrNotInCluster)
	}
	_, err = pod{dir: t.TempDir()}.namespace()
	require.ErrorIs(t, err, ErrNotInCluster)
	require.ErrorIs(t, err, fs.ErrNotExist)

	name, err = InClusterNamespace()
	require.True(t, name != "" || err != nil, "whether this is a pod or not")
}

// cluster is an API server on a real socket, whose certificate and token can be replaced.
type cluster struct {
	*httptest.Server
	certificate atomic.Pointer[tls.Certificate]
	token       atomic.Value
	events      chan string
	opened      atomic.Int32
	closed      chan struct{} // receives connections that are closed
}

func newCluster(
	t *testing.T, address string, http2 bool, certificate *tls.Certificate, token string,
) *cluster {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no %s: %v", address, err)
	}
	c := &cluster{events: make(chan string), closed: make(chan struct{}, 1)}
	c.certificate.Store(certificate)
	c.token.Store(token)
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	_ = c.Listener.Close()
	c.Listener = listener
	c.EnableHTTP2 = http2
	protocols := []string{"http/1.1"}
	if http2 {
		protocols = []string{"h2"}
	}
	c.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			Certificates: []tls.Certificate{*c.certificate.Load()},
			NextProtos:   protocols,
		}, nil
	}}
	c.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.opened.Add(1)
		case http.StateClosed:
			select {
			case c.closed <- struct{}{}:
			default: // one is enough
			}
		}
	}
	c.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+c.token.Load().(string) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.WriteString(w, podList())
		return
	}
	flush(w, "")
	for {
		select {
		case name := <-c.events:
			flush(w, frameJSON("ADDED", podJSON(name, 8)))
		case <-r.Context().Done():
			return
		}
	}
}

func (c *cluster) pod(t *testing.T, dir string) pod {
	t.Helper()
	host, port, err := net.SplitHostPort(c.Listener.Addr().String())
	require.NoError(t, err)
	return podAt(dir, host, port)
}

func TestAPodMirrorsItsClusterThoughTokenAndCAAreReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		http2   bool
	}{
		"HTTP/1": {"127.0.0.1:0", false},
		"HTTP/2": {"127.0.0.1:0", true},
		"IPv6":   {"[::1]:0", true},
	} {
		t.Run(name, func(t *testing.T) {
			one := newAuthority(t, "one")
			two := newAuthority(t, "two")
			cluster := newCluster(t, c.address, c.http2, one.issue("api"), "first")
			volume := newVolume(t, serviceAccount(one.pem(), "first"))
			options, err := cluster.pod(t, volume.dir).options()
			require.NoError(t, err)
			defer options.HTTPClient.CloseIdleConnections()
			options.Resource = pods
			source := newSourceFor(t, options)
			_, err = source.List(metav1.ListOptions{})
			require.NoError(t, err)
			w, err := source.Watch(metav1.ListOptions{})
			require.NoError(t, err)
			defer w.Stop()
			before := cluster.opened.Load()

			cluster.certificate.Store(two.issue("api"))
			cluster.token.Store("second")
			volume.replace(serviceAccount(two.pem(), "second"))
			_, err = source.List(metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(
				t, before+1, cluster.opened.Load(), "what was trusted before is not trusted for it")

			cluster.events <- "late"
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type, "the open watch continues")
		})
	}
}
