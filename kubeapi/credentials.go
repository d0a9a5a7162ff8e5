package kubeapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/internal/loglines"
)

// maxCredentialBytes bounds the bytes read from a token or certificate file, in case the path names
// something large.
const maxCredentialBytes = 1 << 20

// BearerTokenFile returns an Options.Authorize that sends the token in the file with each request.
// It reads the file before every request, so a replaced token is used at once. The file must be
// regular; white space around the token is ignored. The function may be called concurrently. Its
// errors name the file, never the token. Over plain HTTP the token is readable in transit.
func BearerTokenFile(path string) func(*http.Request) error {
	return func(request *http.Request) error {
		token, err := readToken(path)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

// readToken reads a file that holds one token.
func readToken(path string) (string, error) {
	if _, err := statRegularFile(path); err != nil {
		return "", fmt.Errorf("bearer token: %w", err)
	}
	data, err := readCredential(path)
	if err != nil {
		return "", fmt.Errorf("bearer token: %w", err)
	}
	token := bytes.TrimSpace(data)
	if len(token) == 0 {
		return "", fmt.Errorf("bearer token: %s is empty", path)
	}
	// RFC 6750 allows letters, digits and some punctuation, all printable ASCII.
	if bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("bearer token: %s contains something other than a single token", path)
	}
	return string(token), nil
}

// statRegularFile refuses a file that cannot be read repeatedly. It uses Stat because opening a
// pipe blocks until a writer opens it.
func statRegularFile(path string) (fs.FileInfo, error) {
	if path == "" {
		return nil, errNoPath
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return info, nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return nil, fmt.Errorf(
		"%s is %s; it must be a regular file, because it is read repeatedly", path, kind)
}

var errNoPath = errors.New("the path is empty")

func readCredential(path string) ([]byte, error) {
	if path == "" {
		return nil, errNoPath
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxCredentialBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxCredentialBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxCredentialBytes)
	}
	return data, nil
}

// defaultIdleTimeout bounds how long an idle connection is kept if the base transport has no
// IdleConnTimeout. It is http.DefaultTransport's value. Without a bound, connections made with a
// replaced CA could stay.
const defaultIdleTimeout = 90 * time.Second

// ClientWithCA returns an HTTP client with http.DefaultTransport's settings that trusts only the
// certificates in the PEM file, as TransportWithCA does. CloseIdleConnections releases its
// connections.
func ClientWithCA(caFile string) (*http.Client, error) {
	transport, err := TransportWithCA(caFile, nil)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// TransportWithCA returns a copy of base that trusts only the certificates in the PEM file; base
// must have no RootCAs. A nil base means http.DefaultTransport, with a check of idle HTTP/2
// connections. It may be used concurrently.
//
// Before each request it checks whether the file has changed, and uses new certificates for new
// connections; connections in use are closed after their last response. While a changed file cannot
// be read, or has no certificate, the old certificates stay in use, and the logger of the request's
// context reports the reason once.
func TransportWithCA(caFile string, base *http.Transport) (http.RoundTripper, error) {
	if base == nil {
		base = apiclient.StandardTransport()
	}
	if base.TLSClientConfig != nil && base.TLSClientConfig.RootCAs != nil {
		return nil, fmt.Errorf(
			"CA certificates: both %s and the transport's TLSClientConfig.RootCAs are set", caFile)
	}
	template := base.Clone()
	if template.TLSClientConfig == nil {
		template.TLSClientConfig = &tls.Config{}
	}
	if slices.Contains(template.TLSClientConfig.NextProtos, "h2") {
		// base speaks HTTP/2, and its copy must offer it. A transport with a TLSClientConfig or a
		// dialer does not by default.
		template.ForceAttemptHTTP2 = true
	}
	if template.IdleConnTimeout == 0 {
		template.IdleConnTimeout = defaultIdleTimeout
	}
	// These dialers would ignore the CA.
	template.DialTLSContext = nil
	//lint:ignore SA1019 It is obeyed as long as it exists.
	template.DialTLS = nil
	transport, err := newCAFileTransport(caFile, template)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	return transport, nil
}

// caFileTransport is a transport that trusts the certificates in a file. The CAs of a tls.Config in
// use cannot be changed, so each content of the file has its own transport.
type caFileTransport struct {
	path     string
	template *http.Transport // only cloned, never used for requests
	current  atomic.Pointer[caTransport]

	// mu is held while the file is checked. It is acquired by TryLock only: a request during a
	// check uses the current certificates instead of waiting for the disk.
	mu        sync.Mutex
	file      caFile // the content that current was made from
	lastError string // the last error about the file, so that each is reported once
}

// caFile is the state of a CA file when it was read.
type caFile struct {
	info fs.FileInfo
	read time.Time
	sum  [sha256.Size]byte
}

// newCAFileTransport returns a transport whose connections have the settings of template. The
// caller must not use template afterwards.
func newCAFileTransport(path string, template *http.Transport) (*caFileTransport, error) {
	if path == "" {
		return nil, errNoPath
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file, pool, err := readCA(path, info)
	if err != nil {
		return nil, err
	}
	t := &caFileTransport{path: path, template: template, file: file}
	t.current.Store(newCATransport(template, pool))
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (t *caFileTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.reload(); err != nil {
		logger := loglines.FromContext(request.Context())
		logger.Error(err, "Reloading CA certificates failed, keeping the previous ones",
			"file", t.path)
	}
	return t.current.Load().RoundTrip(request)
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *caFileTransport) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }

// reload replaces the transport if the file has changed. It returns an error only if that was not
// reported before.
func (t *caFileTransport) reload() error {
	if !t.mu.TryLock() {
		return nil
	}
	defer t.mu.Unlock()
	err := t.reloadLocked()
	if err == nil {
		t.lastError = ""
		return nil
	}
	if text := err.Error(); text != t.lastError {
		t.lastError = text
		return err
	}
	return nil
}

func (t *caFileTransport) reloadLocked() error {
	if !t.file.info.Mode().IsRegular() {
		return nil
	}
	info, err := statRegularFile(t.path)
	if err != nil || t.file.isUnchanged(info) {
		return err
	}
	file, pool, err := readCA(t.path, info)
	if err != nil {
		return err
	}
	changed := file.sum != t.file.sum
	t.file = file
	if changed {
		t.current.Swap(newCATransport(t.template, pool)).retire()
	}
	return nil
}

// timestampResolution is at least the timestamp resolution of any common file system: FAT has two
// seconds.
const timestampResolution = 2 * time.Second

// isUnchanged reports whether the file certainly has not changed. A file that was read within
// timestampResolution of its modification time may have been written again with the same timestamp.
func (f caFile) isUnchanged(info fs.FileInfo) bool {
	return os.SameFile(f.info, info) && f.info.Size() == info.Size() &&
		f.info.ModTime().Equal(info.ModTime()) &&
		f.read.Sub(info.ModTime()) > timestampResolution
}

// readCA reads a file whose info was read before, so that a concurrent write is seen as a change at
// the next check.
func readCA(path string, info fs.FileInfo) (caFile, *x509.CertPool, error) {
	file := caFile{info: info, read: time.Now()}
	data, err := readCredential(path)
	if err != nil {
		return caFile{}, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return caFile{}, nil, fmt.Errorf("%s contains no certificate in PEM form", path)
	}
	file.sum = sha256.Sum256(data)
	return file, pool, nil
}
