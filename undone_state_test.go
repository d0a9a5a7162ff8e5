package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// An object whose newest state is held back still shows the one before. If the source is
// restored to that one, it brings nothing new, and yet ends the quarantine.

// failIfBad is a user function's error for a bad object.
func failIfBad(obj any) error {
	if isBad(obj) {
		return errBoom
	}
	return nil
}

// undo makes an object bad and then takes the source back to before that, with a look at
// the status in between and after. The other object, good and changed in the same time, is
// there to see that a list has been taken.
func undo(t *testing.T, source *cachetest.Source, status func() Status) {
	t.Helper()
	version := source.Version()
	require.NoError(t, source.Apply(bad(pod("a", "1")), labelled(pod("a", "2"), "later")))
	synctest.Wait()
	require.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Rollback(version))
	sleep(time.Minute)
	assert.Empty(t, status().Quarantined)
	// It is held back anew, and reported anew, when it is bad again.
	require.NoError(t, source.Apply(bad(pod("a", "1"))))
	synctest.Wait()
	assert.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
	synctest.Wait()
	assert.Empty(t, status().Quarantined)
}

// G6: whatever could not be done with a state that the source has undone, nothing of it
// stays in the status, however the state before comes back. Fails if an unchanged object
// is not news to whoever holds back a later state of it.
func TestG6AStateThatTheSourceHasUndoneIsNoLongerHeldBack(t *testing.T) {
	for stage, install := range failures {
		for name, list := range map[string]func(*Config){
			"a list": func(*Config) {}, "a list item by item": listByItem, "a streaming list": stream,
		} {
			t.Run(fmt.Sprintf("%s, %s", stage, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := newRig(t, source, func(c *Config) {
						install(c, failIfBad)
						list(c)
					})
					r.run()
					sleep(healthy)
					undo(t, source, r.status)
					r.equalsSource()
					r.stop()
				})
			})
		}
	}
}

// G6: the same in an informer, whose queue and store are its own.
func TestG6AnInformerHoldsBackNothingThatWasUndone(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newInformerRig(t, source, func(c *InformerConfig[*object]) {
					c.ReflectorOptions.Strategy = strategy
					c.Indexes = TypedIndexers[*object]{"fails": func(obj *object) ([]string, error) { return nil, failIfBad(obj) }}
				})
				r.run()
				sleep(healthy)
				undo(t, source, r.inf.Status)
				r.stop()
			})
		})
	}
}

// G6: the same without a queue.
func TestG6AReflectorsStoreHoldsBackNothingThatWasUndone(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }})
				reflector := NewReflectorWithOptions(source, &object{}, indexer, ReflectorOptions{Strategy: strategy, ErrorHandler: (&heard{}).handle})
				stop := runReflector(t, reflector)
				sleep(healthy)
				undo(t, source, reflector.Status)
				stop()
				source.Close()
			})
		})
	}
}

// G6: the same in one of several namespaces, while what another holds back stays held.
func TestG6ANamespaceHoldsBackNothingThatWasUndone(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newNamespaceRig(t, func(c *Config) {
					tuned(strategy, 0)(c)
					require.NoError(t, c.Store.(Indexer).AddIndexers(Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }}))
				})
				r.run()
				sleep(healthy)
				r.apply(bad(pod("b", "1")))
				undo(t, r.sources["a"], func() Status { return r.in("a") })
				assert.Len(t, r.in("b").Quarantined, 1)
				r.equalsSources("a", "c")
				r.stop()
			})
		})
	}
}
