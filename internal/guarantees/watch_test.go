package guarantees

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// A failed watch is closed before the pause: its connection would stay open for up to five minutes.
func TestAFailedWatchIsClosedBeforeThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRecordedWatch(errorEvent(cachetest.ErrTooManyRequests(200)))
		var ended time.Time
		source := &funcSource{watch: func(ctx context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newRecordedWatch(), nil
			}
			context.AfterFunc(ctx, func() { ended = time.Now() })
			return first, nil
		}}
		began := time.Now()
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle}))
		assert.Equal(t, began, first.stopped)
		assert.Equal(t, began, ended, "its context, too")
		assert.Equal(t, 1, source.watchCalls)
		stop()
	})
}

// What looks like an object and is none does not panic, and is reported: nothing
// is known of it but that it came.
type headless struct {
	metav1.TypeMeta
	*metav1.ObjectMeta
}

func (h *headless) DeepCopyObject() apiruntime.Object { return h }

type nilKind struct{ metav1.ObjectMeta }

func (k *nilKind) DeepCopyObject() apiruntime.Object { return k }

func (k *nilKind) GetObjectKind() schema.ObjectKind { return nil }

func TestMalformedObjectsDoNotPanic(t *testing.T) {
	for name, row := range map[string]struct {
		obj  apiruntime.Object
		want int // how many are reported
	}{
		"metadata is a nil pointer": {&headless{}, 2},
		"kind is nil":               {&nilKind{metav1.ObjectMeta{Name: "x", ResourceVersion: "9"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &funcSource{
					list: func(metav1.ListOptions) (apiruntime.Object, error) {
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []apiruntime.Object{row.obj}}, nil
					},
					watch: func(context.Context, int) (watch.Interface, error) {
						return newRecordedWatch(watch.Event{Type: watch.Modified, Object: row.obj}), nil
					},
				}
				stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle}))
				assert.Equal(t, row.want, h.count(causeInvalidObject))
				stop()
			})
		})
	}
}

// An error event is described if it carries no Status; the object that it carries
// is neither printed nor kept.
func TestAnErrorEventWithoutAStatusIsDescribed(t *testing.T) {
	for _, obj := range []apiruntime.Object{nil, (*metav1.Status)(nil), labelled(pod("a", "1"), "secret-content")} {
		synctest.Test(t, func(t *testing.T) {
			h := &errorRecorder{}
			source := &funcSource{watch: func(_ context.Context, n int) (watch.Interface, error) {
				if n > 1 {
					return newRecordedWatch(), nil
				}
				return newRecordedWatch(watch.Event{Type: watch.Error, Object: obj}), nil
			}}
			stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle}))
			require.Len(t, h.all(), 1)
			assert.NotContains(t, fmt.Sprintf("%+v", h.all()[0]), "secret-content")
			assert.ErrorContains(t, h.all()[0], "in place of a Status")
			stop()
		})
	}
}

// Events of objects without a readable key are reported and leave nothing behind.
func TestObjectsWithoutAKeyAreReportedAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &errorRecorder{}
		events := newRecordedWatch()
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return events, nil }}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle})
		stop := runReflector(t, r)
		for i := range 1000 {
			nameless := pod("", "")
			nameless.ResourceVersion = itoa(10 + i)
			events.events <- watch.Event{Type: watch.Modified, Object: nameless}
		}
		synctest.Wait()
		assert.Len(t, h.all(), 1000)
		assert.Empty(t, r.Status().Quarantined)
		assert.Equal(t, "1009", r.LastSyncResourceVersion(), "their versions count")
		stop()
	})
}

// A deletion that does not fit leaves the stored object, and says so.
func TestADeletionOfTheWrongTypeIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &errorRecorder{}
		good, wrong := pod("a", "1"), &nilKind{metav1.ObjectMeta{Namespace: "a", Name: "1", ResourceVersion: "9"}}
		good.ResourceVersion = "7"
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) {
			return newRecordedWatch(watch.Event{Type: watch.Added, Object: good}, watch.Event{Type: watch.Deleted, Object: wrong}), nil
		}}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		r := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{ErrorHandler: h.handle})
		stop := runReflector(t, r)
		assert.Equal(t, []string{"a/1"}, indexer.ListKeys())
		require.Len(t, r.Status().Quarantined, 1)
		assert.Equal(t, "a/1", r.Status().Quarantined[0].Key)
		stop()
	})
}

// A list or request that ends in EOF is a failure and is logged; only a watch that
// ends so is not.
func TestAListThatEndsInEOFIsLogged(t *testing.T) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	synctest.Test(t, func(t *testing.T) {
		source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return nil, &url.Error{Op: "Get", URL: "http://x", Err: io.EOF}
		}}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Logger: &logger})
		stop := runReflector(t, r)
		assert.Equal(t, cache.CauseConnectionLost, r.Status().LastFailure.Cause)
		stop()
	})
	assert.Contains(t, out.String(), "List or watch failed")
}

// A foreign store gets every listed object, those without a name and those of one
// name and two kinds, too: keys are its own business.
func TestAForeignStoreGetsEveryListedObject(t *testing.T) {
	other := pod("a", "x")
	other.Kind = "Service"
	for _, strategy := range []cache.ListStrategy{cache.ListUnpaged, cache.ListStreaming} {
		synctest.Test(t, func(t *testing.T) {
			items := []metav1.PartialObjectMetadata{*pod("a", ""), *pod("a", ""), *pod("a", "x"), *other}
			end := &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			source := &funcSource{
				list: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: items}, nil
				},
				watch: func(context.Context, int) (watch.Interface, error) {
					if strategy == cache.ListUnpaged {
						return newRecordedWatch(), nil
					}
					var events []watch.Event
					for i := range items {
						events = append(events, watch.Event{Type: watch.Added, Object: &items[i]})
					}
					return newRecordedWatch(append(events, watch.Event{Type: watch.Bookmark, Object: end})...), nil
				},
			}
			store := &foreignStore{}
			stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Strategy: strategy}))
			assert.Equal(t, []string{"replace a/ a/ a/x a/x @9"}, store.take())
			stop()
		})
	}
}

// sharedChannel is a watch that continues where the previous one ended.
type sharedChannel chan watch.Event

func (c sharedChannel) ResultChan() <-chan watch.Event { return c }

func (sharedChannel) Stop() {}

// An error ends a watch, and what comes after it in the channel is the next watch's. Fails if
// events that are there are removed from the channel and then left, which nobody would hear
// of again.
func TestEventsAfterAnErrorAreLeftToTheNextWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(sharedChannel, 3)
		events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "2")}
		var expired *apierrors.StatusError
		require.ErrorAs(t, cachetest.ErrExpired(), &expired)
		events <- watch.Event{Type: watch.Error, Object: &expired.ErrStatus}
		events <- watch.Event{Type: watch.Added, Object: podAt("a", "2", "3")}
		lists := 0
		source := &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				lists++
				list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(lists)}}
				if lists > 1 {
					list.Items = append(list.Items, *podAt("a", "1", "2"))
				}
				return list, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}
		inf := cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			inf.Run(stop)
		}()
		sleep(healthyTime)
		assert.Equal(t, 2, lists)
		assert.ElementsMatch(t, []string{"a/1", "a/2"}, inf.GetStore().ListKeys())
		close(stop)
		<-done
	})
}

// A source without a result channel has a defect, and is reported as such at once.
func TestAWatchWithoutAChannelIsNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) {
			return &recordedWatch{onResultChan: func() (<-chan watch.Event, bool) { return nil, true }}, nil
		}}
		err := cache.NewReflector(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0).ListAndWatchWithContext(t.Context())
		assert.ErrorContains(t, err, "source returned no watch and no error")
	})
}
