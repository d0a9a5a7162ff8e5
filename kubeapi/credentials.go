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

	"k8s.io/klog/v2"
)

// maxCredentialBytes bounds the bytes read from a file that is meant to hold a token or
// certificates: a mistaken path to something large is an error, not a lot of memory.
const maxCredentialBytes = 1 << 20

// BearerTokenFile returns an Options.Authorize that puts the token in the file on each request. It reads the file for
// every request, so that a replaced token is used at once; the file must be regular. White space around the token is
// ignored. The function may be called concurrently; its errors name the file, never the token. Over plain http everyone
// on the way can read the token.
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
	if _, err := rereadable(path); err != nil {
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
	// RFC 6750 allows letters, digits and a few marks, all of them printable ASCII.
	if bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("bearer token: %s holds something other than a single token", path)
	}
	return string(token), nil
}

// rereadable refuses a file that cannot be read again and again. It looks before
// anybody opens the file: opening a pipe waits for somebody who writes to it.
func rereadable(path string) (fs.FileInfo, error) {
	if path == "" {
		return nil, errNoFile
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	what := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return info, nil
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return nil, fmt.Errorf("%s is %s; it must be a regular file, because it is read again and again", path, what)
}

var errNoFile = errors.New("no file is named")

func readCredential(path string) ([]byte, error) {
	if path == "" {
		return nil, errNoFile
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

// How soon a dead HTTP/2 connection is noticed: when nothing came for healthCheckAfter,
// a ping is sent, which has healthCheckTimeout for its answer. Otherwise a watch on a
// connection that a firewall forgot waits for the kernel, for a quarter of an hour.
const (
	healthCheckAfter   = 30 * time.Second
	healthCheckTimeout = 15 * time.Second
)

// keepIdle is for how long an unused connection is kept where http.DefaultTransport does
// not say: as long as it does by default. Without an end, connections of a CA that was
// replaced could stay.
const keepIdle = 90 * time.Second

// ClientWithCA returns an HTTP client with http.DefaultTransport's settings that trusts only the certificates in the
// PEM file. See TransportWithCA. CloseIdleConnections releases its connections.
func ClientWithCA(caFile string) (*http.Client, error) {
	trust, err := TransportWithCA(caFile, nil)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: trust}, nil
}

// standardTransport is a copy of http.DefaultTransport, or much like it if a program has
// put something else in its place, with a check of idle HTTP/2 connections.
func standardTransport() *http.Transport {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && standard != nil {
		transport = standard.Clone()
	}
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: healthCheckAfter, PingTimeout: healthCheckTimeout}
	return transport
}

// TransportWithCA returns a copy of base that trusts only the certificates in the PEM file; base must have no RootCAs.
// A nil base is http.DefaultTransport, with a check of idle HTTP/2 connections. It may be used concurrently.
//
// Before each request it checks whether the file has changed, and uses new certificates for new connections;
// connections in use are closed after their last answer. While a changed file cannot be read, or has no certificate,
// the old certificates stay in use, and the request's logger reports why, once.
func TransportWithCA(caFile string, base *http.Transport) (http.RoundTripper, error) {
	if base == nil {
		base = standardTransport()
	}
	if base.TLSClientConfig != nil && base.TLSClientConfig.RootCAs != nil {
		return nil, fmt.Errorf("CA certificates: of %s and of the transport's TLSClientConfig.RootCAs only one can count", caFile)
	}
	template := base.Clone()
	if template.TLSClientConfig == nil {
		template.TLSClientConfig = &tls.Config{}
	}
	if slices.Contains(template.TLSClientConfig.NextProtos, "h2") {
		// base speaks HTTP/2, and its copy offers it. By itself a transport does not speak it
		// if it has a TLSClientConfig or a dialer.
		template.ForceAttemptHTTP2 = true
	}
	if template.IdleConnTimeout == 0 {
		template.IdleConnTimeout = keepIdle
	}
	// They would make connections that know nothing of the CA.
	template.DialTLSContext = nil
	//lint:ignore SA1019 It is obeyed as long as it exists.
	template.DialTLS = nil
	trust, err := newTrust(caFile, template)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	return trust, nil
}

// trust is a transport that trusts what a file says. A tls.Config cannot be given
// other CAs once it is in use, so each content of the file has a transport of its own.
type trust struct {
	path     string
	template *http.Transport // never asked anything
	current  atomic.Pointer[caTransport]

	// mu belongs to the request that looks at the file. It is only ever tried: a request that
	// finds another one looking continues with the known one, so that none waits for a disk
	// that another waits for.
	mu        sync.Mutex
	file      caFile // what current was made of
	complaint string // the last about the file; reported once
}

// caFile is a CA file at one time.
type caFile struct {
	info fs.FileInfo
	read time.Time
	sum  [sha256.Size]byte
}

// newTrust makes one whose connections are as those of template, which it takes over.
func newTrust(path string, template *http.Transport) (*trust, error) {
	if path == "" {
		return nil, errNoFile
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file, pool, err := readCA(path, info)
	if err != nil {
		return nil, err
	}
	t := &trust{path: path, template: template, file: file}
	t.current.Store(newCATransport(template, pool))
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (t *trust) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.look(); err != nil {
		klog.FromContext(request.Context()).Error(err, "CA certificates cannot be read again; those read before stay in use", "file", t.path)
	}
	return t.current.Load().RoundTrip(request)
}

// CloseIdleConnections is what http.Client's calls.
func (t *trust) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }

// look replaces the transport if the file has changed. An error is one that was not
// reported yet.
func (t *trust) look() error {
	if !t.mu.TryLock() {
		return nil
	}
	defer t.mu.Unlock()
	err := t.lookLocked()
	if err == nil {
		t.complaint = ""
		return nil
	}
	if text := err.Error(); text != t.complaint {
		t.complaint = text
		return err
	}
	return nil
}

func (t *trust) lookLocked() error {
	if !t.file.info.Mode().IsRegular() {
		return nil
	}
	info, err := rereadable(t.path)
	if err != nil || t.file.isStill(info) {
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

// coarse is no less than the ticks in which any common file system counts time: FAT has
// two seconds.
const coarse = 2 * time.Second

// isStill says whether the file has surely not changed. One that was read within the
// tick in which it was written may have been written again unseen.
func (f caFile) isStill(info fs.FileInfo) bool {
	return os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime()) &&
		f.read.Sub(info.ModTime()) > coarse
}

// readCA reads a file that was looked at before, so that a write meanwhile shows
// as a change the next time.
func readCA(path string, info fs.FileInfo) (caFile, *x509.CertPool, error) {
	file := caFile{info: info, read: time.Now()}
	data, err := readCredential(path)
	if err != nil {
		return caFile{}, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return caFile{}, nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	file.sum = sha256.Sum256(data)
	return file, pool, nil
}
