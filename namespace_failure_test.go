package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// G1, G5: a namespace that is forbidden from the start is reported as such, and
// the others serve, get events and have synced. Once it is allowed it is mirrored
// like the others. Fails if anything of it is waited for, but by HasSynced.
func TestANamespaceThatIsForbiddenHoldsBackNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.run()
		synctest.Wait()
		assert.Equal(t, []string{"a", "c"}, r.synced(), "at once")
		sleep(5 * time.Minute)
		r.apply(labelled(pod("a", "1"), "x"), pod("c", "3"))
		synctest.Wait()
		r.equalsSources("a", "c")
		assert.Subset(t, r.handler.take(), []string{"update a/1@3", "add c/3@3"})

		assert.Equal(t, PhaseForbidden, r.in("b").Phase)
		assert.Equal(t, PhaseWatching, r.in("a").Phase)
		assert.Equal(t, PhaseWatching, r.in("c").Phase)
		assert.Equal(t, CauseForbidden, r.in("b").LastFailure.Cause)
		assert.Nil(t, r.in("a").LastFailure)
		assert.Equal(t, PhaseForbidden, r.status().Phase)
		assert.Equal(t, r.in("b").ConsecutiveFailures, r.status().ConsecutiveFailures)
		assert.Equal(t, []string{"a", "c"}, r.synced())
		assert.False(t, r.ctlr.HasSynced())
		assert.False(t, r.status().Synced)
		assert.False(t, IsDone(r.ctlr.HasSyncedChecker()))
		assert.Empty(t, r.ctlr.LastSyncResourceVersion(), "of b nothing is known")
		assert.Equal(t, "3", r.in("a").AppliedVersion)

		r.sources["b"].Heal()
		sleep(time.Minute)
		r.equalsSources("a", "b", "c")
		assert.True(t, IsDone(r.ctlr.HasSyncedChecker()), "nobody has to ask for it")
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, []string{"a", "b", "c"}, r.synced())
		assert.Equal(t, PhaseWatching, r.status().Phase)
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}

// What has been mirrored stays when a namespace is no longer allowed.
func TestANamespaceThatBecomesForbiddenKeepsItsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.run()
		synctest.Wait()
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.sources["b"].FailWatches(cachetest.Forever, forbidden())
		r.sources["b"].CloseWatches()
		sleep(5 * time.Minute)
		assert.Equal(t, PhaseForbidden, r.in("b").Phase)
		r.apply(pod("a", "3"))
		synctest.Wait()
		r.equalsSources("a", "b", "c")
		assert.True(t, r.ctlr.HasSynced(), "once")
		r.sources["b"].Heal()
		r.apply(pod("b", "3"))
		sleep(time.Minute)
		r.equalsSources("a", "b", "c")
		r.stop()
	})
}

// Whatever one source does, nobody waits for it: in particular not with the turn to
// call the handler.
func TestANamespaceThatHangsHoldsBackNoOther(t *testing.T) {
	for name, fault := range map[string]func(*cachetest.Source){
		"list hangs":         func(s *cachetest.Source) { s.HangLists(1) },
		"list is late":       func(s *cachetest.Source) { s.DelayLists(time.Hour) },
		"watch hangs":        func(s *cachetest.Source) { s.HangWatches(1) },
		"watch is silent":    func(s *cachetest.Source) { s.Silence() },
		"stream has no end":  func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever) },
		"connection refused": func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused()) },
	} {
		for way, change := range map[string]func(*Config){"listing": nil, "streaming": stream} {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newNamespaceRig(t, change)
					fault(r.sources["b"])
					r.run()
					synctest.Wait()
					r.equalsSources("a", "c")
					r.handler.take()
					r.apply(pod("a", "3"), pod("c", "3"))
					synctest.Wait()
					r.equalsSources("a", "c")
					assert.ElementsMatch(t, []string{"add a/3@3", "add c/3@3"}, r.handler.take())
					r.stop()
				})
			})
		}
	}
}

// G6: a source that ignores the namespace it was asked for is told so, object by
// object and once a version; the namespace to which they belong is not disturbed.
// Fails if a view takes, or deletes, what is not its own, or if it holds it back
// where its owner's view would find it.
func TestG6ObjectsOfAnotherNamespaceAreQuarantined(t *testing.T) {
	for name, change := range map[string]func(*Config){"listing": nil, "streaming": stream} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("b", "1"))
				r := &namespaceRig{rig: newRig(t, source, func(c *Config) {
					if change != nil {
						change(c)
					}
					c.ListerWatcher = nil
					c.Namespaces = map[string]ListerWatcher{"a": source.Namespace("a"), "b": source}
				})}
				r.run()
				synctest.Wait()
				assert.True(t, r.ctlr.HasSynced())
				r.equalsSource()
				require.Len(t, r.heard.all(), 1)
				require.ErrorIs(t, r.heard.all()[0], ErrOtherNamespace)
				var refused *ObjectError
				require.ErrorAs(t, r.heard.all()[0], &refused)
				assert.Equal(t, StageKey, refused.Stage)
				assert.Equal(t, "a/1", refused.Key)
				assert.Equal(t, []string{"a/1"}, keysHeldIn(r.in("b")))
				assert.Empty(t, r.in("a").Quarantined)
				assert.Equal(t, []string{"a/1"}, keysHeldIn(r.status()))
				r.handler.take()

				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), labelled(pod("b", "1"), "x")))
				synctest.Wait()
				r.equalsSource()
				assert.ElementsMatch(t, []string{"update a/1@3", "update b/1@4"}, r.handler.take())
				assert.Len(t, r.heard.all(), 2)

				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				r.equalsSource()
				assert.Empty(t, r.handler.take())
				assert.Equal(t, 2, r.heard.count(CauseObject), "once a version")

				_, err := source.Delete("a", "1")
				require.NoError(t, err)
				synctest.Wait()
				r.equalsSource()
				assert.Equal(t, []string{"delete a/1"}, r.handler.take())
				assert.Empty(t, r.in("b").Quarantined, "it is gone")
				r.stop()
			})
		})
	}
}

// keysHeldIn are the quarantined keys of a status.
func keysHeldIn(s Status) []string {
	var keys []string
	for _, held := range s.Quarantined {
		keys = append(keys, held.Key)
	}
	return keys
}

// A namespace's own bad objects are its own affair, and seen in both statuses.
func TestG6ABadObjectIsQuarantinedInItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, func(c *Config) {
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
		r.equalsSources("a", "c")
		assert.Equal(t, []string{"b/2"}, keysHeldIn(r.in("b")))
		assert.Empty(t, r.in("a").Quarantined)
		assert.Equal(t, []string{"b/2"}, keysHeldIn(r.status()))
		assert.Equal(t, []Cause{CauseObject}, r.heard.causes())
		r.apply(labelled(pod("b", "2"), "good"))
		synctest.Wait()
		r.equalsSources("a", "b", "c")
		assert.Empty(t, r.status().Quarantined)
		r.stop()
	})
}
