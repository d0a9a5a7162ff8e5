package cache

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/cachetest"
)

// G9: whatever the informer is doing, with handlers that wait, resync and are removed
// and with the detector, Run returns at the very instant at which its context ends,
// reports nothing, and leaves no goroutine: the bubble would not end.
func TestG9AnInformersRunReturnsAtOnceInEveryPhase(t *testing.T) {
	for name, script := range stopScripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var config Config
				if script.change != nil {
					script.change(&config)
				}
				r := newInformerRig(t, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
					c.ReflectorOptions.Strategy = max(ListPaged, config.ReflectorOptions.Strategy)
					c.DetectMutations = MutationDetection{SampleEvery: 1}
					c.ResyncPeriod = time.Hour
				})
				if script.fault != nil {
					script.fault(r.source)
				}
				handle := r.handle(newReplica(t))
				removed := r.handle(newReplica(t))
				r.run()
				if script.after > 0 {
					sleep(script.after)
				}
				must(t, r.inf.RemoveHandler(removed))
				before := len(r.heard.all())
				stopped := time.Now()
				r.cancel()
				<-r.done
				assert.Zero(t, time.Since(stopped), "virtual time between the context's end and Run's return")
				assert.Len(t, r.heard.all(), before, "nothing is reported when the context ends")
				assert.True(t, r.inf.Shared().IsStopped())
				assert.True(t, IsDone(r.inf.HasSyncedChecker()))
				assert.True(t, IsDone(handle.HasSyncedChecker()))
				if !r.inf.HasSynced() {
					assert.ErrorIs(t, r.inf.WaitSynced(t.Context()), ErrInformerStopped)
					assert.ErrorIs(t, doneError(handle.HasSyncedChecker()), ErrInformerStopped)
				}
				r.source.Close()
			})
		})
	}
}

// G9: Run waits for the calls of handlers that are under way; what waits for a handler
// is dropped. Fails if a handler is called after the context ended.
func TestG9RunWaitsForTheHandlersRunningCallsAndDropsTheRest(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
				var replicas []*replica
				for _, takes := range []time.Duration{3 * time.Second, 10 * time.Second} {
					told := newReplica(t)
					told.before = func(string) { time.Sleep(takes) }
					r.handle(told, HandlerOptions{Delivery: delivery})
					replicas = append(replicas, told)
				}
				r.run()
				sleep(4 * time.Second)
				r.cancel()
				<-r.done
				assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, replicas[0].take())
				assert.Equal(t, []string{"add a/1@1"}, replicas[1].take())
				sleep(time.Minute)
				assert.Empty(t, replicas[0].take())
				status := r.handlerStatus(0)
				assert.Equal(t, []int64{0, 2}, []int64{int64(status.Backlog), status.Delivered})
				r.stop()
			})
		})
	}
}

// G9: of what was created anew the addition is dropped, too, if the context ends in the
// middle of the two calls.
func TestG9TheSecondCallOfARecreationIsDropped(t *testing.T) {
	for name, end := range map[string]func(*informerRig, ResourceEventHandlerRegistration){
		"stop":   func(r *informerRig, _ ResourceEventHandlerRegistration) { r.cancel() },
		"remove": func(r *informerRig, handle ResourceEventHandlerRegistration) { must(r.T, r.inf.RemoveHandler(handle)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, withUID(pod("a", "1"), "first")), nil)
				told := newReplica(t)
				handle := r.handle(told)
				r.run()
				synctest.Wait()
				told.take()
				told.before = func(string) { time.Sleep(5 * time.Second) }
				_, err := r.source.DeleteSilently("a", "1")
				must(t, err, r.source.Apply(withUID(pod("a", "1"), "second")))
				r.source.CompactAll()
				r.source.BreakWatches(cachetest.ErrExpired())
				for r.inf.Status().AppliedVersion != "3" {
					sleep(100 * time.Millisecond)
				}
				end(r, handle)
				sleep(time.Minute)
				assert.Equal(t, []string{"tombstone a/1"}, told.take())
				r.stop()
			})
		})
	}
}

// A second Run, at the same time or afterwards, returns at once and says so; it changes
// nothing.
func TestAnInformerRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		told := newReplica(t)
		r.handle(told)
		r.run()
		synctest.Wait()
		again := func() {
			began := time.Now()
			assert.ErrorIs(t, r.inf.Run(context.Background()), ErrAlreadyRan)
			r.inf.Shared().Run(nil)
			r.inf.Shared().RunWithContext(context.Background())
			assert.Zero(t, time.Since(began))
		}
		again()
		assert.Equal(t, 2, len(r.heard.all()), "those that return nothing report it")
		for _, err := range r.heard.all() {
			assert.ErrorIs(t, err, ErrAlreadyRan)
			assert.ErrorContains(t, err, "test", "it says which informer")
		}
		must(t, r.source.Apply(pod("a", "2")))
		synctest.Wait()
		assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, told.take())
		r.stop()
		again()
		assert.True(t, r.inf.Shared().IsStopped())
	})
}

// B12 holds for informers: of many concurrent Runs exactly one runs.
func TestB12OfConcurrentRunsOfAnInformerExactlyOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		told := newReplica(t)
		r.handle(told)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() { errs <- r.inf.Run(ctx) }()
		}
		sleep(time.Minute)
		assert.Len(t, errs, cap(errs)-1)
		assert.Equal(t, 1, r.source.WatchCalls())
		assert.Equal(t, []string{"add a/1@1"}, told.take())
		cancel()
		synctest.Wait()
		ran := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				ran++
			} else {
				assert.ErrorIs(t, err, ErrAlreadyRan)
			}
		}
		assert.Equal(t, 1, ran)
		r.source.Close()
	})
}

func TestAnInformerWhoseContextHasEndedAsksTheSourceForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		handle := r.handle(newReplica(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, r.inf.Run(ctx))
		assert.Zero(t, r.source.ListCalls())
		assert.False(t, r.inf.HasSynced())
		assert.ErrorIs(t, WaitForDone(t.Context(), r.inf.HasSyncedChecker()), ErrInformerStopped)
		assert.ErrorIs(t, WaitForDone(t.Context(), handle.HasSyncedChecker()), ErrInformerStopped)
		r.source.Close()
	})
}

// Handlers come and go while the informer stops. Each that was added is either told or
// done in vain, each that was not says why; nothing hangs and nothing is left.
func TestHandlersComeAndGoWhileAnInformerStops(t *testing.T) {
	for i := range 40 {
		synctest.Test(t, func(t *testing.T) {
			r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
			r.run()
			sleep(time.Second)
			var all sync.WaitGroup
			var stay atomic.Int64
			for n := range 20 {
				all.Go(func() {
					time.Sleep(time.Duration(n%4) * time.Millisecond)
					handle, err := r.inf.Shared().AddEventHandler(newReplica(t))
					if err != nil {
						assert.ErrorIs(t, err, ErrInformerStopped)
						assert.Nil(t, handle)
						return
					}
					if n%2 == 0 {
						assert.NoError(t, ShutDownEventHandler(r.inf.Shared(), handle))
					} else {
						stay.Add(1)
					}
					<-handle.HasSyncedChecker().Done()
					if handle.HasSynced() {
						return
					}
					assert.Error(t, doneError(handle.HasSyncedChecker()))
				})
			}
			time.Sleep(2 * time.Millisecond)
			for range i {
				runtime.Gosched()
			}
			r.stop()
			all.Wait()
			assert.Len(t, r.inf.Status().Handlers, int(stay.Load()))
		})
	}
}

// 10,000 informers that are started and stopped, with handlers that stay, are removed or
// never hear anything, leave no goroutine and nothing in memory, though the source, the
// handler and the handles' checkers are still there.
func TestTenThousandStartsAndStopsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 10_000
		source := newBulk(3)
		told := &tally{}
		before := goroutines()
		var stores []weak.Pointer[cache]
		var informers []weak.Pointer[sharedIndexInformer]
		for i := range runs {
			inf := NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle}})
			stores = append(stores, weak.Make(inf.shared.store))
			informers = append(informers, weak.Make(inf.shared))
			oneLife(t, inf, told, i)
		}
		assert.LessOrEqual(t, goroutines(), before)
		assert.Positive(t, told.count(counts{}).adds)
		runtime.GC()
		runtime.GC()
		alive := 0
		for i := range stores {
			if stores[i].Value() != nil || informers[i].Value() != nil {
				alive++
			}
		}
		// The last one may be on a stack still.
		assert.LessOrEqual(t, alive, 1)
		runtime.KeepAlive(source)
	})
}

func oneLife(t *testing.T, inf *Informer[*object], told ResourceEventHandler, i int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := inf.Shared().AddEventHandler(told)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	if i%3 > 0 { // or it is stopped before anything
		must(t, inf.WaitSynced(ctx))
		<-first.HasSyncedChecker().Done()
		second, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{})
		must(t, err)
		if i%3 == 1 {
			must(t, inf.RemoveHandler(first), inf.ShutDownHandler(second))
		}
	}
	cancel()
	must(t, <-done)
}
