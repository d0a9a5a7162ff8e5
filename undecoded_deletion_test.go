package cache

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
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// Deletions that could not be decoded.

// lastStates remembers the last states that tombstones came with.
type lastStates struct {
	recorder
	states []any
}

func (l *lastStates) OnDelete(obj any) {
	l.recorder.OnDelete(obj)
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		l.states = append(l.states, tombstone.Obj)
	}
}

// consumers are those that deletions can come to. Each returns what it fills.
var consumers = map[string]func(t *testing.T, c *Config, told *lastStates) Indexer{
	"a controller": func(t *testing.T, c *Config, _ *lastStates) Indexer {
		c.Transform = neverUndecoded(t)
		return c.Store.(Indexer)
	},
	"a controller whose store transforms": func(t *testing.T, c *Config, _ *lastStates) Indexer {
		index := func(obj any) ([]string, error) {
			_, err := neverUndecoded(t)(obj)
			return nil, err
		}
		c.Store = NewIndexer(MetaNamespaceKeyFunc, Indexers{"never": index}, WithTransformer(neverUndecoded(t)))
		return c.Store.(Indexer)
	},
	"a controller of a store that is not ours": func(t *testing.T, c *Config, _ *lastStates) Indexer {
		indexer := c.Store.(Indexer)
		c.Store, c.KeyFunction, c.Transform = &storeOfAnother{Store: indexer}, MetaNamespaceKeyFunc, neverUndecoded(t)
		return indexer
	},
	"a process": func(t *testing.T, c *Config, told *lastStates) Indexer {
		indexer := c.Store.(Indexer)
		c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: indexer, EmitDeltaTypeReplaced: true, Transformer: neverUndecoded(t)})
		c.Store, c.Handler = nil, nil
		c.Process = func(obj any, _ bool) error {
			for _, d := range obj.(Deltas) {
				if d.Type == Deleted {
					told.OnDelete(d.Object)
				}
			}
			return applyDeltas(indexer, obj.(Deltas))
		}
		return indexer
	},
}

// G6, B6: an object whose deletion cannot be decoded is gone all the same, with the
// last known state as tombstone; the failure is reported once, nothing stays
// quarantined, and nothing is listed. Fails if the deletion is set aside, or handed on
// with what stands in for the final state.
func TestG6ADeletionThatCannotBeDecodedIsApplied(t *testing.T) {
	for name, build := range consumers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, told := newSource(t, pod("a", "1"), pod("a", "2"), bad(pod("a", "never"))), &lastStates{}
				var indexer Indexer
				r := newRig(t, source, func(c *Config) {
					c.ListerWatcher = &badDecoder{source, func(any) error { return errBoom }}
					c.Handler = told
					indexer = build(t, c, told)
				})
				r.indexer = indexer
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				synctest.Wait()
				require.Len(t, r.status().Quarantined, 2)
				require.Len(t, r.heard.all(), 2)
				_, err := source.Delete("a", "1")
				require.NoError(t, err)
				_, err = source.Delete("a", "never")
				require.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, map[string]string{"a/2": "2"}, r.versions())
				require.Len(t, told.states, 1)
				assert.Contains(t, told.take(), "tombstone a/1")
				assert.Equal(t, "1", receivedOf(told.states[0]).ResourceVersion, "the last known state")
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
				require.Len(t, r.heard.all(), 4)
				var object *ObjectError
				require.ErrorAs(t, r.heard.all()[2], &object)
				assert.Equal(t, "a/1", object.Key)
				assert.Equal(t, StageDecode, object.Stage)
				assert.ErrorIs(t, object, errBoom)
				assert.Equal(t, 1, source.ListCalls())
				r.stop()
			})
		})
	}
}

// The tombstone is of the newest state that is known, also if that is only queued.
func TestTheTombstoneOfAnUndecodedDeletionHasTheNewestKnownState(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: NewStore(MetaNamespaceKeyFunc), EmitDeltaTypeReplaced: true, Transformer: neverUndecoded(t)})
	gone := undecoded(podAt("a", "1", "7"))
	must(t, f.Delete(gone))
	assert.Zero(t, f.log.keys, "of nothing that is known, there is no deletion")
	must(t, f.Add(podAt("a", "1", "5")))
	must(t, f.Update(podAt("a", "1", "6")))
	must(t, f.Delete(gone))
	must(t, f.Delete(gone))
	_, err := f.Pop(func(obj any, _ bool) error {
		deltas := obj.(Deltas)
		require.Len(t, deltas, 3)
		tombstone := deltas.Newest().Object.(DeletedFinalStateUnknown)
		assert.Equal(t, "a/1", tombstone.Key)
		assert.Equal(t, "6", receivedOf(tombstone.Obj).ResourceVersion)
		return nil
	})
	must(t, err)
	// As part of a first list, which shows what a stream has told.
	f = NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: neverUndecoded(t)})
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: []any{podAt("a", "1", "6")}})
	part(t, r, ReplacementPart{Gone: []any{gone}})
	_, err = f.Pop(func(obj any, _ bool) error {
		assert.Equal(t, "6", receivedOf(obj.(Deltas).Newest().Object.(DeletedFinalStateUnknown).Obj).ResourceVersion)
		return nil
	})
	must(t, err)
}

// An undecoded deletion of an object whose key needs more than its metadata cannot be
// applied: it is reported once, and quarantined; so it is in a stream. Fails if the
// status hides that the store holds what is gone.
func TestAnUndecodedDeletionWithoutAKeyIsReportedAndQuarantined(t *testing.T) {
	for name, fail := range map[string]func() (string, error){
		"fails":  func() (string, error) { return "", errBoom },
		"panics": func() (string, error) { panic(errBoom) },
	} {
		keyFunc := func(obj any) (string, error) {
			if isUndecoded(obj) {
				return fail()
			}
			return MetaNamespaceKeyFunc(obj)
		}
		for _, queue := range []bool{false, true} {
			for _, strategy := range []ListStrategy{ListWhole, ListStreaming} {
				t.Run(fmt.Sprintf("%s, queue %v, strategy %d", name, queue, strategy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { deletionWithoutKey(t, keyFunc, queue, strategy) })
				})
			}
		}
	}
}

func deletionWithoutKey(t *testing.T, keyFunc KeyFunc, queue bool, strategy ListStrategy) {
	h := &heard{}
	events := []watch.Event{
		{Type: watch.Added, Object: podAt("a", "1", "6")},
		{Type: watch.Deleted, Object: undecoded(podAt("a", "1", "7"))},
	}
	if strategy == ListStreaming {
		events = append(events, watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("7")})
	}
	source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return newProbe(events...), nil }}
	var store ReflectorStore = NewStore(keyFunc)
	if queue {
		store = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, EmitDeltaTypeReplaced: true})
	}
	r := NewReflectorWithOptions(source, nil, store, ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
	stop := runReflector(t, r)
	require.Len(t, h.all(), 1)
	var object *ObjectError
	require.ErrorAs(t, h.all()[0], &object)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, StageDecode, object.Stage)
	assert.ErrorIs(t, object, errBoom)
	assert.ErrorContains(t, object, "a/1")
	require.Len(t, r.Status().Quarantined, 1)
	assert.Equal(t, "a/1", r.Status().Quarantined[0].Key)
	assert.Equal(t, "7", r.LastSyncResourceVersion())
	if fifo, ok := store.(*DeltaFIFO); ok {
		assert.Equal(t, []string{"a/1"}, fifo.log.pendingKeys())
	} else {
		assert.Equal(t, []string{"a/1"}, store.(Store).ListKeys())
	}
	stop()
}

// A list that a foreign store gets in one Replace loses what a stream has deleted, of
// whatever kind the undecoded object is known to be.
func TestAnUndecodedDeletionIsOfTheKindThatItSays(t *testing.T) {
	service := podAt("a", "1", "2")
	service.Kind = "Service"
	untyped := podAt("a", "1", "3")
	untyped.TypeMeta = metav1.TypeMeta{}
	for name, row := range map[string]struct {
		gone *object
		left int
	}{
		"a pod":         {podAt("a", "1", "9"), 1},
		"not known":     {untyped, 0},
		"another":       {podAt("a", "2", "9"), 3},
		"another again": {podAt("b", "1", "9"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wholeReplacement{store: &foreign{}, streamed: true}
			part(t, w, ReplacementPart{Items: []any{podAt("a", "1", "1"), service, untyped}})
			part(t, w, ReplacementPart{Gone: []any{undecoded(row.gone)}})
			assert.Len(t, w.list, row.left)
		})
	}
}

// G6: of a deletion that does not say of what, the place is quarantined until the next
// list, which takes away what has been gone all the while. Nothing is listed for it.
// Fails if the status is silent meanwhile, or speaks of it for ever.
func TestG6ADeletionOfNobodyKnowsWhatIsQuarantinedUntilTheNextList(t *testing.T) {
	for name, streamed := range map[string]bool{"in a watch": false, "in a stream": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &heard{}, 0
				source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
					if lists++; lists == 1 && !streamed {
						list.ResourceVersion, list.Items = "5", []apiruntime.Object{podAt("a", "1", "5")}
					}
					return list, nil
				}}
				expire, refuse := newProbe(), false
				source.watch = func(context.Context, int) (watch.Interface, error) {
					if refuse {
						return nil, apierrors.NewBadRequest("no streams")
					}
					if source.calls > 1 {
						return newProbe(), nil
					}
					expire.events = make(chan watch.Event, 9)
					if streamed {
						expire.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "5")}
					}
					expire.events <- watch.Event{Type: watch.Deleted, Object: undecoded(podAt("", "", "6"))}
					if streamed {
						expire.events <- watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("7")}
					}
					return expire, nil
				}
				options := ReflectorOptions{Strategy: ListWhole, ErrorHandler: h.handle}
				if streamed {
					options.Strategy = ListStreaming
				}
				store := NewStore(MetaNamespaceKeyFunc)
				r := NewReflectorWithOptions(source, nil, store, options)
				stop := runReflector(t, r)
				sleep(time.Minute)
				require.Len(t, r.Status().Quarantined, 1)
				assert.Equal(t, "watch event at version 6", r.Status().Quarantined[0].Key)
				assert.Equal(t, []string{"a/1"}, store.ListKeys())
				assert.Equal(t, []Cause{CauseObject}, h.causes())
				before := lists
				refuse = streamed // so that it is listed
				expire.events <- errorEvent(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Greater(t, lists, before)
				assert.Empty(t, r.Status().Quarantined)
				assert.Empty(t, store.ListKeys())
				stop()
			})
		})
	}
}

// A deletion that could not be applied for want of a key is put right by the next state
// of that name. Fails if it stays quarantined.
func TestAnUndecodedDeletionWithoutAKeyIsForgottenWithTheNextState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typed := func(obj any) (string, error) { return nameOf(obj.(*object)), nil }
		events := newProbe()
		events.events = make(chan watch.Event, 9)
		source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return events, nil }}
		r := NewReflectorWithOptions(source, nil, NewStore(typed), ReflectorOptions{ErrorHandler: (&heard{}).handle})
		stop := runReflector(t, r)
		events.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "6")}
		events.events <- watch.Event{Type: watch.Deleted, Object: undecoded(podAt("a", "1", "7"))}
		synctest.Wait()
		assert.Len(t, r.Status().Quarantined, 1)
		events.events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "8")}
		synctest.Wait()
		assert.Empty(t, r.Status().Quarantined)
		stop()
	})
}
