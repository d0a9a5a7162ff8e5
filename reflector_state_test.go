package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// What a reflector remembers from one state to the next, each with the test that
// would notice if it forgot.

// S2: after a list at "0" came in pages, pages stay: that server has no cache to
// spare. They ask for a state at least as new, which a limit alone would not mean.
func TestPagingStaysOnAfterAListAtZeroCameInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 501 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) {
			c.ReflectorOptions.Strategy = ListAutomatic
			c.ListerWatcher = &ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext}
		})
		r.run()
		synctest.Wait()
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		var relist metav1.ListOptions
		for _, request := range source.Requests() {
			if request.Verb == cachetest.VerbList && request.Options.Continue == "" {
				relist = request.Options
			}
		}
		assert.Equal(t, metav1.ListOptions{
			ResourceVersion: "501", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 500,
		}, relist)
		r.equalsSource()
		r.stop()
	})
}

// S5: a watch from "0" begins with synthetic events, too.
func TestAWatchFromZeroBeginsWithSyntheticEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(version string) *object { o := pod("a", version); o.ResourceVersion = version; return o }
		source := &scripted{
			list: func(metav1.ListOptions) (apiruntime.Object, error) {
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "0"}}, nil
			},
			watch: func(context.Context, int) (watch.Interface, error) {
				return newProbe(watch.Event{Type: watch.Added, Object: at("9")}, watch.Event{Type: watch.Added, Object: at("4")}), nil
			},
		}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, NewReflector(source, nil, indexer, 0))
		assert.Equal(t, "0", indexer.LastStoreSyncResourceVersion())
		assert.Len(t, indexer.ListKeys(), 2)
		stop()
	})
}

// A source that repeats its continue token would be listed for ever.
func TestARepeatedContinueTokenIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			lists++
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5", Continue: "again"}}, nil
		}}
		err := NewReflector(source, nil, NewStore(MetaNamespaceKeyFunc), 0).ListAndWatchWithContext(t.Context())
		assert.ErrorContains(t, err, "continue token")
		assert.Equal(t, 2, lists)
	})
}

// S7: there is nothing to resync before there is a first state.
func TestNothingIsResyncedBeforeTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Hour)
		h := &heard{}
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, resyncFails{NewIndexer(MetaNamespaceKeyFunc, nil)},
			ReflectorOptions{ResyncPeriod: time.Minute, ErrorHandler: h.handle, Strategy: ListWhole}))
		sleep(59 * time.Minute)
		assert.Empty(t, h.all())
		sleep(2 * time.Minute)
		assert.NotEmpty(t, h.all())
		stop()
		source.Close()
	})
}

// "In a row" means in a row.
func TestAbsentNeedsThreeAnswersInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t), func(c *Config) { c.ReflectorOptions.Backoff = steady(time.Second) })
		absent := apierrors.NewNotFound(pods, "")
		for _, err := range []error{absent, absent, errBoom, absent, absent} {
			r.source.FailLists(1, err)
		}
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		for range 8 {
			synctest.Wait()
			assert.NotEqual(t, PhaseAbsent, r.status().Phase)
			sleep(time.Second)
		}
		assert.Equal(t, 9, r.status().ConsecutiveFailures)
		r.stop()
	})
}

// A reflector that fills its store itself is synced with its first list, not
// before, and says in its status where the store is.
func TestAReflectorByItselfSaysWhenItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Second)
		r := NewReflectorWithOptions(source, &object{}, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: ListWhole})
		stop := runReflector(t, r)
		assert.False(t, r.Status().Synced)
		assert.Empty(t, r.Status().AppliedVersion)
		sleep(2 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, "1", r.Status().AppliedVersion)
		stop()
		source.Close()

		withForeign := NewReflectorWithOptions(source, &object{}, &foreign{}, ReflectorOptions{})
		assert.Empty(t, withForeign.Status().AppliedVersion)
	})
}

// B8, re-creation: what a transform leaves of an object does not decide whether
// it is another one; what was received does.
func TestARecreatedObjectIsSeenThroughATransformThatDropsItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, func(c *Config) {
			c.Transform = func(obj any) (any, error) {
				o := obj.(*object).DeepCopy()
				o.UID = ""
				return o, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		_, err := source.DeleteSilently("a", "1")
		require.NoError(t, err)
		require.NoError(t, source.Apply(pod("a", "1")))
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, []string{"tombstone a/1", "add a/1@3"}, r.handler.take())
		r.stop()
	})
}
