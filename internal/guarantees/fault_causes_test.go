package guarantees

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// servedPods is an informer over HTTP, with its server and source.
type servedPods struct {
	*testing.T
	source   *cachetest.Source
	server   *cachetest.Server
	informer *cache.Informer[*unstructured.Unstructured]
	heard    *errorRecorder

	mu sync.Mutex
	// answer, if not nil, answers the next request instead of the source.
	answer http.HandlerFunc
}

func (s *servedPods) answerOnce(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *servedPods) takeAnswer() http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answer
	s.answer = nil
	return answer
}

// servePods makes a source with three pods, and an informer of it over HTTP that does not run
// yet. change may be nil.
func servePods(t *testing.T, change func(*cache.InformerConfig[*unstructured.Unstructured])) *servedPods {
	s := &servedPods{T: t, heard: &errorRecorder{}, source: cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})}
	for i := range 3 {
		s.apply(itoa(i+1), "good")
	}
	handler := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: s.source}},
	})
	s.server = cachetest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := s.takeAnswer(); answer != nil {
			answer(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	api, err := kubeapi.New(kubeapi.Options{BaseURL: s.server.URL, Resource: podResource, HTTPClient: s.server.Client()})
	require.NoError(t, err)
	config := cache.InformerConfig[*unstructured.Unstructured]{ReflectorOptions: cache.ReflectorOptions{
		Strategy: cache.ListPaged, ErrorHandler: s.heard.handle,
	}}
	if change != nil {
		change(&config)
	}
	s.informer = cache.NewTypedInformer(api, config)
	return s
}

// run runs the informer until the test ends, and then closes the server.
func (s *servedPods) run() {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- s.informer.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		assert.NoError(s, <-done)
		s.server.Close()
		s.source.Close()
	})
}

func (s *servedPods) apply(name, value string) {
	require.NoError(s, s.source.Apply(unstructuredPod("a", name, value)))
}

// failWatch closes the watch, which is no failure, and refuses the next one.
func failWatch(err error) func(*servedPods) {
	return func(s *servedPods) {
		s.source.FailWatches(1, err)
		s.source.CloseWatches()
	}
}

// sendOnWatch closes the watch. The next one sends bytes and is then cut or, if stays is set,
// silent.
func sendOnWatch(text string, stays bool) func(*servedPods) {
	return func(s *servedPods) {
		s.answerOnce(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
			if stays {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		})
		s.source.CloseWatches()
	}
}

func refuseBad(obj *unstructured.Unstructured) error {
	if obj.GetLabels()["v"] == "bad" {
		return errBoom
	}
	return nil
}

// singleFault is a fault that occurs once.
type singleFault struct {
	cause cache.Cause
	// quarantines is true if the fault quarantines object a/2.
	quarantines bool
	change      func(*cache.InformerConfig[*unstructured.Unstructured])
	// before is called before the informer runs, happens two minutes later.
	before, happens func(*servedPods)
	// within bounds the time until the fault shows in the status; repairs ends it.
	within  time.Duration
	repairs func(*servedPods)
}

func singleFaults() map[string]singleFault {
	makeBad := func(s *servedPods) { s.apply("2", "bad") }
	makeGood := func(s *servedPods) { s.apply("2", "good") }
	return map[string]singleFault{
		"refused": {
			cause:   cache.CauseConnectionRefused,
			before:  func(s *servedPods) { s.server.Listener.RefuseConnections(true) },
			repairs: func(s *servedPods) { s.server.Listener.RefuseConnections(false) },
		},
		"401":                {cause: cache.CauseUnauthorized, happens: failWatch(apierrors.NewUnauthorized("no token"))},
		"403":                {cause: cache.CauseForbidden, happens: failWatch(apierrors.NewForbidden(pods, "", errBoom))},
		"404":                {cause: cache.CauseNotFound, happens: failWatch(apierrors.NewNotFound(pods, ""))},
		"410":                {cause: cache.CauseExpired, happens: failWatch(cachetest.ErrExpired())},
		"429":                {cause: cache.CauseTooManyRequests, happens: failWatch(cachetest.ErrTooManyRequests(1))},
		"500 on the request": {cause: cache.CauseInternal, happens: failWatch(cachetest.ErrInternal())},
		"500 on the stream":  {cause: causeStream, happens: func(s *servedPods) { s.source.BreakWatches(cachetest.ErrInternal()) }},
		"half-open": {
			cause: cache.CauseOverdueWatch,
			change: func(c *cache.InformerConfig[*unstructured.Unstructured]) {
				c.ReflectorOptions.MinWatchTimeout, c.ReflectorOptions.MaxWatchTimeout = time.Minute, time.Minute
			},
			happens: func(s *servedPods) { s.server.Listener.Freeze() },
			within:  time.Minute + watchGrace,
			repairs: func(s *servedPods) { s.server.Listener.Thaw() },
		},
		"truncated frame": {cause: cache.CauseConnectionLost, happens: sendOnWatch(`{"type":"MODIFIED","object":{"metadata":{"na`, false)},
		"damaged frame":   {cause: cache.CauseInvalidResponse, happens: sendOnWatch(`{"type":"MODIFIED","object":{"metadata":}}`+"\n", true)},
		"undecodable item": {
			cause: causeInvalidObject, quarantines: true,
			before: func(s *servedPods) {
				s.answerOnce(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[%s,%s,%s]}`,
						wirePod("1", "1", false), wirePod("2", "2", true), wirePod("3", "3", false))
				})
			},
			repairs: func(s *servedPods) { // the source's own objects have other UIDs
				s.apply("1", "good")
				s.apply("2", "good")
				s.apply("3", "good")
			},
		},
		"transform error": {
			cause: causeTransform, quarantines: true, happens: makeBad, repairs: makeGood,
			change: func(c *cache.InformerConfig[*unstructured.Unstructured]) {
				c.Transform = func(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) { return obj, refuseBad(obj) }
			},
		},
		"index error": {
			cause: causeIndex, quarantines: true, happens: makeBad, repairs: makeGood,
			change: func(c *cache.InformerConfig[*unstructured.Unstructured]) {
				c.Indexes = cache.TypedIndexers[*unstructured.Unstructured]{
					"picky": func(obj *unstructured.Unstructured) ([]string, error) { return nil, refuseBad(obj) },
				}
			},
		},
		"restored server": {
			cause: causeRegression, within: 3 * time.Second,
			happens: func(s *servedPods) {
				away := true
				s.source.OnWatch(func(metav1.ListOptions) error {
					if away {
						time.Sleep(time.Second)
					}
					away = false
					return nil
				})
				require.NoError(s, s.source.Rollback(2))
			},
		},
	}
}

// Each fault is in the status within a second, with a unique cause, and the error handler receives
// it once; then the informer recovers. Fails if one is only logged, counted twice or misclassified.
func TestEachFaultHasACauseOfItsOwnInTheStatus(t *testing.T) {
	seen := map[cache.Cause]string{}
	for name, f := range singleFaults() {
		require.Empty(t, seen[f.cause], "%s has the cause of another fault", name)
		seen[f.cause] = name
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := servePods(t, f.change)
				if f.before != nil {
					f.before(s)
				}
				s.run()
				if f.happens != nil {
					sleep(2 * time.Minute)
					require.Empty(t, s.heard.all())
					f.happens(s)
				}
				for began := time.Now(); len(s.heard.all()) == 0; sleep(100 * time.Millisecond) {
					require.LessOrEqual(t, time.Since(began), f.within+time.Second, "it does not show")
				}
				status, errs := s.informer.Status(), s.heard.all()
				require.Len(t, errs, 1)
				require.NotNil(t, status.LastFailure)
				assert.Equal(t, f.cause, status.LastFailure.Cause)
				assert.Equal(t, errs[0], status.LastFailure.Err)
				assert.LessOrEqual(t, time.Since(status.LastFailure.Time), time.Second)
				assert.Equal(t, map[cache.Cause]int64{f.cause: 1}, status.Failures)
				assert.Equal(t, f.quarantines, len(status.Quarantined) == 1)

				if f.repairs != nil {
					f.repairs(s)
				}
				sleep(5 * time.Minute)
				assert.Equal(t, errs, s.heard.all(), "reported once")
				assert.NoError(t, s.informer.Verify(t.Context()))
				assert.Equal(t, cache.PhaseWatching, s.informer.Status().Phase)
				assert.Empty(t, s.informer.Status().Quarantined)
				assert.Equal(t, len(s.source.Objects()), s.informer.Len())
			})
		})
	}
}
