package cache

import (
	"context"
	"fmt"
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

// A stream may tell changes of objects that it has sent, before its bookmark.
func TestChangesDuringAStreamingListCount(t *testing.T) {
	for _, relist := range []bool{false, true} {
		for _, ours := range []bool{false, true} {
			t.Run(fmt.Sprintf("relist %v, our store %v", relist, ours), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					streams := make(chan *watch.FakeWatcher, 2)
					source := &ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
						w := watch.NewFake()
						streams <- w
						return w, nil
					}}
					at := func(o *object, version string) *object {
						o.ResourceVersion, o.UID = version, "u"
						return o
					}
					indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
					var store ReflectorStore = indexer
					if !ours {
						store = struct{ Store }{indexer}
					}
					stop := runReflector(t, NewReflectorWithOptions(source, &object{}, store,
						ReflectorOptions{Strategy: ListStreaming, ErrorHandler: (&heard{}).handle}))
					w := <-streams
					end := &object{}
					end.ResourceVersion = "9"
					end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
					if relist {
						w.Action(watch.Bookmark, at(end.DeepCopy(), "1"))
						status := cachetest.ErrExpired().(interface{ Status() metav1.Status }).Status()
						w.Error(&status)
						sleep(2 * time.Second)
						w = <-streams
					}
					w.Add(at(pod("a", "kept"), "2"))
					w.Add(at(pod("a", "changed"), "3"))
					w.Add(at(pod("a", "gone"), "4"))
					w.Modify(at(pod("a", "changed"), "5"))
					w.Delete(at(pod("a", "gone"), "6"))
					w.Action(watch.Bookmark, at(&object{}, "7"))
					w.Action(watch.Bookmark, end)
					synctest.Wait()
					assert.ElementsMatch(t, []string{"a/kept", "a/changed"}, indexer.ListKeys())
					changed, _, _ := indexer.GetByKey("a/changed")
					assert.Equal(t, "5", receivedOf(changed).ResourceVersion)
					assert.Equal(t, "9", indexer.LastStoreSyncResourceVersion())
					stop()
				})
			})
		}
	}
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
