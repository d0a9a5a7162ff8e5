package cache

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// Sources that do what no source should: they panic, answer with hollow objects,
// and go on being wrong.

// scripted is a source made of functions; without a list it answers an empty one
// at version 5.
type scripted struct {
	list  func(metav1.ListOptions) (apiruntime.Object, error)
	watch func(ctx context.Context, n int) (watch.Interface, error)
	calls int
}

func (s *scripted) List(o metav1.ListOptions) (apiruntime.Object, error) {
	if s.list == nil {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
	}
	return s.list(o)
}

func (s *scripted) Watch(metav1.ListOptions) (watch.Interface, error) { panic("has a context") }

func (s *scripted) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.calls++
	return s.watch(ctx, s.calls)
}

// probe is a watch that says when it was stopped.
type probe struct {
	events  chan watch.Event
	stopped time.Time
	onStop  func()
	onChan  func() (<-chan watch.Event, bool)
}

func newProbe(events ...watch.Event) *probe {
	p := &probe{events: make(chan watch.Event, len(events)+1)}
	for _, e := range events {
		p.events <- e
	}
	return p
}

func (p *probe) Stop() {
	if p.stopped.IsZero() {
		p.stopped = time.Now()
	}
	if p.onStop != nil {
		p.onStop()
	}
}

func (p *probe) ResultChan() <-chan watch.Event {
	if p.onChan != nil {
		if ch, mine := p.onChan(); mine {
			return ch
		}
	}
	return p.events
}

func errorEvent(err error) watch.Event {
	status := err.(interface{ Status() metav1.Status }).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// A watch that failed is closed before the pause, not after it: its connection
// would stay open for up to five minutes.
func TestAFailedWatchIsClosedBeforeThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newProbe(errorEvent(cachetest.ErrTooManyRequests(200)))
		var ended time.Time
		source := &scripted{watch: func(ctx context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newProbe(), nil
			}
			context.AfterFunc(ctx, func() { ended = time.Now() })
			return first, nil
		}}
		began := time.Now()
		stop := runReflector(t, NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: (&heard{}).handle}))
		assert.Equal(t, began, first.stopped)
		assert.Equal(t, began, ended, "its context, too")
		assert.Equal(t, 1, source.calls)
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

type kindless struct{ metav1.ObjectMeta }

func (k *kindless) DeepCopyObject() apiruntime.Object { return k }
func (k *kindless) GetObjectKind() schema.ObjectKind  { return nil }

func TestHollowObjectsDoNotPanic(t *testing.T) {
	for name, row := range map[string]struct {
		obj  apiruntime.Object
		want int // how many are reported
	}{
		"metadata is a nil pointer": {&headless{}, 2},
		"kind is nil":               {&kindless{metav1.ObjectMeta{Name: "x", ResourceVersion: "9"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				source := &scripted{
					list: func(metav1.ListOptions) (apiruntime.Object, error) {
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}, Items: []apiruntime.Object{row.obj}}, nil
					},
					watch: func(context.Context, int) (watch.Interface, error) {
						return newProbe(watch.Event{Type: watch.Modified, Object: row.obj}), nil
					},
				}
				stop := runReflector(t, NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle}))
				assert.Equal(t, row.want, h.count(CauseObject))
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
			h := &heard{}
			source := &scripted{watch: func(_ context.Context, n int) (watch.Interface, error) {
				if n > 1 {
					return newProbe(), nil
				}
				return newProbe(watch.Event{Type: watch.Error, Object: obj}), nil
			}}
			stop := runReflector(t, NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle}))
			require.Len(t, h.all(), 1)
			assert.NotContains(t, fmt.Sprintf("%+v", h.all()[0]), "secret-content")
			assert.ErrorContains(t, h.all()[0], "in place of a Status")
			stop()
		})
	}
}

// An error that is kept holds no object: a KeyError is kept with the name.
func TestErrorsThatAreKeptHoldNoObject(t *testing.T) {
	secret := labelled(pod("a", "1"), "secret-content")
	for _, err := range []error{KeyError{secret, errBoom}, fmt.Errorf("adding: %w", KeyError{secret, errBoom})} {
		var kept KeyError
		require.ErrorAs(t, withoutObject(err), &kept)
		assert.Equal(t, ObjectName{Namespace: "a", Name: "1"}, kept.Obj)
		assert.ErrorIs(t, kept, errBoom)
		assert.Equal(t, kept, withoutObject(kept))
	}
	assert.Equal(t, KeyError{Err: errBoom}, withoutObject(KeyError{7, errBoom}))
	assert.Equal(t, errBoom, withoutObject(errBoom))
	assert.Contains(t, KeyError{ObjectName{Namespace: "a", Name: "1"}, errBoom}.Error(), `"a/1"`)
}

// Events of objects without a readable key are reported and leave nothing behind.
func TestObjectsWithoutAKeyKeepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		events := newProbe()
		source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return events, nil }}
		r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle})
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
func TestADeletionOfTheWrongTypeIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		good, wrong := pod("a", "1"), &kindless{metav1.ObjectMeta{Namespace: "a", Name: "1", ResourceVersion: "9"}}
		good.ResourceVersion = "7"
		source := &scripted{watch: func(context.Context, int) (watch.Interface, error) {
			return newProbe(watch.Event{Type: watch.Added, Object: good}, watch.Event{Type: watch.Deleted, Object: wrong}), nil
		}}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		r := NewReflectorWithOptions(source, &object{}, indexer, ReflectorOptions{ErrorHandler: h.handle})
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
		source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return nil, &url.Error{Op: "Get", URL: "http://x", Err: io.EOF}
		}}
		r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Logger: &logger})
		stop := runReflector(t, r)
		assert.Equal(t, CauseCut, r.Status().LastFailure.Cause)
		stop()
	})
	assert.Contains(t, out.String(), "Mirroring failed")
}

// A source without a result channel has a defect, and is told so at once.
func TestAWatchWithoutAChannelIsNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &scripted{watch: func(context.Context, int) (watch.Interface, error) {
			return &probe{onChan: func() (<-chan watch.Event, bool) { return nil, true }}, nil
		}}
		err := NewReflector(source, nil, NewStore(MetaNamespaceKeyFunc), 0).ListAndWatchWithContext(t.Context())
		assert.ErrorIs(t, err, ErrNilWatch)
	})
}

// A foreign store gets every listed object, those without a name and those of one
// name and two kinds, too: keys are its own business.
func TestAForeignStoreGetsEveryListedObject(t *testing.T) {
	other := pod("a", "x")
	other.Kind = "Service"
	for _, strategy := range []ListStrategy{ListWhole, ListStreaming} {
		synctest.Test(t, func(t *testing.T) {
			items := []metav1.PartialObjectMetadata{*pod("a", ""), *pod("a", ""), *pod("a", "x"), *other}
			end := &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			source := &scripted{
				list: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: items}, nil
				},
				watch: func(context.Context, int) (watch.Interface, error) {
					if strategy == ListWhole {
						return newProbe(), nil
					}
					var events []watch.Event
					for i := range items {
						events = append(events, watch.Event{Type: watch.Added, Object: &items[i]})
					}
					return newProbe(append(events, watch.Event{Type: watch.Bookmark, Object: end})...), nil
				},
			}
			store := &foreign{}
			stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{Strategy: strategy}))
			assert.Equal(t, []string{"replace a/ a/ a/x a/x @9"}, store.take())
			stop()
		})
	}
}

// A list that names no version was asked for a state at least as new as the last:
// the version stays, so that the next list cannot be older.
func TestAListWithoutAVersionKeepsTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{"100", "", "50", "120"}
		var asked []string
		source := &scripted{
			list: func(o metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, o.ResourceVersion)
				version := answers[min(len(asked), len(answers))-1]
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
			},
			watch: func(_ context.Context, n int) (watch.Interface, error) {
				if n > 2 {
					return newProbe(), nil
				}
				return newProbe(errorEvent(cachetest.ErrExpired())), nil
			},
		}
		h := &heard{}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{ErrorHandler: h.handle}))
		sleep(2 * time.Minute)
		assert.Equal(t, []string{"0", "100", "100", ""}, asked)
		assert.Equal(t, []Cause{CauseExpired, CauseExpired, CauseRegression}, h.causes())
		assert.Equal(t, "120", indexer.LastStoreSyncResourceVersion())
		stop()
	})
}
