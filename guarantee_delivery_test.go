package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// past is a source's history: what was told of each version by who kept up, and what
// the source had after it.
type past struct {
	source *cachetest.Source
	log    []string
	// held are the versions of all keys after each change, and before the first.
	held []map[string]int
}

// newPast begins with an empty source at version 1: no list is of version 0.
func newPast(t *testing.T) *past {
	source := newSource(t)
	source.Advance(1)
	return &past{source: source, held: []map[string]int{{}}}
}

// write changes something at random.
func (p *past) write(t testing.TB, random *rand.Rand, keys int) {
	name := itoa(random.IntN(keys))
	key := "a/" + name
	now := map[string]int{}
	for k, v := range p.held[len(p.held)-1] {
		now[k] = v
	}
	version := len(p.held) + 1
	_, exists := now[key]
	switch {
	case exists && random.IntN(4) == 0:
		_, err := p.source.Delete("a", name)
		require.NoError(t, err)
		delete(now, key)
		p.log = append(p.log, "delete "+key)
	case exists:
		require.NoError(t, p.source.Apply(labelled(pod("a", name), itoa(version))))
		now[key] = version
		p.log = append(p.log, fmt.Sprint("update ", key, "@", version))
	default:
		require.NoError(t, p.source.Apply(pod("a", name)))
		now[key] = version
		p.log = append(p.log, fmt.Sprint("add ", key, "@", version))
	}
	p.held = append(p.held, now)
}

// continues fails the test unless told is what the source had after some version, and
// then everything that happened after that version, in the source's order.
func (p *past) continues(t testing.TB, told []string, initial int) {
	told = slices.DeleteFunc(told, func(line string) bool { return line[0] == 'r' }) // resyncs
	later := len(told) - initial
	require.LessOrEqual(t, later, len(p.log), "something was told twice")
	before := len(p.log) - later
	want := []string{}
	for key, version := range p.held[before] {
		want = append(want, fmt.Sprint("add ", key, "@", version))
	}
	require.ElementsMatch(t, want, told[:initial], "what the source had after %d changes", before)
	for i, line := range p.log[before:] {
		require.Equal(t, line, told[initial+i], "change %d of %d", before+i, len(p.log))
	}
}

// G3: a handler that keeps up, though it takes its time, is told of every change, in the
// source's order across keys, and of none twice. Fails if anything is dropped, merged or
// overtakes something else.
func TestG3AnOrderedHandlerIsToldEverythingInTheSourcesOrder(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, OrderedUnbounded} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(delivery, " seed ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 3))
					p := newPast(t)
					r := newInformerRig(t, p.source, nil)
					told, slow := newReplica(t), newReplica(t)
					slow.before = func(string) { time.Sleep(5 * time.Millisecond) }
					r.handle(told, HandlerOptions{Delivery: delivery})
					r.handle(slow, HandlerOptions{Delivery: delivery})
					r.run()
					sleep(time.Second)
					for range 900 {
						p.write(t, random, 20)
						if random.IntN(10) == 0 {
							sleep(time.Duration(random.IntN(20)) * time.Millisecond)
						}
					}
					sleep(10 * time.Second)
					p.continues(t, told.take(), 0)
					p.continues(t, slow.take(), 0)
					slow.equals(r.inf.Shared().GetStore())
					r.stop()
				})
			})
		}
	}
}

// G3: however far a handler is behind, whatever happens to the source, and in every
// delivery, it hears of each key an Add, then Updates from what it was told last, then a
// Delete, and ends with what the source has: the replica looks. Fails if merging breaks
// that, or a relist does.
func TestG3OfEachKeyAHandlerHearsAnAddThenUpdatesThenADelete(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { addUpdatesDelete(t, rand.New(rand.NewPCG(seed, 4))) })
		})
	}
}

func addUpdatesDelete(t *testing.T, random *rand.Rand) {
	r := newInformerRig(t, newSource(t), func(c *InformerConfig[*object]) {
		c.ReflectorOptions.PageSize = 5
		c.ReflectorOptions.Strategy = ListStrategy(random.IntN(4))
	})
	replicas := []*replica{}
	add := func() {
		told, pause := newReplica(t), time.Duration(random.IntN(3))*40*time.Millisecond
		told.before = func(string) { time.Sleep(pause) }
		period := time.Duration(random.IntN(3)) * 7 * time.Second
		r.handle(told, HandlerOptions{Delivery: Delivery(len(replicas) % 3), ResyncPeriod: &period})
		replicas = append(replicas, told)
	}
	for range 3 {
		add()
	}
	r.run()
	for i := range 3000 {
		name := itoa(random.IntN(25))
		switch random.IntN(12) {
		case 0, 1:
			_, _ = r.source.Delete("a", name)
		case 2:
			_, _ = r.source.DeleteSilently("a", name)
		default:
			must(t, r.source.Apply(labelled(pod("a", name), itoa(i))))
		}
		disturb(r.source, random)
		if random.IntN(20) == 0 {
			sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		if i%600 == 300 {
			add()
		}
	}
	r.source.Heal()
	r.source.CompactAll()
	r.source.BreakWatches(cachetest.ErrExpired()) // what was hidden is noticed now
	sleep(10 * time.Minute)
	require.Equal(t, len(r.source.Objects()), r.inf.Len())
	for _, told := range replicas {
		told.equals(r.inf.Shared().GetStore())
	}
	r.stop()
}

// G3: what is merged keeps the place of its oldest part.
func TestG3MergedChangesKeepTheOrderOfTheirOldestParts(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"), pod("a", "4")), nil)
				told := newReplica(t)
				gate := make(chan struct{})
				r.handle(told, HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				told.take()
				told.before = func(string) { <-gate }
				for _, name := range []string{"4", "3", "1", "2"} {
					must(t, r.source.Apply(labelled(pod("a", name), "x")))
					synctest.Wait()
				}
				for i := range 1200 {
					must(t, r.source.Apply(labelled(pod("a", itoa(1+i%3)), itoa(i))))
				}
				must(t, r.source.Apply(pod("a", "0")))
				sleep(time.Second)
				close(gate)
				synctest.Wait()
				assert.Equal(t, []string{"update a/4@5", "update a/3@1208", "update a/1@1206", "update a/2@1207", "add a/0@1209"}, told.take())
				r.stop()
			})
		})
	}
}

// G3: no key begins with a Delete. Fails if what merges an Add with the Delete that
// follows it leaves anything of the two.
func TestG3WhatComesAndGoesBehindABusyHandlerIsNotTold(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
				told := newReplica(t)
				gate := make(chan struct{})
				r.handle(told, HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				told.take()
				told.before = func(string) { <-gate }
				for i := range 1200 { // enough that an Ordered one merges, too
					must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
				}
				for range 2 {
					must(t, r.source.Apply(pod("a", "2")))
					must(t, r.source.Apply(labelled(pod("a", "2"), "x")))
					_, err := r.source.Delete("a", "2")
					require.NoError(t, err)
				}
				sleep(time.Second)
				close(gate)
				synctest.Wait()
				calls := told.take()
				require.NotEmpty(t, calls)
				for _, call := range calls {
					assert.Contains(t, call, "update a/1@")
				}
				r.stop()
			})
		})
	}
}

// G4: whenever a handler is told, the store and its indexes have it: by list, by watch
// and by relist. A store may be ahead. Fails if the informer publishes before it writes,
// or writes an index later.
func TestG4StoreAndIndexesChangeBeforeHandlersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 5))
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"v": func(o *object) ([]string, error) { return []string{o.Labels["v"]}, nil }}
		})
		store := r.inf.Shared().GetIndexer()
		told := 0
		isThere := func(obj any) {
			told++
			key, version := nameOf(obj), versionOf(obj)
			stored, exists, err := store.GetByKey(key)
			require.NoError(t, err)
			if !exists {
				return // the store is ahead
			}
			assert.GreaterOrEqual(t, versionOf(stored), version, "%s", key)
			indexed, err := store.IndexKeys("v", stored.(*object).Labels["v"])
			require.NoError(t, err)
			if again, _, _ := store.GetByKey(key); again == stored {
				assert.Contains(t, indexed, key)
			}
		}
		r.handle(ResourceEventHandlerFuncs{
			AddFunc:    isThere,
			UpdateFunc: func(_, obj any) { isThere(obj) },
			DeleteFunc: func(obj any) {
				told++
				if stored, exists, _ := store.GetByKey("a/" + lastName(obj)); exists {
					assert.Greater(t, versionOf(stored), versionOf(lastObject(obj)), "deleted, and still there")
				}
			},
		})
		r.run()
		for i := range 2000 {
			name := itoa(random.IntN(5))
			if random.IntN(4) == 0 {
				_, _ = r.source.Delete("a", name)
			} else {
				must(t, r.source.Apply(labelled(pod("a", name), itoa(i%7))))
			}
			if i%500 == 0 {
				r.relist()
			}
		}
		synctest.Wait()
		assert.Greater(t, told, 1000)
		r.stop()
	})
}

func lastObject(obj any) any {
	if tombstone, lost := obj.(DeletedFinalStateUnknown); lost {
		return tombstone.Obj
	}
	return obj
}

func lastName(obj any) string { return lastObject(obj).(*object).Name }
