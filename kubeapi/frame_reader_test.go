package kubeapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// pieces is a server that sends a stream in pieces, each so long after the one before it.
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
		source := newSourceFor(t, Options{BaseURL: server.URL, Resource: pods, HTTPClient: server.Client()})
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		test(t, w)
	})
}

// B24. Fails if a stream may be silent in the middle of a frame.
func TestB24AFrameThatDoesNotEndIsGivenUp(t *testing.T) {
	good := frameJSON("ADDED", podJSON("a", 1))
	overHTTP(t, pieces(time.Hour, good, good+`{"type":"ADDED","object":{"metadata"`), func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, time.Hour, time.Since(begun), "between two frames it may be silent")
		event := <-w.ResultChan()
		require.Equal(t, watch.Error, event.Type)
		require.Equal(t, time.Hour+10*time.Second, time.Since(begun))
		err := apierrors.FromObject(event.Object)
		require.True(t, apierrors.HasStatusCause(err, CauseStreamCut))
		require.ErrorContains(t, err, ErrStalled.Error()+": a watch frame has not ended 10s after it began")
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
}

// B24. Later events make such a frame longer, but not fast enough.
func TestB24AFrameThatGrowsByLaterEventsIsGivenUp(t *testing.T) {
	var body []string
	for range 100 {
		body = append(body, `"a":{},`)
	}
	overHTTP(t, pieces(time.Second, append([]string{`{"type":"ADDED","object":{`}, body...)...), func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		require.Equal(t, watch.Error, (<-w.ResultChan()).Type)
		require.InDelta(t, 10, time.Since(begun).Seconds(), 0.1)
	})
}

func TestASlowFrameIsNotGivenUp(t *testing.T) {
	var slow []string
	for range 60 {
		slow = append(slow, strings.Repeat("x", 8<<10))
	}
	slow = append(append([]string{`{"type":"ADDED","object":{"data":"`}, slow...), `"}}`)
	overHTTP(t, pieces(time.Second, append(slow, slow...)...), func(t *testing.T, w watch.Interface) {
		for range 2 {
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		}
	})
}

// A part of the next frame may have come with the one before it.
func TestTheTimeOfAConsumerIsNotThatOfAFrame(t *testing.T) {
	good := frameJSON("ADDED", podJSON("a", 1))
	overHTTP(t, pieces(5*time.Second, good+good[:20], good[20:]), func(t *testing.T, w watch.Interface) {
		time.Sleep(time.Hour)
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	})
}

func TestAFailureOfAFrameStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, _ := pipeBody()
		r := newFrameReader(body, func() { _ = body.Close() })
		r.begun = func() bool { return true }
		_, err := r.Read(make([]byte, 1))
		require.ErrorIs(t, err, ErrStalled)
		_, again := r.Read(make([]byte, 1))
		require.Equal(t, err, again)
		require.NotErrorIs(t, err, io.EOF)
	})
}

// B24. Fails if a string may have a line break in it.
func TestB24ALostQuoteIsNoticedAtTheEndOfItsLine(t *testing.T) {
	damaged := strings.Replace(frameJSON("ADDED", podJSON("a", 1)), `:"a"`, `:"a `, 1)
	overHTTP(t, pieces(time.Hour, damaged), func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		event := <-w.ResultChan()
		require.Equal(t, watch.Error, event.Type)
		require.Zero(t, time.Since(begun))
		require.True(t, apierrors.HasStatusCause(apierrors.FromObject(event.Object), CauseBadFrame))
	})
}
