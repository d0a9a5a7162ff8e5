package kubeapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// readWithStallTimer makes one request like a list, and reads its body to the end or until it
// fails. It returns how long that took.
func readWithStallTimer(
	t *testing.T, client *http.Client, url string, s *stallTimer, ctx context.Context, each func(),
) (int, time.Duration, error) {
	t.Helper()
	defer s.stop()
	begun := time.Now()
	s.beginWait()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, time.Since(begun), err
	}
	defer func() { _ = response.Body.Close() }()
	body := s.reader(response.Body)
	total := 0
	for buffer := make([]byte, 512); ; {
		n, err := body.Read(buffer)
		total += n
		if err == io.EOF {
			return total, time.Since(begun), nil
		}
		if err != nil {
			return total, time.Since(begun), err
		}
		each()
	}
}

// onStall runs a test in a bubble, with its own server and a limit of one minute.
func onStall(
	t *testing.T, handler http.HandlerFunc,
	test func(*testing.T, *cachetest.Server, *stallTimer, context.Context),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := cachetest.NewServer(handler)
		defer server.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		test(t, server, newStallTimer(time.Minute, cancel), ctx)
	})
}

func flush(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func nothing() {}

func TestMissingHeadersEndTheRequestAfterTheLimit(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, _ *http.Request) { flush(w, "x") },
		func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
			server.Listener.Freeze()
			_, took, err := readWithStallTimer(t, server.Client(), server.URL, s, ctx, nothing)
			require.ErrorIs(t, err, context.Canceled)
			require.Error(t, s.err())
			require.Equal(t, time.Minute, took)
			server.Listener.Thaw()
		})
}

func TestABodyThatStopsEndsTheRequestAfterTheLimit(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w, "x")
		time.Sleep(50 * time.Second)
		flush(w, "y")
		<-r.Context().Done()
	}, func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
		n, took, err := readWithStallTimer(t, server.Client(), server.URL, s, ctx, nothing)
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, s.err())
		require.Equal(t, 2, n)
		require.Equal(t, 50*time.Second+time.Minute, took)
	})
}

func TestAFrozenConnectionEndsTheRequestAfterTheLimit(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w, "x")
		time.Sleep(10 * time.Second)
		flush(w, "lost")
	}, func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
		n, took, err := readWithStallTimer(
			t, server.Client(), server.URL, s, ctx, server.Listener.Freeze)
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, s.err())
		require.Equal(t, 1, n)
		require.Equal(t, time.Minute, took)
		server.Listener.Thaw()
	})
}

func TestASlowBodyIsReadToItsEnd(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(59 * time.Second)
		for range 60 {
			flush(w, strings.Repeat("x", 59*minListRate))
			time.Sleep(59 * time.Second)
		}
	}, func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
		n, took, err := readWithStallTimer(t, server.Client(), server.URL, s, ctx, nothing)
		require.NoError(t, err)
		require.NoError(t, s.err())
		require.Equal(t, 60*59*minListRate, n)
		require.Equal(t, 61*59*time.Second, took)
	})
}

// Fails if an occasional byte keeps a request open forever.
func TestABodyThatTricklesEndsTheRequestAfterFourTimesTheLimit(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			flush(w, "x")
			time.Sleep(10 * time.Second)
		}
	}, func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
		_, took, err := readWithStallTimer(t, server.Client(), server.URL, s, ctx, nothing)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualError(
			t, s.err(), "the response stalled: less than 1024 bytes per second for 4m0s")
		require.InDelta(t, (4 * time.Minute).Seconds(), took.Seconds(), 1)
		server.Listener.CutConnections()
	})
}

// The caller that receives the objects may be slow, even if the server stops sending meanwhile: the
// wait begins with the next Read.
func TestTimeInWhichNobodyReadsDoesNotCount(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w, strings.Repeat("x", 512))
		<-r.Context().Done()
	}, func(t *testing.T, server *cachetest.Server, s *stallTimer, ctx context.Context) {
		n, took, err := readWithStallTimer(t, server.Client(), server.URL, s, ctx, func() {
			time.Sleep(time.Hour)
			require.NoError(t, s.err())
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, s.err())
		require.Equal(t, 512, n)
		require.Equal(t, time.Hour+time.Minute, took)
	})
}

func TestTimeBetweenHeadersAndBodyDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStallTimer(time.Minute, cancel)
		s.beginWait()
		time.Sleep(59 * time.Second)
		s.endWait(0)
		time.Sleep(time.Hour)
		require.NoError(t, s.err())
		require.NoError(t, ctx.Err())
		cancel()
	})
}

// If there is a body, the headers have arrived, even without a notification.
func TestABodyInHandEndsTheWaitForHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStallTimer(time.Minute, cancel)
		s.beginWait()
		s.reader(strings.NewReader(""))
		time.Sleep(time.Hour)
		require.NoError(t, s.err())
		require.NoError(t, ctx.Err())
		cancel()
	})
}

func TestWithoutALimitARequestWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStallTimer(0, cancel)
		s.beginWait()
		body, writer := io.Pipe()
		reader := s.reader(body)
		time.AfterFunc(24*time.Hour, func() { _ = writer.Close() })
		data, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Empty(t, data)
		require.NoError(t, s.err())
		require.NoError(t, ctx.Err())
		s.stop()
		cancel()
	})
}

func TestAStoppedStallTimerCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStallTimer(time.Minute, cancel)
		s.stop() // before the first wait
		s.beginWait()
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())

		s = newStallTimer(time.Minute, cancel)
		s.beginWait()
		s.stop() // during one
		s.stop()
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())
		_, err := s.reader(strings.NewReader("x")).Read(make([]byte, 1))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())
		require.NoError(t, s.err())
		cancel()
	})
}

// An expired timer may run only after the bytes have arrived and the next wait has begun. It must
// not end that wait.
func TestALateTimerDoesNotEndTheNextWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStallTimer(time.Minute, cancel)
		s.expire()
		s.beginWait()
		s.endWait(0)
		s.expire()
		s.beginWait()
		time.Sleep(59 * time.Second)
		s.expire()
		require.NoError(t, ctx.Err())
		require.NoError(t, s.err())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Error(t, ctx.Err())
		require.Error(t, s.err())
		s.stop()
		require.Error(t, s.err(), "it is asked for after the call, too")
	})
}

func TestStopWaitsForARunningCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Bool
		s := newStallTimer(time.Minute, func() { time.Sleep(time.Second); cancelled.Store(true) })
		s.beginWait()
		time.Sleep(time.Minute)
		synctest.Wait() // in the middle of cancel
		require.Error(t, s.err())
		require.False(t, cancelled.Load())
		s.stop()
		require.True(t, cancelled.Load())
	})
}

func TestTheStallReaderReturnsTheBodysResults(t *testing.T) {
	s := newStallTimer(time.Hour, nothing)
	defer s.stop()
	data, err := io.ReadAll(s.reader(bytes.NewReader(make([]byte, 1<<20))))
	require.NoError(t, err)
	require.Len(t, data, 1<<20)
	cut := io.MultiReader(strings.NewReader("x"), errReader{io.ErrUnexpectedEOF})
	_, err = io.ReadAll(s.reader(cut))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// Uses a real socket, in real time.
func TestASilentSocketEndsTheRequest(t *testing.T) {
	for name, before := range map[string]string{"headers": "", "body": "x"} {
		t.Run(name, func(t *testing.T) {
			silent := httptest.NewServer(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if before != "" {
						flush(w, before)
					}
					<-r.Context().Done()
				}),
			)
			defer silent.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := newStallTimer(200*time.Millisecond, cancel)
			_, _, err := readWithStallTimer(t, silent.Client(), silent.URL, s, ctx, nothing)
			require.ErrorIs(t, err, context.Canceled)
			require.Error(t, s.err())
		})
	}
}

// podsOf returns a source whose lists may stall for a minute.
func podsOf(t *testing.T, server *cachetest.Server) *ListerWatcher {
	t.Helper()
	return newSourceFor(t, Options{
		BaseURL: server.URL, Resource: pods, HTTPClient: server.Client(), StallTimeout: time.Minute,
	})
}

func TestAStalledListReturnsErrStalled(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("continue") == "" {
			flush(w, `{"kind":"PodList","apiVersion":"v1","items":[`)
		}
		<-r.Context().Done()
	}, func(t *testing.T, server *cachetest.Server, _ *stallTimer, _ context.Context) {
		source := podsOf(t, server)
		for _, token := range []string{"", "none of the headers"} {
			begun := time.Now()
			_, err := source.ListWithContext(t.Context(), metav1.ListOptions{Continue: token})
			require.ErrorIs(t, err, ErrStalled)
			require.NotErrorIs(t, err, context.Canceled, "it was not the caller who gave up")
			require.ErrorContains(t, err, "1m0s")
			require.Equal(t, time.Minute, time.Since(begun))
		}

		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		_, err := source.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrStalled)
	})
}

func TestAListWaitsForTheReceiverOfItsItems(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(
			w,
			podList(
				podJSON("a", 1), podJSON("b", 2), `{"metadata":{"name":"c"},"s":`+quoted(1<<20)+`}`,
			),
		)
	}, func(t *testing.T, server *cachetest.Server, _ *stallTimer, _ context.Context) {
		items := 0
		_, err := podsOf(
			t, server).ListItems(
			t.Context(),
			metav1.ListOptions{},
			func(metav1.ListMeta, runtime.Object) error {
				items++
				time.Sleep(time.Hour)
				return nil
			},
		)
		require.NoError(t, err)
		require.Equal(t, 3, items)
	})
}

func TestAWatchMayBeSilentForLong(t *testing.T) {
	onStall(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		time.Sleep(time.Hour)
		flush(w, "")
		time.Sleep(time.Hour)
		flush(w, frameJSON("ADDED", podJSON("a", 1)))
	}, func(t *testing.T, server *cachetest.Server, _ *stallTimer, _ context.Context) {
		w, err := podsOf(t, server).WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
	})
}
