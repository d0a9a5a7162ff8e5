package cache

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// oneAtATime is a handler that fails the test if two call it at once, if the store
// changes while it runs, or if a key goes back.
type oneAtATime struct {
	*testing.T
	store  Store
	random *rand.Rand

	running atomic.Int32
	calls   int
	newest  map[string]string
}

func (h *oneAtATime) hear(key, version string) {
	assert.EqualValues(h, 1, h.running.Add(1), "calls at once")
	defer h.running.Add(-1)
	before := contents(h.store)
	time.Sleep(time.Duration(h.random.IntN(1000)) * time.Millisecond)
	assert.Equal(h, before, contents(h.store), "written to while the handler runs")
	h.calls++
	if version != "" {
		assert.False(h, versionBefore(version, h.newest[key]), "%s goes back from %s to %s", key, h.newest[key], version)
		h.newest[key] = version
	}
}

func (h *oneAtATime) OnAdd(obj any, _ bool) { h.hear(nameOf(obj), receivedOf(obj).ResourceVersion) }

func (h *oneAtATime) OnUpdate(_, newObj any) {
	h.hear(nameOf(newObj), receivedOf(newObj).ResourceVersion)
}

func (h *oneAtATime) OnDelete(obj any) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		h.hear(tombstone.Key, "")
		return
	}
	h.hear(nameOf(obj), receivedOf(obj).ResourceVersion)
}

// G2: one handler for all namespaces is called by one at a time, in each key's
// order, and the store rests meanwhile. Fails if the consumers do not take turns, or
// if a turn ends before the batch has been told.
func TestG2TheHandlerOfSeveralNamespacesIsCalledByOneAtATime(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			h := &oneAtATime{T: t, random: rand.New(rand.NewPCG(seed, 1)), newest: map[string]string{}}
			r := newNamespaceRig(t, func(c *Config) {
				h.store = c.Store
				c.Handler = h
			})
			r.run()
			for range 200 {
				namespace := []string{"a", "b", "c"}[random.IntN(3)]
				source := r.sources[namespace]
				switch name := itoa(random.IntN(4)); random.IntN(12) {
				case 0, 1:
					_, _ = source.Delete(namespace, name)
				case 2:
					_, _ = source.DeleteSilently(namespace, name)
				case 3:
					source.BreakWatches(cachetest.ErrExpired())
				default:
					r.apply(labelled(pod(namespace, name), itoa(random.IntN(100))))
				}
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			}
			for _, source := range r.sources {
				source.BreakWatches(cachetest.ErrExpired())
			}
			sleep(10 * time.Minute)
			r.equalsSources("a", "b", "c")
			assert.Greater(t, h.calls, 100)
			r.stop()
		})
	}
}

// G5: what has nothing to tell does not wait for a handler that is busy with another
// namespace: an empty one syncs, for which a handler may even wait, and versions move.
func TestG5ANamespaceWithNothingToTellDoesNotWaitForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *namespaceRig
		empty := newSource(t)
		empty.Advance(7)
		waited := -1 * time.Second
		r = newNamespaceRig(t, func(c *Config) {
			c.Namespaces["empty"] = empty.Namespace("empty")
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(any) {
				if waited >= 0 {
					return
				}
				synced, _ := SyncedIn(r.ctlr, "empty")
				began := time.Now()
				select {
				case <-synced.Done():
				case <-time.After(time.Hour):
				}
				waited = time.Since(began)
				assert.Equal(t, "7", r.in("empty").AppliedVersion)
				time.Sleep(time.Minute) // until it is watched
				empty.Advance(1)
				empty.SendBookmarks()
				time.Sleep(time.Minute)
				assert.Equal(t, "8", r.in("empty").AppliedVersion)
				assert.Len(t, r.versions(), 2, "what is to be told waits for its turn")
			}}
		})
		r.run()
		sleep(3 * time.Hour)
		assert.Zero(t, waited)
		r.equalsSources("a", "b", "c")
		assert.True(t, r.ctlr.HasSynced())
		empty.Close()
		r.stop()
	})
}

// A handler that is busy with one namespace lets another have the next turn.
func TestABusyNamespaceDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := newNamespaceRig(t, func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
				time.Sleep(time.Second)
				told = append(told, obj.(*object).Namespace)
			}}
		})
		r.run()
		synctest.Wait()
		for i := range 100 {
			r.apply(labelled(pod("a", "1"), itoa(i)))
			if i == 50 {
				r.apply(labelled(pod("b", "1"), "x"))
			}
			time.Sleep(100 * time.Millisecond)
		}
		sleep(time.Hour)
		at := slices.Index(told, "b")
		require.NotEqual(t, -1, at)
		assert.Less(t, at, 60, "at most the two batches that a had pending come first")
		r.stop()
	})
}

// Fails if a turn is waited for without the context, or taken after its end.
func TestATurnIsWaitedForWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, shared := range map[string]turns{"shared": newTurns(), "alone": nil} {
			ctx, cancel := context.WithCancel(context.Background())
			require.True(t, shared.begin(ctx), name)
			if shared != nil {
				waited := make(chan bool)
				go func() { waited <- shared.begin(ctx) }()
				synctest.Wait()
				cancel()
				assert.False(t, <-waited, "while another has it")
			}
			cancel()
			shared.end()
			for range 20 {
				assert.False(t, shared.begin(ctx), "after the end, also where it is free: %s", name)
			}
			require.True(t, shared.begin(context.Background()), name)
			shared.end()
		}
	})
}
