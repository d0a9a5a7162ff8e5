package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// S13: a streaming list is one request, gives the same state as a list, and goes
// on as the watch.
func TestAStreamingListIsOneRequestAndGoesOnAsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1234 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) { c.ReflectorOptions.Strategy = ListAutomatic })
		r.run()
		synctest.Wait()
		assert.True(t, r.ctlr.HasSynced())
		r.equalsSource()
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		require.NoError(t, source.Apply(pod("b", "later")))
		synctest.Wait()
		r.equalsSource()
		require.Len(t, source.Requests(), 1)
		options := source.Requests()[0].Options
		assert.True(t, *options.SendInitialEvents)
		assert.Equal(t, metav1.ResourceVersionMatchNotOlderThan, options.ResourceVersionMatch)
		assert.True(t, options.AllowWatchBookmarks)
		r.stop()
	})
}

// S13: an answer that says that the server cannot do it costs one attempt.
func TestAServerWithoutStreamingListsCostsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind, NoWatchList: true})
		example := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "1"}}}
		require.NoError(t, source.Apply(example))
		r := newRig(t, source, func(c *Config) {
			c.ObjectType = nil
			c.ReflectorOptions.Strategy = ListAutomatic
		})
		r.run()
		synctest.Wait()
		assert.Equal(t, 1, source.ListCalls(), "which is made at once")
		assert.True(t, r.ctlr.HasSynced())
		sleep(10 * time.Second)
		assert.Equal(t, []Cause{CauseRejected}, r.heard.causes())
		assert.Equal(t, 1, source.ListCalls())
		r.equalsSource()
		r.stop()
	})
}

// What does not belong into a streaming list is reported and skipped, or ends the
// stream with a reason; the fallback brings the state.
func TestOddEventsInAStreamingListAreReported(t *testing.T) {
	unversioned := &object{}
	end := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	for name, row := range map[string]struct {
		event watch.Event
		cause Cause
	}{
		"unknown type":              {watch.Event{Type: "GONE", Object: pod("a", "x")}, CauseObject},
		"wrong type":                {watch.Event{Type: watch.Added, Object: &unstructured.Unstructured{}}, CauseObject},
		"nil":                       {watch.Event{Type: watch.Added}, CauseObject},
		"deletion of nothing":       {watch.Event{Type: watch.Deleted}, CauseObject},
		"bookmark without object":   {watch.Event{Type: watch.Bookmark}, CauseObject},
		"bookmark without metadata": {watch.Event{Type: watch.Bookmark, Object: &metav1.Status{}}, CauseObject},
		"bookmark of no meaning":    {watch.Event{Type: watch.Bookmark, Object: unversioned}, ""},
		"error without an object":   {watch.Event{Type: watch.Error}, CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				streams := make(chan *watch.FakeWatcher, 9)
				source := &ListWatch{WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
					w := watch.NewFake()
					streams <- w
					return w, nil
				}, ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) { return nil, errBoom }}
				indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
				stop := runReflector(t, NewReflectorWithOptions(source, &object{}, indexer,
					ReflectorOptions{Strategy: ListStreaming, ErrorHandler: h.handle}))
				w := <-streams
				w.Action(row.event.Type, row.event.Object)
				if name == "wrong type" {
					w.Add(pod("a", "good")) // else all of it is, so far, and it may have failed
				}
				synctest.Wait()
				switch row.cause {
				case "":
					assert.Empty(t, h.all())
				default:
					assert.Equal(t, []Cause{row.cause}, h.causes())
				}
				if row.cause == CauseOther {
					sleep(5 * time.Second)
					w = <-streams
				}
				good := pod("a", "good")
				w.Add(good)
				w.Action(watch.Bookmark, &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: end}})
				synctest.Wait()
				assert.Equal(t, []string{"a/good"}, indexer.ListKeys())
				assert.Equal(t, "7", indexer.LastStoreSyncResourceVersion())
				stop()
			})
		})
	}
}
