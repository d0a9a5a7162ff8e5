package kubeapi

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
)

// fuzzFile returns a file with data, in the directory of one fuzzing process.
func fuzzFile(t *testing.T, dir string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// FuzzTokenFile reads arbitrary bytes as a token. An accepted token is the file's content without
// surrounding space, and is sent unchanged. A refused one does not appear in the error.
func FuzzTokenFile(f *testing.F) {
	for _, seed := range []string{
		"", " \n", "abc", " eyJh.b-c_d~e+f/g= \n", "two tokens", "a\x00b", "ü",
		"line\r\nHost: evil",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		request, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
		require.NoError(t, err)
		err = BearerTokenFile(fuzzFile(t, dir, data))(request)
		token := string(bytes.TrimSpace(data))
		single := token != ""
		for _, b := range []byte(token) {
			single = single && b > ' ' && b <= '~'
		}
		require.Equal(t, single, err == nil, "%v", err)
		if err == nil {
			require.Equal(t, []string{"Bearer " + token}, request.Header["Authorization"])
			return
		}
		require.NotContains(t, request.Header, "Authorization")
		if token != "" {
			// A word of the error may be in the file by chance.
			other := BearerTokenFile(fuzzFile(t, dir, []byte("two tokens")))(request)
			require.EqualError(t, other, err.Error())
		}
	})
}

// FuzzCAFile reads arbitrary bytes as certificates. The file is accepted exactly if it has a
// certificate in PEM, and each of its certificates is trusted.
func FuzzCAFile(f *testing.F) {
	certificate := fuzzCertificate(f)
	f.Add(certificate)
	f.Add(append([]byte("text before\n"), certificate...))
	f.Add(append(certificate, certificate...))
	f.Add(bytes.Replace(certificate, []byte("CERTIFICATE"), []byte("PRIVATE KEY"), 2))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := fuzzFile(t, dir, data)
		info, err := os.Stat(path)
		require.NoError(t, err)
		_, pool, err := readCA(path, info)
		want := x509.NewCertPool()
		some := false
		for rest := data; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
				continue
			}
			if parsed, err := x509.ParseCertificate(block.Bytes); err == nil {
				want.AddCert(parsed)
				some = true
			}
		}
		require.Equal(t, some, err == nil, "%v", err)
		if err == nil {
			require.True(t, want.Equal(pool))
		}
	})
}

// fuzzCertificate is the same in each process, so that inputs of the corpora stay valid.
func fuzzCertificate(f *testing.F) []byte {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fuzz"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	require.NoError(f, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// FuzzInCluster gives a pod arbitrary variables and an arbitrary file with its namespace. The base
// URL, if there is one, is only host and port, and New accepts it. The namespace can be part of a
// path.
func FuzzInCluster(f *testing.F) {
	f.Add("10.0.0.1", "443", "shop\n")
	f.Add("::1", "6443", "")
	f.Add("host/path", "x", "../other")
	f.Add("user@host", "443?x#y", "two words")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, host, port, namespace string) {
		p := pod{dir: dir, getenv: func(name string) string {
			return map[string]string{hostVariable: host, portVariable: port}[name]
		}}
		if base, err := p.baseURL(); err == nil {
			u, err := url.Parse(base)
			require.NoError(t, err)
			require.Equal(t, net.JoinHostPort(host, port), u.Host)
			require.Equal(t, "https://", strings.TrimSuffix(base, u.EscapedPath())[:8])
			require.Empty(t, u.Path+u.RawQuery+u.Fragment)
			require.Nil(t, u.User)
			_, err = New(Options{BaseURL: base, Resource: pods})
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(p.file("namespace"), []byte(namespace), 0o600))
		name, err := p.namespace()
		valid := len(validation.IsDNS1123Label(strings.TrimSpace(namespace))) == 0
		require.Equal(t, valid, err == nil, "%v", err)
		if err == nil {
			require.Equal(t, strings.TrimSpace(namespace), name)
		}
	})
}
