package kubeapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// answering accepts connections, reads a request from each, writes raw, and closes. It need not be
// HTTP.
func answering(t *testing.T, raw string) *cachetest.Listener {
	t.Helper()
	listener := cachetest.NewListener()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(connection))
			_, _ = io.WriteString(connection, raw)
			_ = connection.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return listener
}

// No failure in transit shows the content of the request: neither its credentials nor its query,
// which has selectors and the server's tokens.
func TestNoFailureShowsCredentialsOrQuery(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, raw := range map[string]string{
		"nothing":          "",
		"not HTTP":         "SSH-2.0-OpenSSH\r\n",
		"broken header":    "HTTP/1.1 200 OK\r\nbroken\r\n\r\n",
		"broken code":      "HTTP/1.1 abc\r\n\r\n",
		"cut":              head + "Content-Length: 100\r\n\r\n{\"kind\":",
		"broken chunk":     head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"not JSON":         head + "\r\nhello",
		"an ended list":    head + "\r\n{\"kind\":\"PodList\"",
		"a page":           "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>",
		"a code":           "HTTP/1.1 502 Bad Gateway\r\n\r\n",
		"not the protocol": "HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
		"packed":           head + "Content-Encoding: gzip\r\n\r\nhello",
		"a circle":         "HTTP/1.1 302 Found\r\nLocation: ?hush\r\n\r\n",
		"elsewhere":        "HTTP/1.1 302 Found\r\nLocation: http://hush@evil.test/hush\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &http.Client{
					Transport: &http.Transport{DialContext: answering(t, raw).DialContext},
				}
				defer client.CloseIdleConnections()
				failsSilently(t, client, "http://api.test", "hush")
			})
		})
	}
	for name, transport := range map[string]*http.Transport{
		"refused": {DialContext: refusing},
		"no TLS": {
			DialContext: func(context.Context, string, string) (net.Conn, error) { return plain(), nil },
		},
		"slow": {
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded },
		},
	} {
		t.Run(name, func(t *testing.T) {
			transport.TLSClientConfig = &tls.Config{}
			failsSilently(t, &http.Client{Transport: transport}, "https://api.test", "hush")
		})
	}
	t.Run("a token that is no header", func(t *testing.T) {
		failsSilently(
			t, &http.Client{Transport: &http.Transport{DialContext: refusing}}, "http://api.test",
			"hush\r\nX: hush")
	})
}

func refusing(ctx context.Context, network, address string) (net.Conn, error) {
	listener := cachetest.NewListener()
	listener.RefuseConnections(true)
	return listener.DialContext(ctx, network, address)
}

// plain returns a connection to a server that answers TLS with HTTP.
func plain() net.Conn {
	near, far := net.Pipe()
	go func() {
		_, _ = far.Read(make([]byte, 1<<16))
		_, _ = io.WriteString(far, "HTTP/1.1 400 Bad Request\r\n\r\n")
		_ = far.Close()
	}()
	return near
}

func failsSilently(t *testing.T, client *http.Client, base, secret string) {
	t.Helper()
	source := newSourceFor(t, Options{
		BaseURL: base, Resource: pods, HTTPClient: client, FieldSelector: "metadata.name=hush",
		Authorize: func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+secret)
			r.Header.Set("X-Token", secret)
			return nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	options := metav1.ListOptions{
		Continue:        "hush",
		LabelSelector:   "app=hush",
		ResourceVersion: "hush",
	}
	_, err := source.ListWithContext(ctx, options)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hush")
	w, err := source.WatchWithContext(ctx, options)
	if err != nil {
		require.NotContains(t, err.Error(), "hush")
		return
	}
	for event := range w.ResultChan() {
		require.NotContains(t, describeStatus(event.Object), "hush")
	}
}

func describeStatus(object any) string {
	if status, ok := object.(*metav1.Status); ok {
		return status.String()
	}
	return ""
}

// A tenant's name may be part of a reason. Fails if the reasons and causes that programs compare
// count as repeated secrets.
func TestTheReasonsAndCausesOfAPIServersAreNeverHidden(t *testing.T) {
	for _, secret := range []string{
		"expire", "Expired", "FieldValue", "resourceversion", "toolarge",
	} {
		source := newSourceOf(t, respondWith(410, asJSON(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: 410, Message: "as " + secret,
			Reason: metav1.StatusReasonExpired, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeResourceVersionTooLarge, Message: secret},
				{Type: metav1.CauseTypeFieldValueInvalid},
				{Type: metav1.CauseType("a " + secret)},
			}},
		})), Options{Authorize: func(r *http.Request) error {
			r.Header.Set("X-Token", secret)
			return nil
		}})
		_, err := source.List(metav1.ListOptions{})
		require.True(t, apierrors.IsResourceExpired(err), "%s: %v", secret, err)
		require.True(
			t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%s: %v",
			secret, err)
		require.True(
			t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid), "%s: %v", secret,
			err)
		require.True(t, apierrors.HasStatusCause(err, "a …"), "%s: %v", secret, err)
		require.NotContains(t, err.Error(), secret)
	}
}
