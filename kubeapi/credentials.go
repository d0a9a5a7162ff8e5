package kubeapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"
)

// maxCredentialBytes bounds what is read from a file that is meant to hold a token or
// certificates: a mistaken path to something large is an error, not a lot of memory.
const maxCredentialBytes = 1 << 20

// BearerTokenFile returns a function for Options.Authorize that puts the token in the
// file on each request. The file is read for every request, so that a token which is
// replaced, as a kubelet does about hourly, is in use at once; a mirror sends
// a few requests a minute at most. It must therefore be a regular file, or a link to one:
// a pipe, such as a shell makes of <(command), can be read once only and is refused. Space
// around the token is ignored. The function may be called concurrently; its errors name
// the file and never the token.
//
// The token is sent to whatever BaseURL names. Over plain http everyone on the way
// can read it.
func BearerTokenFile(path string) func(*http.Request) error {
	return func(request *http.Request) error {
		if err := rereadable(path); err != nil {
			return fmt.Errorf("bearer token: %w", err)
		}
		data, err := readCredential(path)
		if err != nil {
			return fmt.Errorf("bearer token: %w", err)
		}
		token := bytes.TrimSpace(data)
		if len(token) == 0 {
			return fmt.Errorf("bearer token: %s is empty", path)
		}
		// RFC 6750 allows letters, digits and a few marks, all of them printable ASCII.
		if bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("bearer token: %s holds something other than a single token", path)
		}
		request.Header.Set("Authorization", "Bearer "+string(token))
		return nil
	}
}

// rereadable refuses what is no file that can be read again and again. It looks before
// anybody opens the file: opening a pipe waits for somebody who writes to it.
func rereadable(path string) error {
	if path == "" {
		return errNoFile
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	what := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("%s is %s; it must be a regular file, because it is read for every request", path, what)
}

var errNoFile = errors.New("no file is named")

// How soon a dead HTTP/2 connection is noticed: when nothing came for healthCheckAfter,
// a ping is sent, which has healthCheckTimeout for its answer. Otherwise a list on a
// connection that a firewall forgot waits for the kernel, for a quarter of an hour.
const (
	healthCheckAfter   = 30 * time.Second
	healthCheckTimeout = 15 * time.Second
)

// ClientWithCA returns a client that trusts the certificates in the file, which is
// PEM, and no others; otherwise it is as http.DefaultClient, with a check of
// idle HTTP/2 connections in addition. The file is read once: a program that outlives its CA
// makes a new client. The client owns its connections; CloseIdleConnections gives
// them back.
func ClientWithCA(caFile string) (*http.Client, error) {
	data, err := readCredential(caFile)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("CA certificates: %s holds no certificate in PEM form", caFile)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have replaced it
		transport = standard.Clone()
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: healthCheckAfter, PingTimeout: healthCheckTimeout}
	return &http.Client{Transport: transport}, nil
}

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
