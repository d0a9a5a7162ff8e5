package clientgo_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchmirror/cache/kubeapi"
)

func TestTheCredentialsOfTheConfigAreOnEachRequest(t *testing.T) {
	for name, test := range map[string]struct {
		config rest.Config
		want   string // Authorization
	}{
		"bearer token": {rest.Config{BearerToken: "s3cret"}, "Bearer s3cret"},
		"user and password": {
			rest.Config{Username: "me", Password: "hunter2"}, "Basic bWU6aHVudGVyMg==",
		},
		"exec plugin": {rest.Config{ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: os.Args[0],
			Env:             []clientcmdapi.ExecEnvVar{{Name: pluginEnv, Value: "from-plugin"}},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}, "Bearer from-plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			requireSent(t, test.config, http.Header{"Authorization": {test.want}})
		})
	}
}

func TestImpersonationIsOnEachRequest(t *testing.T) {
	requireSent(t, rest.Config{BearerToken: "s3cret", Impersonate: rest.ImpersonationConfig{
		UserName: "jane", UID: "42", Groups: []string{"dev", "ops"},
		Extra: map[string][]string{"scopes": {"view"}},
	}}, http.Header{
		"Authorization":            {"Bearer s3cret"},
		"Impersonate-User":         {"jane"},
		"Impersonate-Uid":          {"42"},
		"Impersonate-Group":        {"dev", "ops"},
		"Impersonate-Extra-Scopes": {"view"},
	})
}

func TestATransportOfTheProgramSeesEachRequest(t *testing.T) {
	signing := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Signed", r.URL.Path)
			return next.RoundTrip(r)
		})
	}
	requireSent(t, rest.Config{WrapTransport: signing}, http.Header{"X-Signed": {"/api/v1/pods"}})
}

// requireSent lists with a source of each maker, and checks the sent headers.
func requireSent(t *testing.T, config rest.Config, want http.Header) {
	t.Helper()
	api := &api{}
	config.Host = serve(t, api).URL
	for way, source := range map[string]*kubeapi.ListerWatcher{
		"config": sourceOf(t, &config),
		"client": sourceOfClient(t, clientOf(t, config)),
	} {
		list(t, source)
		for key, values := range want {
			require.Equal(t, values, api.last(t).Header[key], "%s of %s", key, way)
		}
	}
}

// roundTripper is an http.RoundTripper made from a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client-go reads the file again when its content is 50 seconds old.
func TestATokenFileThatIsReplacedIsInUseAMinuteLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
		api := &api{}
		source := sourceOf(t, &rest.Config{Host: "api.test", BearerTokenFile: file, Transport: api})
		list(t, source)
		assert.Equal(t, "Bearer first", api.last(t).Header.Get("Authorization"))

		require.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
		time.Sleep(time.Minute)
		list(t, source)
		assert.Equal(t, "Bearer second", api.last(t).Header.Get("Authorization"))
	})
}

func TestClientCertificatesAreShown(t *testing.T) {
	authority, key := newAuthority(t)
	certPEM, keyPEM := clientCertificate(t, authority, key, "jane")
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)

	api := &api{}
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	server.StartTLS()
	t.Cleanup(server.Close)

	tlsConfig := rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		CertData: certPEM, KeyData: keyPEM,
	}
	config := rest.Config{Host: server.URL, TLSClientConfig: tlsConfig}
	for way, source := range map[string]*kubeapi.ListerWatcher{
		"config": sourceOf(t, &config),
		"client": sourceOfClient(t, clientOf(t, config)),
	} {
		list(t, source)
		request := api.last(t)
		require.NotEmpty(t, request.TLS.PeerCertificates, way)
		assert.Equal(t, "jane", request.TLS.PeerCertificates[0].Subject.CommonName)
		assert.Equal(
			t, 2, request.ProtoMajor, "all sources of a server share one connection over HTTP/2")
	}

	config.CertData = nil
	config.KeyData = nil
	_, err := sourceOf(t, &config).List(metav1.ListOptions{})
	require.Error(t, err, "the server must have asked for the certificate")
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
	_, err = sourceOf(t, &config).List(metav1.ListOptions{})
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown, "and the server's must have been checked")
}

func newAuthority(t *testing.T) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	authority, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority, key
}

func clientCertificate(
	t *testing.T, authority *x509.Certificate, signer *ecdsa.PrivateKey, name string,
) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func TestCredentialsAreNotSentToWhereAServerRedirects(t *testing.T) {
	elsewhere := &api{}
	target := serve(t, elsewhere)
	server := serve(t, http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	config := rest.Config{
		Host:        server.URL,
		BearerToken: "s3cret",
		Impersonate: rest.ImpersonationConfig{UserName: "jane"},
	}
	for way, source := range map[string]*kubeapi.ListerWatcher{
		"config": sourceOf(t, &config),
		"client": sourceOfClient(t, clientOf(t, config)),
	} {
		_, err := source.List(metav1.ListOptions{})
		require.ErrorIs(t, err, kubeapi.ErrRedirect, way)
		assert.NotContains(t, err.Error(), "s3cret")
	}
	assert.Zero(t, elsewhere.count())
}

// A server may repeat the headers that client-go added to a request below the source.
func TestErrorsContainNoCredentialsOfTheConfig(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		status := apierrors.NewForbidden(
			pods.GroupResource(), "",
			fmt.Errorf("%v to user %q", r.Header, r.Header.Get("Impersonate-User")))
		status.ErrStatus.Kind = "Status"
		assert.NoError(t, json.NewEncoder(w).Encode(status.ErrStatus))
	}))
	for login, config := range map[string]rest.Config{
		"bearer": {
			Host:        server.URL,
			BearerToken: "s3cret-t0ken",
			Impersonate: rest.ImpersonationConfig{UserName: "jane"},
		},
		"basic": {
			Host:        server.URL,
			Username:    "joe",
			Password:    "s3cret-t0ken",
			Impersonate: rest.ImpersonationConfig{UserName: "jane"},
		},
	} {
		for way, source := range map[string]*kubeapi.ListerWatcher{
			"config": sourceOf(t, &config),
			"client": sourceOfClient(t, clientOf(t, config)),
		} {
			_, err := source.List(metav1.ListOptions{})
			require.True(t, apierrors.IsForbidden(err), "%s, %s: %v", login, way, err)
			assert.NotContains(t, err.Error(), "s3cret-t0ken", "%s, %s", login, way)
			assert.NotContains(
				t, err.Error(), base64.StdEncoding.EncodeToString([]byte("joe:s3cret-t0ken")))
			assert.Contains(
				t, err.Error(), `to user "jane"`, "whom the refusal is for is no secret")
		}
	}
}
