package guarantees

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
