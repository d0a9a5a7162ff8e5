package kubeapi

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

func TestRequestsAcceptJSONAndHaveTheCallersHeaders(t *testing.T) {
	var seen http.Header
	var method string
	source := newSourceFor(t, Options{
		BaseURL: "http://h", Resource: pods, UserAgent: "mirror/1",
		Authorize: func(r *http.Request) error { r.SetBasicAuth("user", "secret"); return nil },
		HTTPClient: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
			seen = r.Header
			method = r.Method
			return respondWith(200, podList())(r)
		})},
	})
	_, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, http.MethodGet, method)
	require.Equal(
		t, "application/json;drop=metadata.managedFields, application/json", seen.Get("Accept"))
	require.Equal(t, "mirror/1", seen.Get("User-Agent"))
	require.True(t, strings.HasPrefix(seen.Get("Authorization"), "Basic "))
}

func TestAuthorizeIsCalledOncePerRequestAndItsErrorPreventsSending(t *testing.T) {
	var asked, sent int
	broken := &url.Error{Op: "Post", URL: "http://login", Err: errors.New("no token")}
	source := newSourceFor(t, Options{
		BaseURL: "http://h", Resource: pods,
		Authorize: func(*http.Request) error {
			if asked++; asked > 1 {
				return broken
			}
			return nil
		},
		HTTPClient: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
			sent++
			return respondWith(200, podList())(r)
		})},
	})
	_, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	_, err = source.Watch(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrAuthorize)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "http://login", "whose failure it was")
	require.Equal(t, 2, asked)
	require.Equal(t, 1, sent)
}

func TestTransportErrorsKeepTheirCauseWithoutTheQuery(t *testing.T) {
	for name, cause := range map[string]error{"EOF": io.EOF, "cut": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			source := newSource(
				t, server(func(*http.Request) (*http.Response, error) { return nil, cause }))
			_, err := source.List(metav1.ListOptions{Continue: "secret"})
			require.ErrorIs(t, err, cause)
			require.True(t, utilnet.IsProbableEOF(err))
			require.EqualError(t, err, `list "http://api.test/api/v1/pods": `+cause.Error())
		})
	}
}

func TestAnErrorResponseThatNeverEndsDoesNotBlock(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		is   func(error) bool
	}{
		"refusal":      {401, apierrors.IsUnauthorized},
		"content type": {200, func(err error) bool { return errors.Is(err, ErrContentType) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, writer := pipeBody()
				go func() { _, _ = io.WriteString(writer, "hold on") }()
				source := newSource(t, server(func(*http.Request) (*http.Response, error) {
					return newResponse(test.code, body, "Content-Type", "text/plain"), nil
				}))
				start := time.Now()
				_, err := source.Watch(metav1.ListOptions{})
				require.True(t, test.is(err), "%v", err)
				require.Equal(t, errorBodyTimeout, time.Since(start))
			})
		})
	}
}

// A caller's context may last as long as the program. A call must release everything that it
// attaches to the context.
func TestACallLeavesNothingOnItsContext(t *testing.T) {
	var request context.Context
	code := http.StatusOK
	source := newSource(t, server(func(r *http.Request) (*http.Response, error) {
		request = r.Context()
		if code == 0 {
			return nil, io.EOF
		}
		return respondWith(code, podList())(r)
	}))
	for _, code = range []int{http.StatusOK, http.StatusForbidden, 0} {
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.Equal(t, code == http.StatusOK, err == nil)
		require.Error(t, request.Err())
	}
	code = http.StatusOK
	w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, request.Err())
	w.Stop()
	require.Error(t, request.Err())
}

func TestConnectionRefusedIsRecognised(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	source := newSourceFor(t, Options{BaseURL: "http://" + l.Addr().String(), Resource: pods})
	_, err = source.List(metav1.ListOptions{})
	require.True(t, utilnet.IsConnectionRefused(err), "%v", err)
	_, err = source.Watch(metav1.ListOptions{})
	require.True(t, utilnet.IsConnectionRefused(err), "%v", err)
}

// The following tests use real sockets, because they test the effects of net/http's transport. None
// waits for time to pass.

func serveJSON(t *testing.T, serve http.HandlerFunc) *ListerWatcher {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		serve(w, r)
	}))
	t.Cleanup(s.Close)
	return newSourceFor(t, Options{BaseURL: s.URL, Resource: pods, HTTPClient: s.Client()})
}

func TestListsAndErrorResponsesReuseOneConnection(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, podList(podJSON("a", 1))+"\n")
		w.(http.Flusher).Flush() // chunked: the end of the body is a separate chunk
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	source := newSourceFor(t, Options{BaseURL: s.URL, Resource: pods, HTTPClient: s.Client()})
	for range 5 {
		_, err := source.List(metav1.ListOptions{})
		require.NoError(t, err)
		_, err = source.List(metav1.ListOptions{Limit: 1})
		require.True(t, apierrors.IsServiceUnavailable(err))
	}
	require.EqualValues(t, 1, connections.Load())
}

func TestListsAreRequestedCompressedAndWatchesAreNot(t *testing.T) {
	source := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			if r.Header.Get("Accept-Encoding") != "identity" {
				http.Error(w, "expected not to be asked for gzip", http.StatusNotAcceptable)
				return
			}
			_, _ = io.WriteString(w, frameJSON("ADDED", podJSON("a", 1)))
			return
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			http.Error(w, "expected to be asked for gzip", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		_, _ = io.WriteString(zip, podList(podJSON("a", 1)))
		_ = zip.Close()
	})
	list, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.NotNil(t, list)
	w, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	w.Stop()
}

func TestDisableCompressionRequestsIdentityAndRefusesCompressedBodies(t *testing.T) {
	asked := ""
	source := newSourceFor(t, Options{BaseURL: "http://h", Resource: pods, DisableCompression: true,
		HTTPClient: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
			asked = r.Header.Get("Accept-Encoding")
			return respondWith(200, "\x1f\x8b", "Content-Encoding", "gzip")(r)
		})}})
	_, err := source.List(metav1.ListOptions{})
	require.Equal(t, "identity", asked)
	require.ErrorIs(t, err, ErrContentType)
	require.ErrorContains(t, err, `content encoding "gzip"`)
}

func TestAConnectionClosedByTheServerIsAnError(t *testing.T) {
	source := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, podList(podJSON("a", 1)))
		} else {
			_, _ = io.WriteString(w, frameJSON("ADDED", podJSON("a", 1)))
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	// The JSON is complete. Only the missing chunk shows that the body is not.
	_, err := source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	w, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.True(t, apierrors.HasStatusCause(apierrors.FromObject(event.Object), CauseStreamCut))
	_, open := <-w.ResultChan()
	require.False(t, open)
	w.Stop()
}

func TestStopReachesTheServer(t *testing.T) {
	closed := make(chan struct{})
	source := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(closed)
	})
	w, err := source.WatchWithContext(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	w.Stop()
	<-closed
}
