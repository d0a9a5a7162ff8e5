package kubeapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// pieces is a server that sends a stream in pieces, with a pause before each.
func pieces(pause time.Duration, pieces ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(pause)
			}
			flush(w, piece)
		}
		<-r.Context().Done()
	})
}

func overHTTP(t *testing.T, handler http.Handler, test func(t *testing.T, w watch.Interface)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := cachetest.NewServer(handler)
		defer server.Close()
		source := newSourceFor(
			t, Options{BaseURL: server.URL, Resource: pods, HTTPClient: server.Client()})
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		test(t, w)
	})
}

func TestASlowFrameDoesNotTimeOut(t *testing.T) {
	var slow []string
	for range 60 {
		slow = append(slow, strings.Repeat("x", 8<<10))
	}
	slow = append(append([]string{`{"type":"ADDED","object":{"data":"`}, slow...), `"}}`)
	overHTTP(
		t,
		pieces(time.Second, append(slow, slow...)...),
		func(t *testing.T, w watch.Interface) {
			for range 2 {
				require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
			}
		},
	)
}

// The beginning of the next frame may arrive with the previous one.
func TestTimeOfTheConsumerDoesNotCountForAFrame(t *testing.T) {
	good := frameJSON("ADDED", podJSON("a", 1))
	overHTTP(
		t,
		pieces(5*time.Second, good+good[:20], good[20:]),
		func(t *testing.T, w watch.Interface) {
			time.Sleep(time.Hour)
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		},
	)
}

func TestAFrameTimeoutIsReturnedByLaterReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, _ := pipeBody()
		r := newFrameReader(body, func() { _ = body.Close() })
		r.inFrame = func() bool { return true }
		_, err := r.Read(make([]byte, 1))
		require.ErrorIs(t, err, ErrStalled)
		_, again := r.Read(make([]byte, 1))
		require.Equal(t, err, again)
		require.NotErrorIs(t, err, io.EOF)
	})
}
