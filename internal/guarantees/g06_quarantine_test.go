package guarantees

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G6: an object that a consumer refused is released when it is deleted, by an event or a relist,
// although the queue does not know it. Fails if the queue only releases known objects.
func TestG6ADeletionReleasesAnObjectThatAConsumerRefused(t *testing.T) {
	for name, build := range refusingRigs {
		for _, relist := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, bad(pod("a", "1")), pod("a", "2"))
					r := build(t, source, func(*cache.Config) {})
					r.run()
					synctest.Wait()
					require.Len(t, r.status().Quarantined, 1)
					if relist {
						_, err := source.DeleteSilently("a", "1")
						require.NoError(t, err)
						source.BreakWatches(cachetest.ErrExpired())
					} else {
						_, err := source.Delete("a", "1")
						require.NoError(t, err)
					}
					sleep(time.Minute)
					assert.Empty(t, r.status().Quarantined)
					r.assertEqualsSource()
					r.stop()
				})
			})
		}
	}
}

// G6: a resync repeats the stored old state, which does not release the refused newer one. Fails if
// any state releases a key.
func TestG6AResyncOfTheOldStateReleasesNothing(t *testing.T) {
	for name, build := range refusingRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				r := build(t, source, func(c *cache.Config) { c.FullResyncPeriod = time.Minute })
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				sleep(10 * time.Minute)
				assert.Len(t, r.status().Quarantined, 1)
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Empty(t, r.status().Quarantined)
				r.stop()
			})
		})
	}
}

// G6, G12: a failing Process is reported with the key, which is in the status until it is processed
// again, and later changes continue. Fails if Process's error is dropped, as in client-go.
func TestG6AProcessThatFailsIsReportedByKey(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("in batches %v", batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, bad(pod("a", "1")))
				process := func(deltas []cache.Delta) error {
					if isBad(deltas[0].Object) {
						return errBoom
					}
					return nil
				}
				r := processRig(t, source, func(c *cache.Config, _ *cache.DeltaFIFO, _ cache.Indexer) {
					c.Process = func(obj any, _ bool) error { return process(obj.(cache.Deltas)) }
					if batch {
						c.ProcessBatch = func(deltas []cache.Delta, _ bool) error { return process(deltas) }
					}
				})
				r.run()
				synctest.Wait()
				require.Len(t, r.errors.all(), 1)
				var failed *cache.ProcessError
				require.ErrorAs(t, r.errors.all()[0], &failed)
				assert.Equal(t, []string{"a/1"}, failed.Keys)
				assert.ErrorIs(t, failed, errBoom)
				assert.Equal(t, causeHandlerError, r.status().LastFailure.Cause)
				require.Len(t, r.status().Quarantined, 1)
				assert.Equal(t, "process", r.status().Quarantined[0].Stage)
				assert.True(t, r.ctlr.HasSynced())
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, 1, source.ListCalls())
				r.stop()
			})
		})
	}
}

// G6: an object is released by a later good event, also of the same batch. Fails if the quarantine is
// only read before a batch.
func TestG6AnObjectIsQuarantinedOnlyUntilALaterEventOfTheSameBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFixedSource(podAt("a", "1", "10"))
		source.watch = func(context.Context, int) (watch.Interface, error) {
			return newRecordedWatch(
				watch.Event{Type: watch.Modified, Object: bad(podAt("a", "1", "11"))},
				watch.Event{Type: watch.Modified, Object: podAt("a", "1", "12")},
			), nil
		}
		m := fixedInformer(t, source, func(c *cache.InformerConfig[*object]) {
			c.KeyFunction = func(obj any) (string, error) {
				if err := failIfBad(obj); err != nil {
					return "", err
				}
				return cache.MetaNamespaceKeyFunc(obj)
			}
		})
		assert.Equal(t, map[string]string{"a/1": "12"}, m.versions())
		assert.Empty(t, m.quarantine())
		assert.Len(t, m.errors.all(), 1)
		m.stop()
	})
}

// G6: if a source returns objects of another namespace than requested, each is reported once per
// version; the namespace to which they belong is unaffected. Fails if a view stores or deletes an
// object of another namespace, or quarantines it in that namespace's view.
func TestG6ObjectsOfAnotherNamespaceAreQuarantined(t *testing.T) {
	for name, change := range map[string]func(*cache.Config){"listing": nil, "streaming": stream} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("b", "1"))
				r := &namespaceRig{rig: newRig(t, source, func(c *cache.Config) {
					if change != nil {
						change(c)
					}
					c.ListerWatcher = nil
					c.Namespaces = map[string]cache.Source{"a": source.Namespace("a"), "b": source}
				})}
				r.run()
				synctest.Wait()
				assert.True(t, r.ctlr.HasSynced())
				r.assertEqualsSource()
				require.Len(t, r.errors.all(), 1)
				require.ErrorContains(t, r.errors.all()[0], "object of another namespace")
				var refused *cache.ObjectError
				require.ErrorAs(t, r.errors.all()[0], &refused)
				assert.Equal(t, "key", refused.Stage)
				assert.Equal(t, "a/1", refused.Key)
				assert.Equal(t, []string{"a/1"}, quarantinedKeys(r.statusOf("b")))
				assert.Empty(t, r.statusOf("a").Quarantined)
				assert.Equal(t, []string{"a/1"}, quarantinedKeys(r.status()))
				r.handler.take()

				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), labelled(pod("b", "1"), "x")))
				synctest.Wait()
				r.assertEqualsSource()
				assert.ElementsMatch(t, []string{"update a/1@3", "update b/1@4"}, r.handler.take())
				assert.Len(t, r.errors.all(), 2)

				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				r.assertEqualsSource()
				assert.Empty(t, r.handler.take())
				assert.Equal(t, 2, r.errors.count(causeInvalidObject), "once a version")

				_, err := source.Delete("a", "1")
				require.NoError(t, err)
				synctest.Wait()
				r.assertEqualsSource()
				assert.Equal(t, []string{"delete a/1"}, r.handler.take())
				assert.Empty(t, r.statusOf("b").Quarantined, "it is removed")
				r.stop()
			})
		})
	}
}

// quarantinedKeys returns the quarantined keys of a status.
func quarantinedKeys(s cache.Status) []string {
	var keys []string
	for _, held := range s.Quarantined {
		keys = append(keys, held.Key)
	}
	return keys
}

// A bad object of a namespace is in the status of the namespace and in that of the whole.
func TestG6ABadObjectIsQuarantinedInItsNamespace(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, func(c *cache.Config) {
			c.Transform = func(obj any) (any, error) {
				if isBad(obj) {
					return nil, errBoom
				}
				return obj, nil
			}
		})
		r.apply(bad(pod("b", "2")))
		r.run()
		synctest.Wait()
		assert.True(t, r.ctlr.HasSynced())
		r.assertEqualsSources("a", "c")
		assert.Equal(t, []string{"b/2"}, quarantinedKeys(r.statusOf("b")))
		assert.Empty(t, r.statusOf("a").Quarantined)
		assert.Equal(t, []string{"b/2"}, quarantinedKeys(r.status()))
		assert.Equal(t, []cache.Cause{causeTransform}, r.errors.causes())
		r.apply(labelled(pod("b", "2"), "good"))
		synctest.Wait()
		r.assertEqualsSources("a", "b", "c")
		assert.Empty(t, r.status().Quarantined)
		r.stop()
	})
}

// resyncedRigs are mirrors that resync every minute, with a consumer that may refuse objects.
var resyncedRigs = map[string]func(*testing.T, *cachetest.Source, func(obj any) error) *rig{
	"a Process": func(t *testing.T, source *cachetest.Source, refuse func(any) error) *rig {
		return processRig(t, source, func(c *cache.Config, _ *cache.DeltaFIFO, _ cache.Indexer) {
			apply := c.Process
			c.Process = func(obj any, initial bool) error {
				if err := refuse(obj.(cache.Deltas).Newest().Object); err != nil {
					return err
				}
				return apply(obj, initial)
			}
			c.FullResyncPeriod = time.Minute
		})
	},
}

// refusals are the versions that a consumer currently refuses.
type refusals struct {
	mu       sync.Mutex
	versions []string
}

func (r *refusals) are(versions ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = versions
}

func (r *refusals) refuse(obj any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.versions, receivedOf(obj).ResourceVersion) {
		return errBoom
	}
	return nil
}

// G6: an object that a consumer refuses at a resync is quarantined until it accepts it at a later
// resync. Fails if a resync releases nothing.
func TestG6TheNextResyncReleasesAnObjectThatWasRefusedAtAResync(t *testing.T) {
	for name, build := range resyncedRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, refused := newSource(t, pod("a", "1"), pod("a", "2")), &refusals{}
				r := build(t, source, refused.refuse)
				r.run()
				sleep(30 * time.Second)
				require.Empty(t, quarantinedVersions(r.status()))
				refused.are("1")
				sleep(time.Minute)
				refused.are()
				require.Equal(t, map[string]string{"a/1": "1"}, quarantinedVersions(r.status()))
				require.Len(t, r.errors.all(), 1)
				sleep(time.Minute)
				assert.Empty(t, quarantinedVersions(r.status()))
				assert.Len(t, r.errors.all(), 1)
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// G6: a resync of a state older than the quarantined one changes nothing, whether the consumer refuses
// or accepts it. Fails if the repeated state replaces the quarantined one, or releases it.
func TestG6AResyncReleasesNoStateThatItDoesNotRepeat(t *testing.T) {
	for name, build := range resyncedRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, refused := newSource(t, pod("a", "1"), pod("a", "2")), &refusals{}
				r := build(t, source, refused.refuse)
				r.run()
				sleep(30 * time.Second)
				refused.are("1", "3")
				sleep(time.Minute)
				require.Equal(t, map[string]string{"a/1": "1"}, quarantinedVersions(r.status()))
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x")))
				for range 2 {
					sleep(5 * time.Minute)
					assert.Equal(t, map[string]string{"a/1": "3"}, quarantinedVersions(r.status()))
					assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, r.versions())
					refused.are("3")
				}
				refused.are()
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "y")))
				synctest.Wait()
				assert.Empty(t, quarantinedVersions(r.status()))
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// G6: if a streaming list has an object in a state without a key, and later in a good state or
// deleted, the object is not quarantined, also if both states are in one part. Fails if later states
// in a part are ignored, or if other objects count as later states.
func TestG6InAStreamALaterStateReleasesOneWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyless := func(obj any) (string, error) {
			if o, ok := obj.(*object); ok && o.Labels["v"] == "keyless" {
				return "", errBoom
			}
			return cache.MetaNamespaceKeyFunc(obj)
		}
		events := []watch.Event{
			{Type: watch.Added, Object: labelled(podAt("a", "recovered", "1"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "recovered", "2")},
			{Type: watch.Added, Object: podAt("a", "spoilt", "3")},
			{Type: watch.Modified, Object: labelled(podAt("a", "spoilt", "4"), "keyless")},
			{Type: watch.Added, Object: labelled(podAt("a", "broken", "5"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "broken", "6")},
			{Type: watch.Modified, Object: newUndecoded(podAt("a", "broken", "7"))},
			{Type: watch.Added, Object: labelled(podAt("a", "removed", "8"), "keyless")},
			{Type: watch.Deleted, Object: podAt("a", "removed", "9")},
			{Type: watch.Added, Object: labelled(podAt("a", "perhaps removed", "10"), "keyless")},
			{Type: watch.Deleted, Object: labelled(podAt("a", "perhaps removed", "11"), "keyless")},
			{Type: watch.Bookmark, Object: initialEventsEnd("12")},
		}
		indexer, h := cache.NewIndexer(keyless, nil), &errorRecorder{}
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
		r := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		assert.ElementsMatch(t, []string{"a/recovered", "a/spoilt", "a/broken"}, indexer.ListKeys())
		var held []string
		for _, q := range r.Status().Quarantined {
			held = append(held, q.Key)
		}
		assert.Equal(t, []string{"a/broken", "a/perhaps removed", "a/spoilt"}, held)
		assert.Equal(t, 7, h.count(causeInvalidObject), "each is reported")
		stop()
	})
}

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

// neverUndecoded is a transform that fails the test if it receives an UndecodableObject.
func neverUndecoded(t *testing.T) func(any) (any, error) {
	return func(obj any) (any, error) {
		assert.NotImplements(t, (*cache.UndecodableObject)(nil), obj)
		return obj, nil
	}
}

func initialEventsEnd(version string) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// G6: an undecoded object without a readable name keeps no stored state, in a list or an event. It is
// reported by its position or version, which counts. A namespace alone is no name. Deletions have
// another test.
func TestAnUndecodedObjectWithoutANameIsReportedAndNotKept(t *testing.T) {
	for name, nameless := range map[string]*object{
		"nothing readable":   {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}},
		"namespace readable": {ObjectMeta: metav1.ObjectMeta{Namespace: "a", ResourceVersion: "9"}},
	} {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &errorRecorder{}
					source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) {
						return newRecordedWatch(watch.Event{Type: kind, Object: newUndecoded(nameless)}), nil
					}}
					r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle})
					stop := runReflector(t, r)
					require.Len(t, h.all(), 1)
					assert.ErrorContains(t, h.all()[0], "watch event at version 9")
					assert.Equal(t, kind == watch.Deleted, len(r.Status().Quarantined) == 1)
					assert.Equal(t, "9", r.LastSyncResourceVersion())
					stop()
				})
			})
		}
		t.Run(name+", relist", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []apiruntime.Object{podAt("a", "2", "8"), newUndecoded(nameless)}}, nil
				}, watch: silentWatch}
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
				require.NoError(t, indexer.Replace([]any{podAt("a", "1", "5")}, "5"))
				stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{ErrorHandler: h.handle}))
				assert.Equal(t, []string{"a/2"}, indexer.ListKeys())
				require.Len(t, h.all(), 1)
				assert.ErrorContains(t, h.all()[0], "item 2 of the list")
				stop()
			})
		})
	}
}

// A custom key function keeps an undecoded object through a relist if it only needs metadata; one that
// needs the typed object loses it.
func TestAKeyFunctionThatCopesWithMetadataKeepsUndecodedObjects(t *testing.T) {
	for name, row := range map[string]struct {
		keyFunc cache.KeyFunc
		want    []string
	}{
		"copes":           {func(obj any) (string, error) { return "key of " + nameOf(obj), nil }, []string{"key of a/1", "key of a/2"}},
		"needs an object": {func(obj any) (string, error) { return "key of " + obj.(*object).Name, nil }, []string{"key of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newRig(t, source, func(c *cache.Config) {
					c.ListerWatcher = &badDecoder{source, func(any) error { return errBoom }}
					c.Store = cache.NewIndexer(row.keyFunc, nil)
				})
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Equal(t, 1, r.errors.count(causeInvalidObject))
				assert.ElementsMatch(t, row.want, r.indexer.ListKeys())
				r.stop()
			})
		})
	}
}

// The version of a bookmark that could not be decoded counts like any other's, if it can
// be read; the bookmark is reported.
func TestABookmarkThatCannotBeDecodedMovesTheVersion(t *testing.T) {
	for name, row := range map[string]struct {
		version, want string
		causes        []cache.Cause
	}{
		"newer":      {"9", "9", []cache.Cause{causeInvalidObject}},
		"unreadable": {"", "5", []cache.Cause{causeInvalidObject}},
		"older":      {"3", "5", []cache.Cause{causeInvalidObject, causeRegression}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &funcSource{watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newRecordedWatch(), nil
					}
					return newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: newUndecoded(podAt("", "", row.version))}), nil
				}}
				r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				assert.Equal(t, row.want, r.LastSyncResourceVersion())
				assert.Equal(t, row.causes, h.causes())
				assert.Empty(t, r.Status().Quarantined)
				stop()
			})
		})
	}
}

// An undecodable bookmark does not end a streaming list, whatever its metadata; the stream is abandoned
// because it is silent.
func TestAnUndecodedBookmarkDoesNotEndAStreamingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, end := &errorRecorder{}, newUndecoded(podAt("", "", "9"))
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
		}, watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newRecordedWatch(), nil
			}
			return newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: end}), nil
		}}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		sleep(9 * time.Second)
		assert.False(t, r.Status().Synced)
		sleep(10 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, []cache.Cause{causeInvalidObject, causeNoBookmark}, h.causes())
		stop()
	})
}

// G6: in a streaming list the last state of an object counts: decoded after undecoded is applied and not
// quarantined, undecoded after decoded keeps the decoded one, and a deletion, decoded or not, removes
// it. Fails if a key stays quarantined.
func TestG6InAStreamingListTheLastStateOfAnObjectCounts(t *testing.T) {
	good := func(name, version string) watch.Event {
		return watch.Event{Type: watch.Modified, Object: podAt("a", name, version)}
	}
	unread := func(kind watch.EventType, name, version string) watch.Event {
		return watch.Event{Type: kind, Object: newUndecoded(podAt("a", name, version))}
	}
	events := []watch.Event{
		unread(watch.Added, "recovered", "1"), good("recovered", "2"),
		good("spoilt", "3"), unread(watch.Modified, "spoilt", "4"),
		good("removed", "5"), unread(watch.Deleted, "removed", "6"),
		unread(watch.Added, "never", "7"), unread(watch.Deleted, "never", "8"),
		unread(watch.Added, "seen at its end", "9"), {Type: watch.Deleted, Object: podAt("a", "seen at its end", "10")},
		{Type: watch.Bookmark, Object: initialEventsEnd("11")},
	}
	for name, store := range map[string]func(cache.Indexer) cache.ReflectorStore{
		"ours":    func(i cache.Indexer) cache.ReflectorStore { return i },
		"foreign": func(i cache.Indexer) cache.ReflectorStore { return minimalStore{i} },
	} {
		for _, relist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, relist %v", name, relist), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					indexer, h := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), &errorRecorder{}
					if relist {
						require.NoError(t, indexer.Replace([]any{podAt("a", "removed", "1"), podAt("a", "never", "1"), podAt("a", "spoilt", "1")}, "1"))
					}
					source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
					r := cache.NewReflectorWithOptions(source, &object{}, store(indexer), cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					assert.ElementsMatch(t, []string{"a/recovered", "a/spoilt"}, indexer.ListKeys())
					spoilt, _, _ := indexer.GetByKey("a/spoilt")
					assert.Equal(t, "3", receivedOf(spoilt).ResourceVersion)
					require.Len(t, r.Status().Quarantined, 1)
					assert.Equal(t, "a/spoilt", r.Status().Quarantined[0].Key)
					assert.Len(t, h.all(), 6)
					assert.Equal(t, 6, h.count(causeInvalidObject))
					assert.True(t, r.Status().Synced)
					stop()
				})
			})
		}
	}
}

// S5: an object that could not be decoded ends the synthetic events, too, if it was not
// added.
func TestAnUndecodedChangeEndsTheSyntheticEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &funcSource{
			list: func(metav1.ListOptions) (apiruntime.Object, error) { return &metav1.PartialObjectMetadataList{}, nil },
			watch: func(context.Context, int) (watch.Interface, error) {
				return newRecordedWatch(
					watch.Event{Type: watch.Added, Object: newUndecoded(podAt("a", "1", "9"))},
					watch.Event{Type: watch.Modified, Object: newUndecoded(podAt("a", "1", "4"))},
				), nil
			},
		}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})
		stop := runReflector(t, r)
		assert.Equal(t, "4", r.LastSyncResourceVersion())
		stop()
	})
}

// G6: an undecoded object from a source of one namespace is in that namespace, even if its own is not
// readable. Fails if a list deletes it, or if its deletion is not applied.
func TestG6AnUndecodedObjectInAViewIsInItsNamespace(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		source := func() *funcSource {
			lists := 0
			return &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
				list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(5 + lists)}}
				if lists++; lists == 1 {
					list.Items = []apiruntime.Object{podAt("a", "1", "5"), podAt("a", "2", "5")}
				} else {
					list.Items = []apiruntime.Object{newUndecoded(podAt("", "1", "6"))}
				}
				return list, nil
			}, watch: func(_ context.Context, n int) (watch.Interface, error) {
				switch {
				case n == 1:
					return newRecordedWatch(errorEvent(cachetest.ErrExpired())), nil
				case deleted:
					return newRecordedWatch(watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("", "1", "7"))}), nil
				}
				return newRecordedWatch(), nil
			}}
		}
		want := []string{"a/1"}
		if deleted {
			want = []string{}
		}
		t.Run(fmt.Sprintf("a view, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &errorRecorder{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
				r := cache.NewReflectorWithOptions(source(), nil, cache.InNamespace(store, "a"), cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				assert.Equal(t, !deleted, len(r.Status().Quarantined) == 1)
				stop()
			})
		})
		t.Run(fmt.Sprintf("Config.Namespaces, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &errorRecorder{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
				c := cache.New(&cache.Config{Namespaces: map[string]cache.Source{"a": cache.ToListerWatcherWithContext(source())}, Store: store, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: h.handle}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); c.RunWithContext(ctx) }()
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				assert.Equal(t, !deleted, len(c.Status().Quarantined) == 1)
				cancel()
				<-done
			})
		})
	}
}

// G6: a state that a Process or a foreign store refused is released once the source has reverted it.
// Fails if the relist's state is mistaken for a resync of the old one.
func TestG6AStateThatWasRefusedAndRevertedIsNoLongerQuarantined(t *testing.T) {
	for name, build := range refusingRigs {
		for how, list := range map[string]func(*cache.Config){"a list": func(*cache.Config) {}, "a streaming list": stream} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := build(t, source, list)
					r.run()
					sleep(healthyTime)
					revertBadObject(t, source, r.status)
					r.assertEqualsSource()
					r.stop()
				})
			})
		}
	}
}

// revertBadObject makes an object bad and then reverts the source to before that, and checks
// the status in between and after. Another object, good and changed in the same time, shows
// that a list has been accepted.
func revertBadObject(t *testing.T, source *cachetest.Source, status func() cache.Status) {
	t.Helper()
	version := source.Version()
	require.NoError(t, source.Apply(bad(pod("a", "1")), labelled(pod("a", "2"), "later")))
	synctest.Wait()
	require.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Rollback(version))
	sleep(time.Minute)
	assert.Empty(t, status().Quarantined)
	// It is quarantined and reported again when it is bad again.
	require.NoError(t, source.Apply(bad(pod("a", "1"))))
	synctest.Wait()
	assert.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
	synctest.Wait()
	assert.Empty(t, status().Quarantined)
}

// G6: a quarantined state is released once the source has reverted it, however the previous state
// returns. Fails if a store ignores an unchanged object although a later state is quarantined.
func TestG6AStateThatTheSourceHasRevertedIsNoLongerQuarantined(t *testing.T) {
	for stage, install := range objectFailures {
		for name, list := range map[string]func(*cache.Config){
			"a list": func(*cache.Config) {}, "a list item by item": listByItem, "a streaming list": stream,
		} {
			t.Run(fmt.Sprintf("%s, %s", stage, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := newRig(t, source, func(c *cache.Config) {
						install(c, failIfBad)
						list(c)
					})
					r.run()
					sleep(healthyTime)
					revertBadObject(t, source, r.status)
					r.assertEqualsSource()
					r.stop()
				})
			})
		}
	}
}

// G6: the same in an informer, whose queue and store are its own.
func TestG6AnInformerReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newInformerRig(t, source, func(c *cache.InformerConfig[*object]) {
					c.ReflectorOptions.Strategy = strategy
					c.Indexes = cache.TypedIndexers[*object]{"fails": func(obj *object) ([]string, error) { return nil, failIfBad(obj) }}
				})
				r.run()
				sleep(healthyTime)
				revertBadObject(t, source, r.inf.Status)
				r.stop()
			})
		})
	}
}

// G6: the same without a queue.
func TestG6AReflectorsStoreReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }})
				reflector := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{Strategy: strategy, ErrorHandler: (&errorRecorder{}).handle})
				stop := runReflector(t, reflector)
				sleep(healthyTime)
				revertBadObject(t, source, reflector.Status)
				stop()
				source.Close()
			})
		})
	}
}

// G6: the same in one of several namespaces; another namespace's object stays quarantined.
func TestG6ANamespaceReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			eachNamespaceRig(t, func(t *testing.T, informer bool) {
				r := newNamespaceRig(t, informer, func(c *cache.Config) {
					deterministic(strategy, 0)(c)
					require.NoError(t, c.Store.(cache.Indexer).AddIndexers(cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }}))
				})
				r.run()
				sleep(healthyTime)
				r.apply(bad(pod("b", "1")))
				revertBadObject(t, r.sources["a"], func() cache.Status { return r.statusOf("a") })
				assert.Len(t, r.statusOf("b").Quarantined, 1)
				r.assertEqualsSources("a", "c")
				r.stop()
			})
		})
	}
}

// forEachWayOfDamage runs a test with each kind of mirror and each way to list.
func forEachWayOfDamage(t *testing.T, test func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest)) {
	for name, construct := range mirrors {
		for _, way := range listMethods {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, func(source *stateSource, reported *errorRecorder) mirrorUnderTest {
						return construct(source.asListerWatcher(way), damageOptions(way, reported))
					})
				})
			})
		}
	}
}

func damageOptions(way string, reported *errorRecorder) cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Strategy: strategyFor(way), ErrorHandler: reported.handle,
	}
}

// checkBegun checks the times at which states were requested, relative to the first.
func checkBegun(t *testing.T, source *stateSource, want ...time.Duration) {
	t.Helper()
	var have []time.Duration
	for _, at := range source.stateTimes() {
		have = append(have, at.Sub(source.stateTimes()[0]))
	}
	assert.Equal(t, append([]time.Duration{0}, want...), have)
}

// An undecodable item of a list is listed once more after a pause, since it may have been damaged in
// transit. If it is good then, it is applied at the same version. Meanwhile the mirror has synced and
// applies events. Fails if the object is absent until its next change, or if anything waits for it.
func TestG6ADamagedItemOfAListIsListedOnceMore(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(
			[]apiruntime.Object{validPod("sound", "1"), damaged("damaged", "5")},
			[]apiruntime.Object{validPod("sound", "1"), validPod("damaged", "5"), validPod("new", "103")},
		), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		assert.True(t, m.synced())
		assert.Equal(t, []string{"a/sound"}, m.keys())
		assert.Len(t, m.status().Quarantined, 1)
		sleep(time.Second)
		source.sendEvents(added(validPod("new", "103")))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a/sound", "a/new"}, m.keys())
		sleep(time.Second - 1)
		checkBegun(t, source)
		sleep(1)
		checkBegun(t, source, 2*time.Second)
		assert.ElementsMatch(t, []string{"a/sound", "a/new", "a/damaged"}, m.keys())
		assert.Equal(t, "110", m.version())
		assert.Empty(t, m.status().Quarantined)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		assert.Len(t, reported.take(), 1)
		end()
	})
}

// An item that is undecodable in the second list too, at the same version, stays quarantined, with one
// report and no third list. Fails if it is listed again and again.
func TestG6AnItemThatCannotBeDecodedTwiceStaysQuarantined(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource([]apiruntime.Object{validPod("sound", "1"), damaged("damaged", "5")}), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		assert.Len(t, m.status().Quarantined, 1)
		assert.Len(t, reported.take(), 1)
		source.expire() // a list for another reason has it a third time
		sleep(time.Hour)
		assert.Len(t, source.stateTimes(), 3)
		end()
	})
}

// An undecodable item is listed once more for each version, at most once a minute. Fails if an item that
// changes often is listed at each pause.
func TestG6ItemsThatAreNeverDecodedAreListedOnceAMinuteAndVersion(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(), &errorRecorder{}
		source.objects = func(n int) []apiruntime.Object {
			return []apiruntime.Object{damaged("damaged", strconv.Itoa(min(n, 4)))}
		}
		m := mirror(source, reported)
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second, 62*time.Second, 122*time.Second, 182*time.Second)
		assert.Len(t, reported.take(), 4)
		end()
	})
}

// Undecodable items without a readable name count as one. Fails if a change of their positions causes
// another list.
func TestG6DamagedItemsWithoutANameAreListedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource(), &errorRecorder{}
		source.objects = func(n int) []apiruntime.Object {
			return append(validPods(n), &damagedPod{metav1.PartialObjectMetadata{}})
		}
		m := mirrors["informer"](source.asListerWatcher(wholeList), damageOptions(wholeList, reported))
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		end()
	})
}

// No list follows if the watch has delivered a later state or the deletion, for undecodable events,
// or for objects refused for other causes.
func TestOnlyDamagedItemsAreListedAgain(t *testing.T) {
	for name, row := range map[string]struct {
		objects []apiruntime.Object
		events  []watch.Event
	}{
		"a later state":     {[]apiruntime.Object{damaged("1", "5")}, []watch.Event{modified(validPod("1", "101"))}},
		"its end":           {[]apiruntime.Object{damaged("1", "5")}, []watch.Event{deleted(validPod("1", "101"))}},
		"both":              {[]apiruntime.Object{damaged("1", "5"), refused("2", "2")}, []watch.Event{modified(validPod("1", "101"))}},
		"an event":          {validPods(1), []watch.Event{added(damaged("1", "101"))}},
		"another type":      {append(validPods(1), wrongTypePod("2", "2")), nil},
		"an index function": {append(validPods(1), refused("2", "2")), nil},
	} {
		for _, way := range []string{wholeList, streamingList} {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, reported := newStateSource(row.objects), &errorRecorder{}
					i := cache.NewSharedIndexInformerWithOptions(source.asListerWatcher(way), &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
						Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: damageOptions(way, reported),
					})
					m := mirrorUnderTest{run: i.RunWithContext}
					end := m.begin(t)
					require.True(t, i.HasSynced())
					source.sendEvents(row.events...)
					sleep(time.Hour)
					checkBegun(t, source)
					end()
				})
			})
		}
	}
}

// A list for another reason during the pause counts as the second list.
func TestAListForAnotherReasonCountsAsTheSecondListOfADamagedItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{damaged("1", "5")}), &errorRecorder{}
		options := damageOptions(wholeList, reported)
		m := mirrors["informer"](source.asListerWatcher(wholeList), options)
		end := m.begin(t)
		sleep(time.Second / 2)
		source.expire()
		sleep(time.Hour)
		assert.Len(t, source.stateTimes(), 2)
		end()
	})
}

// ListAndWatch is one round: it returns nil where the second list would follow.
func TestListAndWatchEndsWhereADamagedItemWouldBeListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{damaged("1", "5")}), &errorRecorder{}
		r := cache.NewReflectorWithOptions(source.asListerWatcher(wholeList), nil, cache.NewStore(cache.MetaNamespaceKeyFunc), damageOptions(wholeList, reported))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Equal(t, 2*time.Second, time.Since(began))
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Len(t, source.stateTimes(), 2)
	})
}

var errRefused = errors.New("refused")

// refuses says whether the index function or the transform of these tests refuses a pod.
func refuses(obj any) bool {
	pod, ok := obj.(*metav1.PartialObjectMetadata)
	return ok && pod.Labels["refuse"] == "yes"
}

func refused(name, version string) *metav1.PartialObjectMetadata {
	pod := validPod(name, version)
	pod.Labels = map[string]string{"refuse": "yes"}
	return pod
}

func refusingIndex(obj any) ([]string, error) {
	if refuses(obj) {
		return nil, errRefused
	}
	return nil, nil
}

func refusingTransform(obj any) (any, error) {
	if refuses(obj) {
		return nil, errRefused
	}
	return obj, nil
}

// checkQuarantined checks the results of a store's Get and GetByKey for a quarantined object.
func checkQuarantined(t *testing.T, store cache.Store, obj apiruntime.Object, key string, cause error) {
	t.Helper()
	byKey, exists, err := store.GetByKey(key)
	assert.Nil(t, byKey)
	assert.False(t, exists)
	require.ErrorIs(t, err, cache.ErrQuarantined)
	if cause != nil {
		require.ErrorIs(t, err, cause)
	}
	var object *cache.ObjectError
	require.ErrorAs(t, err, &object)
	assert.Equal(t, key, object.Key)
	assert.Contains(t, err.Error(), key)
	byObject, exists, err := store.Get(obj)
	assert.Nil(t, byObject)
	assert.False(t, exists)
	assert.ErrorIs(t, err, cache.ErrQuarantined)
}

func checkAbsent(t *testing.T, store cache.Store, key string) {
	t.Helper()
	obj, exists, err := store.GetByKey(key)
	assert.Nil(t, obj)
	assert.False(t, exists)
	assert.NoError(t, err)
}

func checkVersion(t *testing.T, store cache.Store, key, version string) {
	t.Helper()
	obj, exists, err := store.GetByKey(key)
	require.NoError(t, err)
	require.True(t, exists)
	assert.Equal(t, version, obj.(metav1.Object).GetResourceVersion())
}

// G6: Get of a key whose only state was refused returns ErrQuarantined until a good state arrives, the
// object is deleted, or a list omits it. An earlier state is still returned. Fails if Get returns "not
// found" for an existing object.
func TestG6AStoresGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	for name, make := range map[string]func() cache.Store{
		"index": func() cache.Store {
			return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
		},
		"transform": func() cache.Store {
			return cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(refusingTransform))
		},
		"view": func() cache.Store {
			return cache.InNamespace(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex}), "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := make()
			checkAbsent(t, store, "a/1")
			require.ErrorIs(t, store.Add(refused("1", "5")), cache.ErrQuarantined)
			checkQuarantined(t, store, refused("1", "5"), "a/1", errRefused)
			checkAbsent(t, store, "a/2")
			require.NoError(t, store.Add(validPod("1", "6")))
			checkVersion(t, store, "a/1", "6")
			require.Error(t, store.Update(refused("1", "7")))
			checkVersion(t, store, "a/1", "6")
			require.NoError(t, store.Delete(validPod("1", "7")))
			checkAbsent(t, store, "a/1")

			require.Error(t, store.Add(refused("1", "8")))
			require.NoError(t, store.Delete(validPod("1", "9")))
			checkAbsent(t, store, "a/1")
			require.Error(t, store.Replace([]any{refused("1", "10"), validPod("2", "3")}, "10"))
			checkQuarantined(t, store, refused("1", "10"), "a/1", errRefused)
			require.NoError(t, store.Replace([]any{validPod("2", "3")}, "11"))
			checkAbsent(t, store, "a/1")
		})
	}
}

// G6: the same for the store of every kind of mirror, at whatever stage the state was refused: decoding,
// type, transform or index, in a list or an event. Fails if only the store's own refusals are known.
func TestG6AMirrorsGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	for name, mirror := range map[string]func(cache.ListerWatcher, *errorRecorder) (run func(context.Context), store cache.Store){
		"informer": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return i.RunWithContext, i.GetIndexer()
		},
		"informer with a transform": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Transform: refusingTransform, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return i.RunWithContext, i.GetStore()
		},
		"controller": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return c.RunWithContext, store
		},
		"controller of a namespace": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				Namespaces: map[string]cache.Source{"a": cache.ToListerWatcherWithContext(source)}, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return c.RunWithContext, store
		},
		"reflector": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{ErrorHandler: reported.handle})
			return r.RunWithContext, store
		},
		"reflector of a view": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, cache.InNamespace(store, "a"), cache.ReflectorOptions{ErrorHandler: reported.handle})
			return r.RunWithContext, store
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource(
					[]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2"), wrongTypePod("other", "3"), refused("refused", "4")},
					[]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2")},
				), &errorRecorder{}
				run, store := mirror(source.asListerWatcher(wholeList), reported)
				m := mirrorUnderTest{run: run}
				end := m.begin(t)
				checkVersion(t, store, "a/good", "1")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				checkQuarantined(t, store, wrongTypePod("other", "3"), "a/other", nil)
				checkQuarantined(t, store, refused("refused", "4"), "a/refused", errRefused)

				source.sendEvents(added(damaged("damaged 2", "101")), added(refused("refused 2", "102")), modified(refused("good", "103")))
				synctest.Wait()
				checkQuarantined(t, store, damaged("damaged 2", "101"), "a/damaged 2", errDamaged)
				checkQuarantined(t, store, refused("refused 2", "102"), "a/refused 2", errRefused)
				checkVersion(t, store, "a/good", "1")
				source.sendEvents(modified(validPod("damaged 2", "104")), modified(validPod("refused 2", "105")), deleted(refused("refused", "106")), deleted(validPod("good", "107")))
				synctest.Wait()
				checkVersion(t, store, "a/damaged 2", "104")
				checkVersion(t, store, "a/refused 2", "105")
				checkAbsent(t, store, "a/refused")
				checkAbsent(t, store, "a/good")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)

				source.version = func(int) string { return "200" }
				source.expire()
				sleep(10 * time.Second)
				checkVersion(t, store, "a/good", "1")
				checkAbsent(t, store, "a/other")
				checkAbsent(t, store, "a/damaged 2")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				end()
			})
		})
	}
}

// G6: listers also return that error, which is not NotFound, so that code that acts on NotFound does
// nothing. Fails if a lister converts it.
func TestG6AListersGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2")}), &errorRecorder{}
		pods := schema.GroupResource{Resource: "pods"}
		i := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source.asListerWatcher(wholeList)), cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle}})
		m := mirrorUnderTest{run: func(ctx context.Context) { _ = i.Run(ctx) }}
		end := m.begin(t)
		generic := cache.NewGenericLister(i.Shared().GetIndexer(), pods)
		for name, get := range map[string]func(name string) error{
			"informer":           func(name string) error { _, err := i.Get("a/" + name); return err },
			"lister":             func(name string) error { _, err := i.Reader.Get("a/" + name); return err },
			"namespace's lister": func(name string) error { _, err := i.ByNamespace("a").Get(name); return err },
			"snapshot":           func(name string) error { _, err := i.Snapshot().Get("a/" + name); return err },
			"snapshot's lister":  func(name string) error { _, err := i.Snapshot().ByNamespace("a").Get(name); return err },
			"generic":            func(name string) error { _, err := generic.Get("a/" + name); return err },
			"generic namespace":  func(name string) error { _, err := generic.ByNamespace("a").Get(name); return err },
		} {
			assert.NoError(t, get("good"), name)
			err := get("damaged")
			assert.ErrorIs(t, err, cache.ErrQuarantined, name)
			assert.ErrorIs(t, err, errDamaged, name)
			assert.False(t, apierrors.IsNotFound(err), name)
			assert.True(t, apierrors.IsNotFound(get("absent")), name)
		}
		_, exists := i.Lookup("a/damaged")
		assert.False(t, exists)
		end()
	})
}

// The first list of a new mirror of a store releases the keys that an ended mirror quarantined. Fails if
// they stay quarantined forever.
func TestTheFirstListOfANewMirrorReleasesKeysQuarantinedByAnEndedOne(t *testing.T) {
	for name, mirror := range map[string]func(cache.Store, cache.ListerWatcher, cache.ReflectorOptions) func(context.Context){
		"reflector": func(store cache.Store, source cache.ListerWatcher, options cache.ReflectorOptions) func(context.Context) {
			return cache.NewReflectorWithOptions(source, nil, store, options).RunWithContext
		},
		"controller": func(store cache.Store, source cache.ListerWatcher, options cache.ReflectorOptions) func(context.Context) {
			return cache.New(&cache.Config{ListerWatcher: source, Store: store, Transform: refusingTransform, ReflectorOptions: options}).RunWithContext
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
				for n, objects := range [][]apiruntime.Object{{damaged("1", "1"), refused("2", "2")}, {validPod("3", "3")}} {
					m := mirrorUnderTest{run: mirror(store, newStateSource(objects).asListerWatcher(wholeList), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})}
					end := m.begin(t)
					if n == 0 {
						checkQuarantined(t, store, damaged("1", "1"), "a/1", errDamaged)
						checkQuarantined(t, store, refused("2", "2"), "a/2", errRefused)
					}
					end()
				}
				checkAbsent(t, store, "a/1")
				checkAbsent(t, store, "a/2")
			})
		})
	}
}

// A queue treats ErrQuarantined of its KnownObjects as absence: it neither deletes the object nor
// reports that it could not be read. Fails if that error counts as a failure of KnownObjects.
func TestAQuarantinedKeyIsAbsentFromAQueue(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
	require.Error(t, store.Add(refused("1", "1")))
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
	require.NoError(t, queue.Replace([]any{validPod("2", "2")}, "2"))
	require.NoError(t, queue.Resync())
	popped, err := queue.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, cache.Replaced, popped.(cache.Deltas)[0].Type)
}

// ownKeys is a program's store around one of this package; its keys are a label's values.
type ownKeys struct{ cache.Store }

// replacingOwnKeys is an ownKeys that accepts lists in parts.
type replacingOwnKeys struct{ ownKeys }

func (s replacingOwnKeys) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	return s.Store.(cache.Replacer).BeginReplace(options)
}

func newOwnKeys() ownKeys {
	return ownKeys{cache.NewIndexer(func(obj any) (string, error) {
		return obj.(metav1.Object).GetLabels()["key"], nil
	}, cache.Indexers{"good": func(obj any) ([]string, error) {
		if obj.(metav1.Object).GetLabels()["bad"] != "" {
			return nil, errors.New("bad")
		}
		return nil, nil
	}})}
}

// keyed is an object of the kind Thing and the namespace a.
func keyed(name, key, version string, bad bool) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	object.SetNamespace("a")
	object.SetName(name)
	object.SetResourceVersion(version)
	object.SetLabels(map[string]string{"key": key})
	if bad {
		object.SetLabels(map[string]string{"key": key, "bad": "yes"})
	}
	return object
}

func ofKind(kind string, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetKind(kind)
	return object
}

// keyedRig is a reflector that feeds an ownKeys from lists and events of a test.
type keyedRig struct {
	*testing.T
	events    chan watch.Event
	reflector *cache.Reflector
	ctx       context.Context
	cancel    func()
	running   sync.WaitGroup
}

// newKeyedRig returns a rig whose source returns the lists in turn; the last one repeats.
func newKeyedRig(t *testing.T, store cache.ReflectorStore, expected any, strategy cache.ListStrategy, lists ...[]*unstructured.Unstructured) *keyedRig {
	r := &keyedRig{T: t, events: make(chan watch.Event, 16)}
	version := 10
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion(fmt.Sprint(version))
			version += 10
			for _, object := range lists[0] {
				list.Items = append(list.Items, *object)
			}
			if len(lists) > 1 {
				lists = lists[1:]
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(r.events), nil
		},
	}
	r.reflector = cache.NewReflectorWithOptions(source, expected, store, cache.ReflectorOptions{
		Strategy: strategy, ErrorHandler: func(context.Context, *cache.Reflector, error) {},
	})
	r.ctx, r.cancel = context.WithCancel(t.Context())
	r.running.Go(func() { r.reflector.RunWithContext(r.ctx) })
	synctest.Wait()
	return r
}

func (r *keyedRig) send(kind watch.EventType, object *unstructured.Unstructured) {
	r.events <- watch.Event{Type: kind, Object: object}
	synctest.Wait()
}

// assertQuarantined requires that exactly these keys are quarantined.
func (r *keyedRig) assertQuarantined(keys ...string) {
	r.Helper()
	held := []string{}
	for _, one := range r.reflector.Status().Quarantined {
		held = append(held, one.Key)
	}
	assert.ElementsMatch(r, keys, held)
}

func (r *keyedRig) stop() {
	r.cancel()
	r.running.Wait()
}

// Fails if an object that was refused under the store's key is released by its name, or by the key
// that another object has for a name.
func TestG6AnObjectThatAWrappedStoreRefusesIsQuarantinedAndReleasedByKey(t *testing.T) {
	things := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	for name, row := range map[string]struct {
		expected any
		script   func(r *keyedRig)
	}{
		"a good state": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.assertQuarantined("k1")
			r.send(watch.Modified, keyed("1", "k1", "12", false))
			r.assertQuarantined()
		}},
		"a deletion": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.send(watch.Deleted, keyed("1", "k1", "12", true))
			r.assertQuarantined()
		}},
		"another object, named as the key": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "k2", "12", false))
			r.assertQuarantined("a/2")
			r.send(watch.Deleted, keyed("2", "k2", "13", false))
			r.assertQuarantined("a/2")
			r.send(watch.Modified, keyed("1", "a/2", "14", false))
			r.assertQuarantined()
		}},
		"another object, which is held as well": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "a/1", "12", true))
			r.assertQuarantined("a/1", "a/2")
			r.send(watch.Modified, keyed("2", "a/1", "13", false))
			r.assertQuarantined("a/2")
		}},
		"another kind": {nil, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "thing-1", "11", true))
			r.send(watch.Added, ofKind("Other", keyed("1", "other-1", "12", true)))
			r.assertQuarantined("thing-1", "other-1")
			r.send(watch.Modified, ofKind("Other", keyed("1", "other-1", "13", false)))
			r.assertQuarantined("thing-1")
			r.send(watch.Modified, keyed("1", "thing-1", "14", false))
			r.assertQuarantined()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newKeyedRig(t, newOwnKeys(), row.expected, cache.ListUnpaged, nil)
				row.script(r)
				r.stop()
			})
		})
	}
}

// The same for listed objects.
func TestG6ALaterStateReleasesAListedObjectThatAWrappedStoreRefused(t *testing.T) {
	for name, store := range map[string]cache.ReflectorStore{"whole": newOwnKeys(), "in parts": replacingOwnKeys{newOwnKeys()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []*unstructured.Unstructured{keyed("1", "a/2", "3", true), keyed("2", "k2", "4", true), keyed("3", "k3", "5", true)}
				r := newKeyedRig(t, store, nil, cache.ListUnpaged, all, all[:2])
				r.assertQuarantined("a/2", "k2", "k3")
				r.send(watch.Modified, keyed("2", "k2", "11", false))
				r.assertQuarantined("a/2", "k3")
				r.send(watch.Error, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Status", "code": int64(410), "reason": "Expired"}})
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, "20", r.reflector.LastSyncResourceVersion())
				r.assertQuarantined("a/2", "k2")
				r.stop()
			})
		})
	}
}

// Fails if a stream's later state of an object does not count for a key that the store made.
func TestG6ALaterStreamedStateReleasesAnObjectThatAWrappedStoreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKeyedRig(t, replacingOwnKeys{newOwnKeys()}, nil, cache.ListStreaming, nil)
		r.send(watch.Added, keyed("1", "a/2", "3", true))
		for n := range 120 { // more than a part, so that the first part is refused before the bookmark
			r.send(watch.Added, keyed(fmt.Sprint(100+n), fmt.Sprint(n), "4", false))
		}
		r.assertQuarantined("a/2")
		r.send(watch.Added, keyed("1", "a/2", "5", false))
		end := keyed("", "", "10", false)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		r.send(watch.Bookmark, end)
		require.Equal(t, "10", r.reflector.LastSyncResourceVersion())
		r.assertQuarantined()
		r.stop()
	})
}

// kindless is an object without a kind.
type kindless struct {
	object
	panics bool
}

func (k *kindless) GetObjectKind() schema.ObjectKind {
	if k.panics {
		panic("no kind")
	}
	return nil
}

func (k *kindless) DeepCopyObject() apiruntime.Object { return k }

func unstructuredAt(kind, key, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	meta := podWithKey(key, version)
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	o.SetUID(meta.UID)
	o.SetResourceVersion(version)
	return o
}

// G6: the deletion of an object of another type is reported once and does not delete the stored
// object of that name, in a streaming list or a watch. Fails if the type of a deleted object is not
// checked.
func TestG6InAStreamADeletionOfAnotherTypeDeletesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		example, good, other apiruntime.Object
	}{
		"another Go type":            {&object{}, podWithKey("a/1", "5"), unstructuredAt("Pod", "a/1", "9")},
		"another kind":               {unstructuredAt("Pod", "", ""), unstructuredAt("Pod", "a/1", "5"), unstructuredAt("ConfigMap", "a/1", "9")},
		"its kind panics, and typed": {&object{}, podWithKey("a/1", "5"), &kindless{*podWithKey("a/1", "9"), true}},
	} {
		for phase, streams := range map[string][][]watch.Event{
			"in a watch":      {{added(row.good), initialEventsEndEvent("6"), deleted(row.other)}},
			"first list":      {{added(row.good), deleted(row.other), initialEventsEndEvent("9")}},
			"later list":      {{added(row.good), initialEventsEndEvent("6"), expiredEvent()}, {added(row.good), deleted(row.other), initialEventsEndEvent("9")}},
			"before the good": {{deleted(row.other), initialEventsEndEvent("9"), added(row.good)}},
		} {
			t.Run(name+", "+phase, func(t *testing.T) {
				forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
					source := &streamScript{streams: streams}
					m := start(source, row.example)
					sleep(pause)
					assert.Equal(t, []string{"a/1@5"}, m.storedVersions())
					want := []string{"type a/1@9"}
					if len(streams) == 2 {
						want = []string{"expired", "type a/1@9"}
					}
					assert.Equal(t, want, m.reportTexts())
					if phase == "before the good" {
						assert.Empty(t, m.quarantined(), "a later state of it was accepted")
					} else {
						assert.Equal(t, []string{"a/1"}, m.quarantined())
					}
					assert.Subset(t, []string{"add a/1@5"}, m.handlerCalls())
				})
			})
		}
	}
}

// G6: an object of another type that a streaming list adds and deletes is reported once, and not
// quarantined, whether its part was passed on in between or not. Fails if the deletion is another
// report then.
func TestG6InAStreamAnObjectOfAnotherTypeThatIsDeletedIsReportedOnce(t *testing.T) {
	other := unstructuredAt("Pod", "a/1", "3")
	for name, between := range map[string][]watch.Event{
		"at once":        {added(podWithKey("a/2", "5"))},
		"after its part": {added(podWithKey("a/2", "5")), modified(podWithKey("a/2", "6"))},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				events := append([]watch.Event{added(other)}, between...)
				events = append(events, deleted(unstructuredAt("Pod", "a/1", "7")), initialEventsEndEvent("9"))
				m := start(&streamScript{streams: [][]watch.Event{events}}, &object{})
				sleep(pause)
				assert.Equal(t, []string{"type a/1@3"}, m.reportTexts())
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// G6: an event of an unknown type quarantines its object, whose previous state stays, also if the stream
// has no other state. Without a name it is only reported.
func TestG6InAStreamAnUnknownEventQuarantinesItsObject(t *testing.T) {
	unknown := watch.Event{Type: "RENAMED", Object: podWithKey("a/1", "7")}
	for name, streams := range map[string][][]watch.Event{
		"in a watch":           {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), unknown}},
		"first list":           {{added(podWithKey("a/1", "5")), unknown, initialEventsEndEvent("8")}},
		"later list":           {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), expiredEvent()}, {added(podWithKey("a/1", "5")), unknown, initialEventsEndEvent("8")}},
		"later list, it alone": {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), expiredEvent()}, {unknown, initialEventsEndEvent("8")}},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				source := &streamScript{streams: streams}
				m := start(source, &object{})
				sleep(pause)
				if name != "later list, it alone" || mirror != "a store of somebody else's" { // which is given the rest
					assert.Equal(t, []string{"a/1@5"}, m.storedVersions())
				}
				assert.Contains(t, m.reportTexts(), "type a/1@7")
				assert.Equal(t, []string{"a/1"}, m.quarantined())
				source.send(modified(podWithKey("a/1", "9")))
				assert.Empty(t, m.quarantined())
				source.send(watch.Event{Type: "RENAMED", Object: podWithKey("", "10")})
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// G6: a store that receives a streaming list in one Replace needs the kind of each object, to
// distinguish objects of one name. If the kind is nil or panics, the Go type counts. Fails if it
// panics.
func TestG6AForeignStoreSurvivesAStreamedObjectWithoutAKind(t *testing.T) {
	for name, panics := range map[string]bool{"nil": false, "panics": true} {
		for _, example := range []apiruntime.Object{nil, &kindless{}} {
			for kind, event := range map[string]watch.EventType{"added": watch.Added, "modified": watch.Modified, "deleted": watch.Deleted} {
				t.Run(fmt.Sprintf("%s, %s, typed %v", name, kind, example != nil), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						good, m := apiruntime.Object(podWithKey("a/2", "4")), &streamedMirror{t: t}
						events := []watch.Event{{Type: event, Object: &kindless{*podWithKey("a/1", "5"), panics}}, initialEventsEndEvent("6")}
						if example == nil {
							events = append([]watch.Event{added(good)}, events...)
						}
						streamedMirrors["a store of somebody else's"](m, &streamScript{streams: [][]watch.Event{events}}, example)
						want := []string{}
						if event != watch.Deleted {
							want = append(want, "a/1@5")
						}
						if example == nil {
							want = append(want, "a/2@4")
						}
						assert.ElementsMatch(t, want, m.storedVersions())
						assert.Empty(t, m.reportTexts())
						assert.True(t, m.status.Status().Synced)
					})
				})
			}
		}
	}
}

// damagedDeletion is a deletion that could not be decoded and has no name.
type damagedDeletion struct{ object }

func (damagedDeletion) DecodeError() error { return errBoom }

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
