package cache

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// What hangs is what takes 30 s: where nothing does, a panic comes out of Run at once, and
// everything else has ended.
func TestAPanicBesideNothingThatHangsComesOutOfRunAtOnce(t *testing.T) {
	crashing(t)
	type waiter interface{ Run(context.Context) error }
	ways := map[string]func(t *testing.T, source ListerWatcher) (run waiter, inf *Informer[*object]){
		"an informer's": func(_ *testing.T, source ListerWatcher) (waiter, *Informer[*object]) {
			inf := dyingInformer(source)
			return inf, inf
		},
		"a set's": func(t *testing.T, source ListerWatcher) (waiter, *Informer[*object]) {
			set := &InformerSet{}
			podInformerOf(t, set, newSource(t, pod("a", "1")))
			inf, _ := podInformerOf(t, set, source)
			return set, inf
		},
	}
	for name, make := range ways {
		for what, source := range map[string]func(*testing.T) ListerWatcher{
			"handler": func(t *testing.T) ListerWatcher { return newSource(t, pod("a", "1")) },
			"source":  panickingSource,
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					run, inf := make(t, source(t))
					if what == "handler" {
						addPanicking(t, inf)
					}
					idle := newReplica(t)
					_, err := inf.Shared().AddEventHandler(idle)
					must(t, err)
					began := time.Now()
					var panicked any
					func() {
						defer func() { panicked = recover() }()
						_ = run.Run(t.Context())
					}()
					assert.Equal(t, 10*time.Second, time.Since(began))
					require.IsType(t, &PanicError{}, panicked)
					assert.Equal(t, errBoom, panicked.(*PanicError).Value)
					assert.Contains(t, string(panicked.(*PanicError).Stack), "deliberatePanic")
					assert.True(t, inf.Shared().IsStopped())
					assert.Equal(t, 1, idle.told())
				})
			})
		}
	}
}

// The detector calls the error handler on a goroutine of its own. Fails if its panic is
// kept until the run ends.
func TestAPanicOnTheDetectorsGoroutineComesOutOfRunAtOnce(t *testing.T) {
	notRaced(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), func(c *InformerConfig[*object]) {
			c.DetectMutations = MutationDetection{SampleEvery: 1, Period: 10 * time.Second}
			c.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *Reflector, err error) { deliberatePanic(err) }
		})
		r.run()
		synctest.Wait()
		changeStored(r.inf, "a/1")
		sleep(10 * time.Second)
		assert.True(t, isClosed(r.done), "it has come out when the first comparison was made")
		r.cancel()
		<-r.done
		require.IsType(t, &PanicError{}, r.panicked)
		assert.Equal(t, errBoom, r.panicked.(*PanicError).Value)
		assert.Equal(t, 2, r.inf.Len())
		r.source.Close()
	})
}

// changeStored does what nobody may do to a stored object that is watched for that.
func changeStored(inf *Informer[*object], key string) {
	changed, _ := inf.Lookup(key)
	changed.Labels = map[string]string{"changed": "by a reader"}
}

// notRaced skips a test that changes a stored object: that is the data race that detection is for.
func notRaced(t *testing.T) {
	if raceDetected() {
		t.Skip("the change is a data race")
	}
}

// A handler that ends its goroutine is reported on that goroutine, where the error
// handler may panic or end it as well. Fails if whoever shuts the handler down waits for a
// goroutine that is no more.
func TestAnErrorHandlerThatDoesNotReturnLeavesNobodyWaitingForAHandlerThatExited(t *testing.T) {
	crashing(t)
	for name, leave := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic(errBoom) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
					c.ReflectorOptions.ErrorHandler = func(context.Context, *Reflector, error) { leave() }
				})
				handle := r.handle(ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }})
				r.run()
				assert.ErrorIs(t, WaitForDone(t.Context(), handle.HasSyncedChecker()), ErrHandlerExited)
				shut := make(chan error, 1)
				go func() { shut <- ShutDownEventHandler(r.inf.Shared(), handle) }()
				sleep(time.Minute)
				assert.Len(t, shut, 1)
				r.cancel()
				<-r.done
				assert.NoError(t, <-shut)
				if name == "panic" {
					assert.ErrorIs(t, r.panicked.(error), errBoom)
				} else {
					assert.Nil(t, r.panicked)
				}
				r.source.Close()
			})
		})
	}
}

// When a call returns, three things are there at once: the end, changes that wait, a
// resync that is due. Fails if, by the luck of a select, another call is begun. (A run that
// goes on would: the handler has more to hear.)
func TestNoHandlerIsCalledAfterTheContextHasEnded(t *testing.T) {
	for name, objects := range map[string][]apiruntime.Object{
		"changes and a resync": {pod("a", "1"), pod("a", "2"), pod("a", "3")},
		"a resync":             {pod("a", "1")},
	} {
		for _, delivery := range []Delivery{Ordered, Coalesced} {
			t.Run(fmt.Sprint(name, ", ", delivery), func(t *testing.T) {
				for range 100 {
					synctest.Test(t, func(t *testing.T) { endsInsideACall(t, delivery, objects) })
				}
			})
		}
	}
}

func endsInsideACall(t *testing.T, delivery Delivery, objects []apiruntime.Object) {
	r := newInformerRig(t, newSource(t, pod("a", "first")), nil)
	told := newReplica(t)
	period, ends := 10*time.Second, false
	told.before = func(string) {
		if !assert.NoError(t, r.inf.shared.ctx.Err(), "called after the context had ended") {
			return
		}
		if ends {
			time.Sleep(2 * period) // two resyncs are due when it returns
			r.cancel()
		}
	}
	handle := r.handle(told, HandlerOptions{ResyncPeriod: &period, Delivery: delivery})
	r.run()
	must(t, WaitForDone(t.Context(), handle.HasSyncedChecker()))
	synctest.Wait()
	ends = true
	must(t, r.source.Apply(objects...))
	<-r.done
	r.stop()
	assert.Equal(t, 2, told.told())
}

// Fails if a handler whose part of the list was handled says so before the informer does:
// who waits for handlers only may then read a store that says it has not synced.
func TestAHandlerHasNeverSyncedBeforeItsInformer(t *testing.T) {
	for range 20 {
		source := newSource(t, pod("a", "1"))
		r := newInformerRig(t, source, nil)
		var all sync.WaitGroup
		for range 100 {
			handle := r.handle(ResourceEventHandlerFuncs{})
			all.Go(func() {
				<-handle.HasSyncedChecker().Done()
				assert.True(t, handle.HasSynced())
				assert.True(t, r.inf.HasSynced())
				assert.NoError(t, r.inf.HasSyncedChecker().(DoneError).Err())
			})
		}
		r.run()
		all.Wait()
		r.stop()
	}
}

// endingClock ends a run when it is asked for the time, once.
type endingClock struct {
	clock.Clock
	mu  sync.Mutex
	end func()
}

func (c *endingClock) Now() time.Time {
	c.mu.Lock()
	end := c.end
	c.end = nil
	c.mu.Unlock()
	if end != nil {
		end()
	}
	return c.Clock.Now()
}

// A handler that joins looks at the clock after it was entered in the informer's list and
// before it is started; here the run ends in that moment. Fails if it is left in the list
// for ever, or said to have been added.
func TestAHandlerThatIsRefusedBecauseTheRunEndsIsNotInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &endingClock{Clock: clock.RealClock{}}
		r := newInformerRig(t, newSource(t, pod("a", "1")), func(config *InformerConfig[*object]) { config.ReflectorOptions.Clock = c })
		r.run()
		synctest.Wait()
		c.mu.Lock()
		c.end = func() { r.cancel(); <-r.done }
		c.mu.Unlock()
		told := newReplica(t)
		handle, err := r.inf.Shared().AddEventHandler(told)
		assert.ErrorIs(t, err, ErrInformerStopped)
		assert.Nil(t, handle)
		assert.Empty(t, r.inf.Status().Handlers)
		assert.Zero(t, told.told())
		r.stop()
	})
}
