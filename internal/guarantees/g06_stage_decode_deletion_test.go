package guarantees

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// lastStates records the objects in received tombstones.
type lastStates struct {
	recorder
	states []any
}

func (l *lastStates) OnDelete(obj any) {
	l.recorder.OnDelete(obj)
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		l.states = append(l.states, tombstone.Obj)
	}
}

// consumers are the ways to consume deletions. Each returns the store that it fills.
var consumers = map[string]func(t *testing.T, c *cache.Config, notified *lastStates) cache.Indexer{
	"a controller": func(t *testing.T, c *cache.Config, _ *lastStates) cache.Indexer {
		c.Transform = neverUndecoded(t)
		return c.Store.(cache.Indexer)
	},
	"a controller whose store transforms": func(t *testing.T, c *cache.Config, _ *lastStates) cache.Indexer {
		index := func(obj any) ([]string, error) {
			_, err := neverUndecoded(t)(obj)
			return nil, err
		}
		c.Store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"never": index}, cache.WithTransformer(neverUndecoded(t)))
		return c.Store.(cache.Indexer)
	},
	"a process": func(t *testing.T, c *cache.Config, notified *lastStates) cache.Indexer {
		indexer := c.Store.(cache.Indexer)
		c.Queue = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: indexer, EmitDeltaTypeReplaced: true, Transformer: neverUndecoded(t)})
		c.Store, c.Handler = nil, nil
		c.Process = func(obj any, _ bool) error {
			for _, d := range obj.(cache.Deltas) {
				if d.Type == cache.Deleted {
					notified.OnDelete(d.Object)
				}
			}
			return applyDeltas(indexer, obj.(cache.Deltas))
		}
		return indexer
	},
}

// G6, B6: an object whose deletion cannot be decoded is removed, with the last known state in a
// tombstone; the failure is reported once, nothing stays quarantined, and no list follows. Fails if the
// deletion is quarantined, or delivered with the undecoded object.
func TestG6ADeletionThatCannotBeDecodedIsApplied(t *testing.T) {
	for name, build := range consumers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, notified := newSource(t, pod("a", "1"), pod("a", "2"), bad(pod("a", "never"))), &lastStates{}
				var indexer cache.Indexer
				r := newRig(t, source, func(c *cache.Config) {
					c.ListerWatcher = &badDecoder{source, func(any) error { return errBoom }}
					c.Handler = notified
					indexer = build(t, c, notified)
				})
				r.indexer = indexer
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				synctest.Wait()
				require.Len(t, r.status().Quarantined, 2)
				require.Len(t, r.errors.all(), 2)
				_, err := source.Delete("a", "1")
				require.NoError(t, err)
				_, err = source.Delete("a", "never")
				require.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, map[string]string{"a/2": "2"}, r.versions())
				require.Len(t, notified.states, 1)
				assert.Contains(t, notified.take(), "tombstone a/1")
				assert.Equal(t, "1", receivedOf(notified.states[0]).ResourceVersion, "the last known state")
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
				require.Len(t, r.errors.all(), 4)
				var object *cache.ObjectError
				require.ErrorAs(t, r.errors.all()[2], &object)
				assert.Equal(t, "a/1", object.Key)
				assert.Equal(t, "decode", object.Stage)
				assert.ErrorIs(t, object, errBoom)
				assert.Equal(t, 1, source.ListCalls())
				r.stop()
			})
		})
	}
}

// G6: a deletion of an unreadable object is quarantined by its position until the next list, which
// removes the object. It causes no list, except in a stream, where it counts as an undecodable item.
// Fails if it is not in the status until then, or stays there forever.
func TestG6ADeletionOfAnUnknownObjectIsQuarantinedUntilTheNextList(t *testing.T) {
	for name, streamed := range map[string]bool{"in a watch": false, "in a stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &errorRecorder{}, new(atomic.Int64)
				source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
					if lists.Add(1) == 1 && !streamed {
						list.ResourceVersion, list.Items = "5", []apiruntime.Object{podAt("a", "1", "5")}
					}
					return list, nil
				}}
				expire := newRecordedWatch()
				source.watch = func(context.Context, int) (watch.Interface, error) {
					if streamed && source.watchCalls > 1 { // so that it is listed
						return nil, apierrors.NewBadRequest("no streams")
					}
					if source.watchCalls > 1 {
						return newRecordedWatch(), nil
					}
					expire.events = make(chan watch.Event, 9)
					if streamed {
						expire.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "5")}
					}
					expire.events <- watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("", "", "6"))}
					if streamed {
						expire.events <- watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("7")}
					}
					return expire, nil
				}
				options := cache.ReflectorOptions{Strategy: cache.ListUnpaged, ErrorHandler: h.handle}
				if streamed {
					options.Strategy = cache.ListStreaming
				}
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				r := cache.NewReflectorWithOptions(source, nil, store, options)
				stop := runReflector(t, r)
				sleep(time.Second)
				if !streamed {
					sleep(time.Minute)
				}
				require.Len(t, r.Status().Quarantined, 1)
				assert.Equal(t, "watch event at version 6", r.Status().Quarantined[0].Key)
				assert.Equal(t, []string{"a/1"}, store.ListKeys())
				assert.Equal(t, []cache.Cause{causeInvalidObject}, h.causes())
				before := lists.Load()
				if !streamed { // a list follows the stream
					expire.events <- errorEvent(cachetest.ErrExpired())
				}
				sleep(time.Minute)
				assert.Greater(t, lists.Load(), before)
				assert.Empty(t, r.Status().Quarantined)
				assert.Empty(t, store.ListKeys())
				stop()
			})
		})
	}
}

// A deletion without a key is released by the next state of that name. Fails if it stays quarantined.
func TestAnUndecodedDeletionWithoutAKeyIsForgottenWithTheNextState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typed := func(obj any) (string, error) { return nameOf(obj.(*object)), nil }
		events := newRecordedWatch()
		events.events = make(chan watch.Event, 9)
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return events, nil }}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(typed), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})
		stop := runReflector(t, r)
		events.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "6")}
		events.events <- watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("a", "1", "7"))}
		synctest.Wait()
		assert.Len(t, r.Status().Quarantined, 1)
		events.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "8")}
		synctest.Wait()
		assert.Empty(t, r.Status().Quarantined)
		stop()
	})
}

// G12: of an event of an unknown type both are reported, the type and the error of its object; its
// version counts. Fails if one hides the other.
func TestAnEventOfAnUnknownTypeIsReportedWhateverItsObject(t *testing.T) {
	for name, row := range map[string]struct {
		obj     apiruntime.Object
		decode  bool
		version string
	}{
		"decoded":             {podAt("a", "1", "9"), false, "9"},
		"undecoded":           {newUndecoded(podAt("a", "1", "9")), true, "9"},
		"undecoded, nameless": {newUndecoded(podAt("", "", "9")), true, "9"},
		"nothing":             {nil, false, "5"},
	} {
		for _, strategy := range []cache.ListStrategy{cache.ListUnpaged, cache.ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, version := &errorRecorder{}, row.version
					events := []watch.Event{{Type: "UPSERTED", Object: row.obj}}
					if strategy == cache.ListStreaming {
						version = "10"
						events = append(events, watch.Event{Type: watch.Bookmark, Object: initialEventsEnd(version)})
					}
					source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
					r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					require.Len(t, h.all(), 1)
					var unknown *cache.UnexpectedTypeError
					require.ErrorAs(t, h.all()[0], &unknown)
					assert.Equal(t, "UPSERTED", unknown.Actual)
					assert.Equal(t, row.decode, errors.Is(h.all()[0], errBoom))
					assert.Equal(t, row.obj == nil, strings.Contains(h.all()[0].Error(), "object is nil"))
					assert.Equal(t, version, r.LastSyncResourceVersion())
					stop()
				})
			})
		}
	}
}

// G12: an error event whose Status cannot be decoded is reported with the decode error. Fails if the
// cause is dropped, or treated as the server's status.
func TestAnErrorEventThatCannotBeDecodedIsReportedWithItsCause(t *testing.T) {
	for name, cause := range map[string]error{"anything": errBoom, "what looks like an answer": cachetest.ErrExpired()} {
		for _, strategy := range []cache.ListStrategy{cache.ListUnpaged, cache.ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, lists := &errorRecorder{}, 0
					source := &funcSource{list: func(o metav1.ListOptions) (apiruntime.Object, error) {
						if isVersionCheck(o) {
							return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
						}
						lists++
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
					}, watch: func(_ context.Context, n int) (watch.Interface, error) {
						if n > 1 {
							return newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("9")}), nil
						}
						bad := newUndecoded(podAt("", "", ""))
						bad.decodeError = func() error { return cause }
						return newRecordedWatch(watch.Event{Type: watch.Error, Object: bad}), nil
					}}
					r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					sleep(time.Minute)
					require.Len(t, h.all(), 1)
					assert.ErrorIs(t, h.all()[0], cause)
					assert.ErrorContains(t, h.all()[0], "in place of a Status")
					assert.Equal(t, []cache.Cause{causeInvalidObject}, h.causes())
					assert.Equal(t, strategy == cache.ListUnpaged, lists == 1, "watched again, or streamed")
					assert.Equal(t, "9", r.LastSyncResourceVersion())
					stop()
				})
			})
		}
	}
}

// A foreign store receives a tombstone for an undecoded deletion, and the undecoded object only if its
// key function does not support tombstones; other errors are not retried.
func TestAForeignStoreIsGivenATombstoneForAnUndecodedDeletion(t *testing.T) {
	last := podAt("a", "1", "5")
	for name, row := range map[string]struct {
		keyFunc cache.KeyFunc
		refuses bool
		lists   int
		causes  []cache.Cause
	}{
		"knows tombstones":    {cache.DeletionHandlingMetaNamespaceKeyFunc, false, 1, []cache.Cause{causeInvalidObject}},
		"knows no tombstones": {cache.MetaNamespaceKeyFunc, false, 1, []cache.Cause{causeInvalidObject}},
		"refuses":             {cache.DeletionHandlingMetaNamespaceKeyFunc, true, 2, []cache.Cause{causeInvalidObject, causeStoreError}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &errorRecorder{}, 0
				store := &deletionRecorder{Store: cache.NewStore(row.keyFunc), refuses: row.refuses}
				source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(5 + lists)}}
					if lists++; lists == 1 {
						list.Items = []apiruntime.Object{last}
					}
					return list, nil
				}, watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newRecordedWatch(), nil
					}
					return newRecordedWatch(watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("a", "1", "6"))}), nil
				}}
				stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, minimalStore{store}, cache.ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				assert.Empty(t, store.ListKeys())
				assert.Equal(t, row.lists, lists)
				assert.Equal(t, row.causes, h.causes())
				assert.Equal(t, cache.DeletedFinalStateUnknown{Key: "a/1"}, store.asked[0])
				assert.Equal(t, name == "knows no tombstones", len(store.asked) == 2)
				stop()
			})
		})
	}
}

// deletionRecorder records the arguments of Delete.
type deletionRecorder struct {
	cache.Store
	refuses bool
	asked   []any
}

func (d *deletionRecorder) Delete(obj any) error {
	d.asked = append(d.asked, obj)
	if d.refuses {
		return errBoom
	}
	return d.Store.Delete(obj)
}

// typedStore is a store whose Delete asserts the type of its argument.
type typedStore struct {
	foreignStore
	deleted []*object
}

func (s *typedStore) Delete(obj any) error {
	s.deleted = append(s.deleted, obj.(*object))
	return nil
}

// findingStore is a store with GetByKey.
type findingStore struct {
	typedStore
	holds any
	err   error
}

func (s *findingStore) GetByKey(string) (any, bool, error) { return s.holds, s.holds != nil, s.err }

// A foreign store that asserts types receives, for an undecoded deletion, its own stored object; if
// there is none, its panic counts as a refusal. Fails if the panic comes out of Run.
func TestAForeignStoreThatAssertsTypesSurvivesAnUndecodedDeletion(t *testing.T) {
	last := podAt("a", "1", "5")
	plain := &typedStore{}
	for name, row := range map[string]struct {
		store  cache.ReflectorStore
		typed  *typedStore
		causes []cache.Cause
	}{
		"cannot be asked": {plain, plain, []cache.Cause{causeInvalidObject, causeStoreError}},
		"holds it":        resultRow(last, nil, causeInvalidObject),
		"holds nothing":   resultRow(nil, nil, causeInvalidObject, causeStoreError),
		"holds a nil":     resultRow((*object)(nil), nil, causeInvalidObject, causeStoreError),
		"holds another":   resultRow(podAt("a", "2", "5"), nil, causeInvalidObject, causeStoreError),
		"holds a queue's": resultRow(cache.Deltas{{Type: cache.Added, Object: last}}, nil, causeInvalidObject, causeStoreError),
		"fails":           resultRow(last, errBoom, causeInvalidObject, causeStoreError),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &errorRecorder{}, 0
				source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					lists++
					return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(4 + lists)}}, nil
				}, watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newRecordedWatch(), nil
					}
					return newRecordedWatch(watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("a", "1", "6"))}), nil
				}}
				stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, row.store, cache.ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				assert.Equal(t, row.causes, h.causes())
				assert.Equal(t, len(row.causes), lists, "a refusal is answered by a list")
				if len(row.causes) == 1 {
					assert.Equal(t, []*object{last}, row.typed.deleted)
				} else {
					assert.Empty(t, row.typed.deleted)
					assert.ErrorContains(t, h.all()[1], "Delete panicked")
				}
				stop()
			})
		})
	}
}

func resultRow(holds any, err error, causes ...cache.Cause) (row struct {
	store  cache.ReflectorStore
	typed  *typedStore
	causes []cache.Cause
}) {
	store := &findingStore{holds: holds, err: err}
	row.store, row.typed, row.causes = store, &store.typedStore, causes
	return row
}

// damagedDeletion is a deletion that could not be decoded and has no name.
type damagedDeletion struct{ object }

func (damagedDeletion) DecodeError() error { return errBoom }

// Fails if each deletion that nobody can name, in the streaming list or in the watch that follows
// it, adds an entry to the quarantine.
func TestG6DeletionsWithoutANameInAStreamShareOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deletions = 1000
		watched := newRecordedWatch()
		watched.events = make(chan watch.Event, 2*deletions+1)
		for i := range 2 * deletions {
			damaged := &damagedDeletion{}
			damaged.ResourceVersion = itoa(1 + i)
			watched.events <- watch.Event{Type: watch.Deleted, Object: damaged}
			if i+1 == deletions {
				end := podAt("", "", itoa(deletions))
				end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				watched.events <- watch.Event{Type: watch.Bookmark, Object: end}
			}
		}
		source := &funcSource{
			watch: func(context.Context, int) (watch.Interface, error) { return watched, nil },
		}
		reported := 0
		informer := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{
			ReflectorOptions: cache.ReflectorOptions{
				Strategy:     cache.ListStreaming,
				ErrorHandler: func(context.Context, *cache.Reflector, error) { reported++ },
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = informer.Run(ctx) }()
		synctest.Wait()
		assert.True(t, informer.HasSynced())
		assert.Equal(t, 1, len(informer.Status().Quarantined)) // Len prints all
		assert.Equal(t, 2*deletions, reported, "each is reported once")
		cancel()
		<-ended
	})
}

// Fails if each deletion that nobody can name adds an entry to the quarantine.
func TestG6DeletionsWithoutANameShareOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deletions = 1000
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		for range deletions {
			damaged := &damagedDeletion{}
			source.Advance(1)
			damaged.ResourceVersion = itoa(int(source.Version()))
			source.Inject(watch.Event{Type: watch.Deleted, Object: damaged})
		}
		synctest.Wait()
		assert.Len(t, r.status().Quarantined, 1)
		reported := int64(0)
		for _, count := range r.status().Failures {
			reported += count
		}
		assert.EqualValues(t, deletions, reported, "each is reported once")
		r.stop()
	})
}
