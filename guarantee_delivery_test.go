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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// G5: the informer has synced once the list is in the store, whatever handlers do; a
// handler once it has handled all of that, not while it is at the last of it. Fails if
// synced is told by what was put into the backlog.
func TestG5AHandlerHasSyncedOnceItHasHandledTheInitialList(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				told := newReplica(t)
				gate := make(chan struct{})
				told.before = func(string) { <-gate }
				handle := r.handle(told, HandlerOptions{Delivery: delivery})
				empty := r.handle(ResourceEventHandlerFuncs{})
				r.run()
				synctest.Wait()
				assert.True(t, r.inf.HasSynced())
				assert.True(t, empty.HasSynced())
				for range 2 {
					assert.False(t, handle.HasSynced())
					assert.False(t, IsDone(handle.HasSyncedChecker()))
					gate <- struct{}{}
					synctest.Wait()
				}
				assert.True(t, handle.HasSynced())
				assert.True(t, IsDone(handle.HasSyncedChecker()))
				assert.NoError(t, doneError(handle.HasSyncedChecker()))
				r.stop()
			})
		})
	}
}

// G5: no handler has synced before the whole first list is there, though all of what was
// there so far has been handled; and one that joins in the middle of it waits for the
// rest of it as the others do.
func TestG5NoHandlerHasSyncedInTheMiddleOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := filledSource(t, 20)
		pages := 0
		source.OnList(func(metav1.ListOptions) error {
			if pages++; pages == 3 {
				time.Sleep(time.Minute)
			}
			return nil
		})
		r := newInformerRig(t, source, func(c *InformerConfig[*object]) { c.ReflectorOptions.PageSize = 5 })
		first := newReplica(t)
		handle := r.handle(first)
		r.run()
		sleep(time.Second)
		late := newReplica(t)
		lateHandle := r.handle(late)
		synctest.Wait()
		assert.Equal(t, 10, first.told())
		assert.Equal(t, 10, late.told())
		assert.False(t, r.inf.HasSynced() || handle.HasSynced() || lateHandle.HasSynced())
		sleep(2 * time.Minute)
		assert.True(t, r.inf.HasSynced() && handle.HasSynced() && lateHandle.HasSynced())
		assert.Equal(t, 20, first.initial)
		assert.Equal(t, 20, late.initial)
		r.stop()
	})
}

// G5: what went before the handler heard of it counts as handled.
func TestG5ObjectsThatWentUntoldDoNotKeepAHandlerFromSyncing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		told, goOn := stalled(t)
		handle := r.handle(told, HandlerOptions{Delivery: Coalesced})
		r.run()
		synctest.Wait()
		_, err := r.source.Delete("a", "2")
		must(t, err)
		must(t, r.source.Apply(labelled(pod("a", "3"), "x")))
		synctest.Wait()
		assert.False(t, handle.HasSynced())
		goOn()
		synctest.Wait()
		assert.True(t, handle.HasSynced())
		assert.Equal(t, []string{"add a/1@1", "add a/3@4"}, told.take())
		assert.Equal(t, 1, told.initial)
		r.stop()
	})
}

// G8: however much happens while a handler hangs, it is told at most twice of each key
// once it goes on: an end and a beginning. Fails if something is appended that should be
// merged, or what came and went is told.
func TestG8AHandlerThatHangsIsToldAtMostTwiceOfEachKey(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects = 2000
				r := newInformerRig(t, filledSource(t, objects), nil)
				told := newReplica(t)
				r.handle(told, HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				require.Equal(t, objects, told.told())
				gate := make(chan struct{})
				told.before = func(string) { <-gate }
				must(t, r.source.Apply(pod("b", "1"))) // it hangs in this
				synctest.Wait()
				clear(told.calls)
				told.take()
				churn(t, r.source, objects)
				sleep(time.Second)
				status := r.handlerStatus(0)
				assert.True(t, status.Merging)
				assert.LessOrEqual(t, status.Backlog, objects+1)
				close(gate)
				synctest.Wait()
				told.equals(r.inf.Shared().GetStore())
				for key, calls := range told.calls {
					assert.LessOrEqual(t, calls, 2, key)
				}
				assert.Len(t, told.calls, objects+1, "what came and went is told to nobody")
				assert.Equal(t, objects/2+objects/4*2+objects/4+1, told.told())
				assert.Equal(t, HandlerStatus{
					Name: status.Name, Delivery: delivery, Merging: delivery == Coalesced,
					Delivered: r.handlerStatus(0).Delivered, Synced: true,
				}, r.handlerStatus(0))
				r.stop()
			})
		})
	}
}

// churn updates each object three times, deletes half of them, creates half of these
// anew, and has as many others come and go.
func churn(t *testing.T, source *cachetest.Source, objects int) {
	for round := range 3 {
		for i := range objects {
			must(t, source.Apply(labelled(pod("a", itoa(i)), itoa(round))))
		}
	}
	for i := range objects {
		must(t, source.Apply(pod("other", itoa(i))))
		if i%2 == 0 {
			_, err := source.Delete("a", itoa(i))
			must(t, err)
		}
		if i%4 == 0 {
			must(t, source.Apply(pod("a", itoa(i))))
		}
		_, err := source.Delete("other", itoa(i))
		must(t, err)
	}
}

// G8: who asks for it by name is told of everything, however long it hung.
func TestG8AnUnboundedHandlerIsToldEverythingAfterItHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		told, goOn := stalled(t)
		r.handle(told, HandlerOptions{Delivery: OrderedUnbounded})
		r.run()
		synctest.Wait()
		for i := range 5000 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		sleep(time.Second)
		assert.Equal(t, 5000, r.handlerStatus(0).Backlog)
		goOn()
		synctest.Wait()
		assert.Len(t, told.take(), 5001)
		r.stop()
	})
}

// One handler that hangs holds back neither the store nor another handler.
func TestAHandlerThatHangsHoldsBackNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		told := newReplica(t)
		var letGo []func()
		for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
			hangs, goOn := stalled(t)
			r.handle(hangs, HandlerOptions{Delivery: delivery})
			letGo = append(letGo, goOn)
		}
		r.handle(told)
		r.run()
		began := time.Now()
		for i := range 3000 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		synctest.Wait()
		told.equals(r.inf.Shared().GetStore())
		assert.Equal(t, "3001", r.inf.LastSyncResourceVersion())
		assert.Zero(t, time.Since(began))
		for _, goOn := range letGo {
			goOn()
		}
		r.stop()
	})
}
