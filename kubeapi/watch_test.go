package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watched returns everything that a watch of this body delivers. The bubble fails the test if the
// watch leaves a goroutine.
func watched(t *testing.T, body io.Reader) (events []watch.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		closed := &closing{Reader: body}
		w, err := newSource(t, server(func(*http.Request) (*http.Response, error) {
			return newResponse(200, closed), nil
		})).Watch(metav1.ListOptions{})
		require.NoError(t, err)
		for event := range w.ResultChan() {
			events = append(events, event)
		}
		require.True(t, closed.closed)
	})
	return events
}

// delivered returns everything that a watch delivers until it ends.
func delivered(t *testing.T, source *ListerWatcher) (events []watch.Event) {
	t.Helper()
	w, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	for event := range w.ResultChan() {
		events = append(events, event)
	}
	return events
}

func TestWatchDeliversEachTypeOfFrame(t *testing.T) {
	source := newSource(t, respondWith(200,
		frameJSON("ADDED", podJSON("a", 1))+
			frameJSON(
				"MODIFIED",
				`{"kind":"Pod","apiVersion":"v1","spec":{"n":9007199254740993,"f":1.5}}`,
			)+
			frameJSON("DELETED", podJSON("a", 3))+
			frameJSON(
				"BOOKMARK",
				`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`,
			)+
			frameJSON("NOVEL", podJSON("b", 4))))
	events := delivered(t, source)
	require.Equal(
		t,
		[]watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error},
		types(events), "the last one may have been damaged on the way, and is asked for again")
	require.True(t, apierrors.HasStatusCause(apierrors.FromObject(events[4].Object), CauseBadFrame))
	events = delivered(t, source)
	require.Equal(
		t, []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, "NOVEL"},
		types(events))
	require.Equal(t, "a", unstructuredOf(t, events[0]).GetName())
	require.Equal(
		t, map[string]any{"n": int64(9007199254740993), "f": 1.5},
		unstructuredOf(t, events[1]).Object["spec"])
	require.Equal(t, "9", unstructuredOf(t, events[3]).GetResourceVersion())
	require.Equal(
		t, "true", unstructuredOf(t, events[3]).GetAnnotations()[metav1.InitialEventsAnnotationKey])
	require.Equal(
		t, "b", unstructuredOf(t, events[4]).GetName(),
		"a type nobody knows yet is the consumer's to report")
}

func types(events []watch.Event) (types []watch.EventType) {
	for _, event := range events {
		types = append(types, event.Type)
	}
	return types
}

func unstructuredOf(t *testing.T, event watch.Event) *unstructured.Unstructured {
	t.Helper()
	require.IsType(t, &unstructured.Unstructured{}, event.Object)
	return event.Object.(*unstructured.Unstructured)
}

func TestFramesNeedNoLineEnds(t *testing.T) {
	stream := strings.ReplaceAll(
		frameJSON("ADDED", podJSON("a", 1))+frameJSON("ADDED", podJSON("b", 2)), "\n", "")
	require.Len(t, watched(t, strings.NewReader(stream)), 2)
	require.Len(t, watched(t, iotest.OneByteReader(strings.NewReader(" \n"+stream+"\r\n"))), 2)
}

func TestTheServersErrorFrameArrivesAsItsStatus(t *testing.T) {
	events := watched(t, strings.NewReader(frameJSON("ERROR",
		statusJSON("429", "TooManyRequests", `,"details":{"retryAfterSeconds":3}`))))
	require.Len(t, events, 1)
	require.Equal(t, watch.Error, events[0].Type)
	require.IsType(t, &metav1.Status{}, events[0].Object)
	err := apierrors.FromObject(events[0].Object)
	require.True(t, apierrors.IsTooManyRequests(err))
	seconds, _ := apierrors.SuggestsClientDelay(err)
	require.Equal(t, 3, seconds)
	require.False(t, apierrors.HasStatusCause(err, CauseStreamCut))
	require.False(t, apierrors.HasStatusCause(err, CauseBadFrame))
}

func TestABrokenWatchEndsWithAnErrorEventThatSaysHow(t *testing.T) {
	for name, test := range map[string]struct {
		rest  io.Reader
		cause metav1.CauseType
		text  string
	}{
		"body ends in a frame": {
			strings.NewReader(`{"type":"ADDED","obj`), CauseStreamCut,
			"stream failed: unexpected EOF",
		},
		"connection cut in between": {
			iotest.ErrReader(io.ErrUnexpectedEOF), CauseStreamCut, "stream failed: unexpected EOF",
		},
		"connection reset": {
			iotest.ErrReader(errors.New("connection reset by peer")), CauseStreamCut,
			"reset by peer",
		},
		"no JSON": {strings.NewReader("<html>"), CauseBadFrame, "'<'"},
		"no frame, but a list": {
			strings.NewReader(podList()), CauseBadFrame, "a PodList in place of a watch frame",
		},
		"no type": {strings.NewReader(`{}`), CauseBadFrame, "without type"},
		"no object": {
			strings.NewReader(`{"type":"ADDED"}`), CauseBadFrame, `"ADDED" without object`,
		},
		"object is null": {
			strings.NewReader(frameJSON("ADDED", "null")), CauseBadFrame, "without object",
		},
		"frame is an array": {strings.NewReader(`[]`), CauseBadFrame, "array"},
		"ERROR with another object": {
			strings.NewReader(frameJSON("ERROR", podJSON("a", 1))), CauseBadFrame,
			"without a failure Status",
		},
		"ERROR with a success": {
			strings.NewReader(frameJSON("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Success"}`)),
			CauseBadFrame, "without a failure Status",
		},
		"ERROR with a broken Status": {
			strings.NewReader(frameJSON("ERROR", statusJSON(`"x"`, "Expired", ""))), CauseBadFrame,
			"without a failure Status",
		},
		"frame too large": {
			strings.NewReader(frameJSON("ADDED", object(defaultItemBytes))), CauseBadFrame,
			ErrTooLarge.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := watched(
				t,
				io.MultiReader(strings.NewReader(frameJSON("ADDED", podJSON("a", 1))), test.rest),
			)
			require.Equal(t, []watch.EventType{watch.Added, watch.Error}, types(events))
			err := apierrors.FromObject(events[1].Object)
			require.IsType(t, &apierrors.StatusError{}, err)
			require.True(t, apierrors.HasStatusCause(err, test.cause))
			require.ErrorContains(t, err, "watch http://api.test/api/v1/pods: ")
			require.ErrorContains(t, err, test.text)
			// Each of these would make the consumer do something that only a server may cause.
			for _, is := range []func(error) bool{
				apierrors.IsInternalError, apierrors.IsTooManyRequests, apierrors.IsResourceExpired,
				apierrors.IsGone,
				apierrors.IsTimeout, apierrors.IsServerTimeout, apierrors.IsInvalid,
				apierrors.IsNotFound,
			} {
				require.False(t, is(err))
			}
			_, delay := apierrors.SuggestsClientDelay(err)
			require.False(t, delay)
		})
	}
}

func TestFramesAfterALargeOneAreNotLost(t *testing.T) {
	large := frameJSON("ADDED", `{"metadata":{"name":"large"},"data":`+quoted(1<<20)+`}`)
	events := watched(t, strings.NewReader(large+frameJSON("ADDED", podJSON("a", 1))+large))
	require.Equal(t, []watch.EventType{watch.Added, watch.Added, watch.Added}, types(events))
	require.Equal(t, "a", unstructuredOf(t, events[1]).GetName())
}

func TestAnOpenWatchDoesNotHoldOnToALargeFrame(t *testing.T) {
	const size = 12 << 20
	synctest.Test(t, func(t *testing.T) {
		w, writer := opened(t, t.Context())
		before := heapBytes()
		go func() {
			for _, part := range []string{
				`{"type":"ADDED","object":{"data":"`, strings.Repeat("x", size), `"}}`,
			} {
				_, _ = io.WriteString(writer, part)
			}
		}()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		synctest.Wait()
		require.Less(t, heapBytes()-before, int64(size/2))
		w.Stop()
	})
}

// opened returns a watch whose stream the test writes, frame by frame.
func opened(t *testing.T, ctx context.Context) (watch.Interface, *io.PipeWriter) {
	t.Helper()
	body, writer := pipeBody()
	w, err := newSource(t, server(func(*http.Request) (*http.Response, error) {
		return newResponse(200, body), nil
	})).WatchWithContext(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	return w, writer
}

func TestWatchReturnsWithTheHeadersAndDeliversAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w, writer := opened(t, t.Context())
		for range 3 {
			_, err := io.WriteString(writer, frameJSON("ADDED", podJSON("a", 1)))
			require.NoError(t, err)
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
			time.Sleep(time.Hour)
		}
		require.NoError(t, writer.Close())
		_, open := <-w.ResultChan()
		require.False(t, open, "a stream that ends in good order is no error")
		require.Equal(t, 3*time.Hour, time.Since(start), "nothing else took time")
		w.Stop()
	})
}

// The bubble fails if a goroutine remains. Stop and the end of the context must work although
// nothing more is written to the stream.
func TestStopAndContextEndTheWatchWhereverItIs(t *testing.T) {
	states := map[string]func(*io.PipeWriter){
		"waiting for the stream": func(*io.PipeWriter) {},
		"in the middle of a frame": func(w *io.PipeWriter) {
			_, _ = io.WriteString(w, `{"type":"ADD`)
		},
		"waiting for the consumer": func(w *io.PipeWriter) {
			_, _ = io.WriteString(w, frameJSON("ADDED", podJSON("a", 1)))
		},
		"waiting to deliver an error": func(w *io.PipeWriter) {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		},
	}
	ends := map[string]func(watch.Interface, context.CancelFunc){
		"Stop":    func(w watch.Interface, _ context.CancelFunc) { w.Stop() },
		"context": func(_ watch.Interface, cancel context.CancelFunc) { cancel() },
	}
	for stateName, reach := range states {
		for endName, end := range ends {
			t.Run(stateName+", "+endName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w, writer := opened(t, ctx)
					reach(writer)
					synctest.Wait()
					end(w, cancel)
					event, open := <-w.ResultChan()
					require.False(t, open, "an end that was asked for is no error: %v", event)
					w.Stop()
					require.Zero(t, time.Since(start))
				})
			})
		}
	}
}

func TestStopMayBeCalledByManyAtOnceAndWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := opened(t, t.Context())
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				w.Stop()
				<-w.(*watcher).done // would deadlock the bubble if Stop had not waited
			})
		}
		callers.Wait()
		w.Stop()
	})
}

func TestStopWaitsUntilTheBodyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &slowClose{gate: make(chan struct{})}
		w, err := newSource(t, server(func(*http.Request) (*http.Response, error) {
			return newResponse(200, body), nil
		})).Watch(metav1.ListOptions{})
		require.NoError(t, err)
		stopped := make(chan struct{})
		go func() { w.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("Stop returned while the body was being closed")
		default:
		}
		close(body.gate)
		<-stopped
	})
}

type slowClose struct{ gate chan struct{} }

func (s *slowClose) Read([]byte) (int, error) { <-s.gate; return 0, io.EOF }
func (s *slowClose) Close() error             { <-s.gate; return nil }

func TestWatchEndsAtOnceWithItsContextBeforeTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, server(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := source.WatchWithContext(ctx, metav1.ListOptions{})
		require.Nil(t, w)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `watch "http://api.test/api/v1/pods": `)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestWatchThatIsNotDeclaredAsJSONIsRefused(t *testing.T) {
	w, err := newSource(
		t, respondWith(200, "<html><title>Log in</title>", "Content-Type", "text/html")).Watch(
		metav1.ListOptions{})
	require.Nil(t, w)
	require.ErrorIs(t, err, ErrContentType)
	require.ErrorContains(t, err, "Log in")
}
