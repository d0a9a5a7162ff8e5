package cache

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// counts are how often a handler was called.
type counts struct{ adds, updates, deletes int }

// tally is a handler that counts.
type tally struct {
	mu    sync.Mutex
	calls counts
}

func (c *tally) OnAdd(any, bool)   { c.count(counts{adds: 1}) }
func (c *tally) OnUpdate(any, any) { c.count(counts{updates: 1}) }
func (c *tally) OnDelete(any)      { c.count(counts{deletes: 1}) }

// count adds to the counts and returns them.
func (c *tally) count(more counts) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.adds += more.adds
	c.calls.updates += more.updates
	c.calls.deletes += more.deletes
	return c.calls
}

// B8: a relist of 100,000 objects that have not changed tells nobody of anything;
// handlers that want a resync get theirs all the same, at its time. Fails if unchanged
// objects are delivered, or resyncs hang on lists.
func TestB8ARelistOfUnchangedObjectsDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100_000
		source := newBulk(objects)
		r := newBulkRig(t, source)
		told, resynced := &tally{}, &tally{}
		period := 10 * time.Minute
		r.handle(told)
		r.handle(resynced, HandlerOptions{ResyncPeriod: &period})
		r.run()
		for range 3 {
			sleep(time.Minute)
			source.events <- errorEvent(cachetest.ErrExpired())
		}
		sleep(time.Minute)
		assert.Equal(t, 4, source.lists)
		assert.Equal(t, counts{adds: objects}, told.count(counts{}))
		assert.Equal(t, counts{adds: objects}, resynced.count(counts{}))
		sleep(7 * time.Minute)
		assert.Equal(t, counts{adds: objects}, told.count(counts{}))
		assert.Equal(t, counts{adds: objects, updates: objects}, resynced.count(counts{}))

		source.change(7)
		source.events <- errorEvent(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, counts{adds: objects, updates: 1}, told.count(counts{}), "what has changed is told")
		r.cancel()
		<-r.done
	})
}

// B8: it holds for each way of listing.
func TestB8NoWayOfListingDeliversUnchangedObjects(t *testing.T) {
	for strategy := range ListStrategy(4) {
		t.Run(fmt.Sprint(strategy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, filledSource(t, 300), func(c *InformerConfig[*object]) {
					c.ReflectorOptions.Strategy, c.ReflectorOptions.PageSize = strategy, 100
				})
				told := newReplica(t)
				r.handle(told)
				r.run()
				synctest.Wait()
				watches := r.source.WatchCalls()
				told.take()
				_, err := r.source.DeleteSilently("a", "5")
				must(t, err, r.source.Apply(pod("a", "new")))
				sleep(time.Second)
				r.source.CompactAll()
				r.source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Greater(t, r.source.WatchCalls(), watches)
				assert.Equal(t, []string{"add a/new@302", "tombstone a/5"}, told.take())
				r.stop()
			})
		})
	}
}

// panicking is a handler that panics for a/2.
func panicking(told *replica) ResourceEventHandler {
	told.before = func(key string) {
		if key == "a/2" {
			panic(errBoom)
		}
	}
	return told
}

// crashing has apimachinery's panic handlers note what they get, and its ReallyCrash be
// what it is by default.
func crashing(t *testing.T) (got *[]any) {
	t.Helper()
	surviving(t)
	utilruntime.ReallyCrash = true
	got = &[]any{}
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) { *got = append(*got, value) })
	return got
}

// B9: where the process survives, be it because ReallyCrash is off or by the handler's
// own option, a handler that panics during the initial list syncs, is told of everything
// else, and each panic is counted, reported with the key, and given to apimachinery's
// panic handlers.
func TestB9AHandlerThatPanicsDuringTheInitialListSyncsAllTheSame(t *testing.T) {
	for _, really := range []bool{false, true} {
		t.Run(fmt.Sprint("ReallyCrash ", really), func(t *testing.T) {
			got := crashing(t)
			utilruntime.ReallyCrash = really
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
				told, other := newReplica(t), newReplica(t)
				handle := r.handle(panicking(told), HandlerOptions{Name: "mine", SurvivePanics: really})
				r.handle(other)
				r.run()
				synctest.Wait()
				assert.True(t, handle.HasSynced())
				assert.NoError(t, WaitForDone(t.Context(), handle.HasSyncedChecker()))
				must(t, r.source.Apply(labelled(pod("a", "1"), "x")), r.source.Apply(labelled(pod("a", "2"), "x")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/1@1", "add a/3@3", "update a/1@4"}, told.take())
				assert.Equal(t, HandlerStatus{Name: "mine", Delivered: 5, Panics: 2, Synced: true}, r.handlerStatus(0))
				assert.Equal(t, int64(0), r.handlerStatus(1).Panics)
				assert.Len(t, other.take(), 5)
				require.Len(t, r.heard.all(), 2)
				for _, err := range r.heard.all() {
					var reported *ProcessError
					require.ErrorAs(t, err, &reported)
					assert.Equal(t, []string{"a/2"}, reported.Keys)
					assert.ErrorIs(t, err, ErrHandlerPanicked)
					assert.ErrorContains(t, err, "mine")
				}
				assert.Equal(t, []any{errBoom, errBoom}, *got)
				r.stop()
			})
		})
	}
}

// B10: a handler that removes itself, another one, or is shut down while the informer
// stops, deadlocks with nobody. Fails if anything waits for a handler from inside one,
// or with a lock that the other side needs.
func TestB10AHandlerIsRemovedInsideAHandlerDuringShutdown(t *testing.T) {
	for _, stopping := range []bool{false, true} {
		t.Run(fmt.Sprint("stopping ", stopping), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				var own, other ResourceEventHandlerRegistration
				calls := 0
				own = r.handle(ResourceEventHandlerFuncs{AddFunc: func(any) {
					calls++
					if stopping {
						r.cancel()
						synctest.Wait() // everything that ends without us has ended
					}
					shared := r.inf.Shared()
					assert.ErrorIs(t, ShutDownEventHandler(shared, own), ErrOwnHandler)
					assert.NoError(t, shared.RemoveEventHandler(other))
					assert.NoError(t, shared.RemoveEventHandler(own))
					assert.NoError(t, shared.RemoveEventHandler(own))
					assert.NoError(t, ShutDownEventHandler(shared, other))
				}})
				other = r.handle(newReplica(t))
				r.run()
				sleep(time.Second)
				assert.Equal(t, 1, calls, "it is called no more")
				assert.Empty(t, r.inf.Status().Handlers)
				r.stop()
			})
		})
	}
}

// B10: ShutDownEventHandler waits for the call that is under way, from a goroutine and
// from another handler, and no call follows; RemoveEventHandler waits for nothing.
func TestB10ShutDownWaitsForTheRunningCall(t *testing.T) {
	for _, from := range []string{"goroutine", "handler"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				told := newReplica(t)
				told.before = func(string) { time.Sleep(10 * time.Second) }
				handle := r.handle(told)
				r.run()
				sleep(3 * time.Second)
				began := time.Now()
				end := func() {
					assert.NoError(t, ShutDownEventHandler(r.inf.Shared(), handle))
					assert.Equal(t, 7*time.Second, time.Since(began))
					assert.Equal(t, 1, told.told())
				}
				if from == "handler" {
					done := make(chan struct{})
					r.handle(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
						if nameOf(obj) == "a/1" {
							end()
							close(done)
						}
					}})
					<-done
				} else {
					end()
				}
				assert.NoError(t, ShutDownEventHandler(r.inf.Shared(), handle), "the second time there is nothing to wait for")
				sleep(time.Minute)
				assert.Equal(t, []string{"add a/1@1"}, told.take())
				r.stop()
			})
		})
	}
}

// B11: whoever waits for a handler that is removed before it has synced waits no more,
// and learns why, whenever that happens.
func TestB11WaitingForAHandlerThatIsRemovedEnds(t *testing.T) {
	scripts := map[string]func(r *informerRig, told *replica){
		"before the run":         func(*informerRig, *replica) {},
		"while the list hangs":   func(r *informerRig, _ *replica) { r.source.HangLists(1); r.run(); sleep(time.Second) },
		"while the handler does": func(r *informerRig, told *replica) { told.before = func(string) { time.Sleep(time.Hour) }; r.run() },
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
				told := newReplica(t)
				handle := r.handle(told)
				script(r, told)
				var waited error
				var all bool
				over := make(chan struct{}, 2)
				go func() { waited = WaitForDone(t.Context(), handle.HasSyncedChecker()); over <- struct{}{} }()
				go func() { all = WaitFor(t.Context(), "", handle.HasSyncedChecker()); over <- struct{}{} }()
				sleep(time.Minute)
				assert.Empty(t, over)
				assert.NoError(t, r.inf.RemoveHandler(handle))
				synctest.Wait()
				assert.Len(t, over, 2)
				assert.ErrorIs(t, waited, ErrHandlerRemoved)
				assert.False(t, all)
				assert.False(t, handle.HasSynced())
				assert.ErrorIs(t, doneError(handle.HasSyncedChecker()), ErrHandlerRemoved)
				r.source.Heal()
				if r.done == nil {
					r.run()
				}
				sleep(2 * time.Hour)
				assert.True(t, r.inf.HasSynced())
				assert.False(t, handle.HasSynced(), "it never has")
				r.stop()
			})
		})
	}
}

func TestB11AHandlerThatHasSyncedStaysSyncedWhenItIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		handle := r.handle(newReplica(t))
		r.run()
		synctest.Wait()
		must(t, r.inf.RemoveHandler(handle))
		assert.True(t, handle.HasSynced())
		assert.NoError(t, doneError(handle.HasSyncedChecker()))
		r.stop()
		assert.True(t, handle.HasSynced())
	})
}

// B14: who changes a stored object, against the rules, breaks no index: a look-up finds
// what the source says, never a nil; and the detector names the key and the field.
func TestB14AChangedObjectLeavesNoDanglingIndexEntryAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, labelled(pod("a", "1"), "x"), labelled(pod("a", "2"), "x")), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"v": func(o *object) ([]string, error) { return []string{o.Labels["v"]}, nil }}
			// It compares when the object leaves the store, too: at the latest then.
			c.DetectMutations = MutationDetection{SampleEvery: 1, Period: time.Hour}
		})
		r.run()
		synctest.Wait()
		for _, name := range []string{"a/1", "a/2"} {
			obj, _ := r.inf.Lookup(name)
			obj.Labels["v"] = "changed"
		}
		must(t, r.source.Apply(labelled(pod("a", "1"), "y")))
		_, err := r.source.Delete("a", "2")
		must(t, err)
		synctest.Wait()
		require.Len(t, r.heard.all(), 2)
		named := map[string]bool{}
		for _, err := range r.heard.all() {
			var mutated *MutatedObjectError
			require.ErrorAs(t, err, &mutated)
			named[mutated.Key] = true
			assert.ErrorContains(t, err, "metadata.labels")
		}
		assert.Equal(t, map[string]bool{"a/1": true, "a/2": true}, named)
		for value, want := range map[string]int{"x": 0, "changed": 0, "y": 1} {
			found, err := r.inf.Shared().GetIndexer().ByIndex("v", value)
			must(t, err)
			assert.Len(t, found, want, value)
			assert.NotContains(t, found, nil)
		}
		r.stop()
	})
}
