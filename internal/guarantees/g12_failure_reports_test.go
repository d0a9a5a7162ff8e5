package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// unreadableObjectIndexer is an indexer whose GetByKey fails for one of the listed keys.
type unreadableObjectIndexer struct {
	cache.Indexer
	unreadable string
}

func (h unreadableObjectIndexer) GetByKey(key string) (any, bool, error) {
	if key == h.unreadable {
		return nil, false, errBoom
	}
	return h.Indexer.GetByKey(key)
}

// G12: an object that KnownObjects cannot return is reported by the queue's reflector: once for
// each list that deletes it with an empty tombstone, and for each resync that omits it. Neither
// ends the watch or the list. Fails if it is only logged, or fails the whole list.
func TestG12AKnownObjectThatCannotBeReadIsReported(t *testing.T) {
	for name, resyncs := range map[string]int{"by a list": 0, "by resyncs": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := processRig(t, newSource(t, pod("a", "1"), pod("a", "2")), func(c *cache.Config, _ *cache.DeltaFIFO, indexer cache.Indexer) {
					c.Queue = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: unreadableObjectIndexer{indexer, "a/1"}, EmitDeltaTypeReplaced: true})
					if resyncs > 0 {
						c.FullResyncPeriod = time.Minute
					}
				})
				r.run()
				synctest.Wait()
				require.Empty(t, r.errors.all())
				lists, failures := 1, resyncs
				if resyncs == 0 {
					_, err := r.source.DeleteSilently("a", "1")
					require.NoError(t, err)
					r.source.BreakWatches(cachetest.ErrExpired())
					lists, failures = 2, 1
				}
				sleep(3*time.Minute + time.Second)
				var reported []error
				for _, err := range r.errors.all() {
					if cache.CauseOf(err) != cache.CauseExpired {
						reported = append(reported, err)
					}
				}
				require.Len(t, reported, failures)
				for _, err := range reported {
					assertUnreadable(t, "a/1", err)
				}
				assert.Equal(t, reported[failures-1], r.status().LastFailure.Err)
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, lists, r.source.ListCalls())
				assert.Equal(t, 1, r.source.ActiveWatches())
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// assertUnreadable checks that an error only says that KnownObjects could not return one
// object.
func assertUnreadable(t *testing.T, key string, err error) {
	t.Helper()
	objects, other := splitObjectErrors(err)
	require.NoError(t, other)
	require.Len(t, objects, 1)
	assert.Equal(t, key, objects[0].Key)
	assert.Equal(t, causeInvalidObject, cache.CauseOf(objects[0]))
	var store *cache.StoreError
	require.ErrorAs(t, objects[0], &store)
	assert.Equal(t, cache.StoreError{Op: "GetByKey", Name: key, Err: errBoom}, *store)
}

// G12, B5: every failure reaches the error handler and the status, once, with a
// typed cause, wherever it happens: list, watch request, stream, streaming list.
// Fails if any of them is only logged, or reported by two places.
func TestG12EveryFailureIsReportedOnceWithItsCause(t *testing.T) {
	errs := map[cache.Cause]error{
		cache.CauseExpired:         cachetest.ErrExpired(),
		cache.CauseVersionTooLarge: cachetest.ErrTooLargeResourceVersion(9, 1),
		cache.CauseTooManyRequests: cachetest.ErrTooManyRequests(1),
		cache.CauseInternal:        cachetest.ErrInternal(),
		cache.CauseUnavailable:     apierrors.NewServiceUnavailable("later"),
		cache.CauseNotFound:        apierrors.NewNotFound(pods, ""),
		cache.CauseForbidden:       apierrors.NewForbidden(pods, "", errBoom),
		cache.CauseUnauthorized:    apierrors.NewUnauthorized("who"),
		cache.CauseBadRequest:      apierrors.NewBadRequest("no"),
	}
	onRequest := map[cache.Cause]error{cache.CauseConnectionRefused: cachetest.ErrConnectionRefused(), cache.CauseOther: errBoom}
	places := map[string]struct {
		fail      func(*cachetest.Source, error)
		change    func(*cache.Config)
		onRequest bool
	}{
		"list":    {fail: func(s *cachetest.Source, err error) { s.FailLists(1, err) }, onRequest: true},
		"watch":   {fail: func(s *cachetest.Source, err error) { s.FailWatches(1, err) }, onRequest: true},
		"stream":  {fail: func(s *cachetest.Source, err error) { s.BreakNextWatches(1, 0, err) }},
		"initial": {fail: func(s *cachetest.Source, err error) { s.BreakNextWatches(1, 1, err) }, change: stream},
	}
	for place, p := range places {
		all := []map[cache.Cause]error{errs}
		if p.onRequest {
			all = append(all, onRequest)
		}
		for _, group := range all {
			for cause, err := range group {
				t.Run(fmt.Sprintf("%s on %s", cause, place), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRig(t, newSource(t, pod("a", "1")), p.change)
						p.fail(r.source, err)
						r.run()
						sleep(3 * time.Minute)
						if cause == cache.CauseInternal && !p.onRequest {
							cause = causeStream
						}
						require.Equal(t, []cache.Cause{cause}, r.errors.causes())
						status := r.status()
						require.NotNil(t, status.LastFailure)
						assert.Equal(t, cause, status.LastFailure.Cause)
						assert.Equal(t, r.errors.all()[0], status.LastFailure.Err)
						assert.Zero(t, status.ConsecutiveFailures, "it has recovered")
						assert.Equal(t, cache.PhaseWatching, status.Phase)
						r.assertEqualsSource()
						r.stop()
					})
				})
			}
		}
	}
}

// G12: an error event is reported even if an earlier event of the same batch ended the watch. Fails
// if events after the one that ends a watch are dropped.
func TestG12AnErrorBehindTheEventThatEndsAWatchIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported errorRecorder
		watches := 0
		source := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewFakeWithChanSize(2, false)
				if watches++; watches == 1 {
					w.Action(watch.Bookmark, &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "4"}})
					w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: 500})
				}
				return w, nil
			},
		}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{ErrorHandler: reported.handle, Strategy: cache.ListPaged}))
		sleep(time.Minute)
		assert.ElementsMatch(t, []cache.Cause{"regression", causeStream}, reported.causes())
		stop()
	})
}

// G12: the failure of a check that outlives its watch is reported at once, during the pause after
// the watch. Fails if it is only reported afterwards: the context may end before.
func TestG12TheFailureOfACheckIsReportedDuringThePauseAfterItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported errorRecorder
		answer, cut := make(chan struct{}), make(chan struct{})
		watches := 0
		source := &cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				if isVersionCheck(options) {
					<-answer
					return nil, errBoom
				}
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				if watches++; watches == 1 {
					return nil, apierrors.NewTooManyRequests("busy", 0)
				}
				w := watch.NewFakeWithChanSize(1, false)
				go func() {
					<-cut
					w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: 429})
				}()
				return w, nil
			},
		}
		r := cache.NewReflectorWithOptions(source, &object{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{ErrorHandler: reported.handle, Strategy: cache.ListPaged, Backoff: steady(time.Minute)})
		stop := runReflector(t, r)
		sleep(time.Minute + 10*time.Second) // the second watch is open, and the check beside it waits
		close(cut)
		synctest.Wait()
		require.Equal(t, cache.PhasePaused, r.Status().Phase)
		require.Len(t, reported.all(), 2)
		close(answer)
		synctest.Wait()
		require.Equal(t, cache.PhasePaused, r.Status().Phase)
		require.Len(t, reported.all(), 3)
		assert.ErrorIs(t, reported.all()[2], errBoom)
		stop()
	})
}

// G12: the failure of a watch is reported at once, also while a check of the source's version
// hangs. Fails if the report waits for the check: the context may end before.
func TestG12TheFailureOfAWatchIsReportedWhileACheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		r.run()
		synctest.Wait()
		r.source.HangListsIgnoringContext(1)
		r.source.BreakWatches(apierrors.NewTooManyRequests("busy", 0))
		sleep(10 * time.Second) // the next watch is open, and the check beside it hangs
		require.Len(t, r.heard.all(), 1)
		broken := time.Now()
		r.source.BreakWatches(apierrors.NewTooManyRequests("busy", 0))
		synctest.Wait()
		require.Len(t, r.heard.all(), 2)
		require.Zero(t, time.Since(broken))
		r.cancel()
		synctest.Wait()
		r.source.ReleaseHanging()
		<-r.done
		require.Len(t, r.heard.all(), 2)
		r.source.Close()
	})
}
