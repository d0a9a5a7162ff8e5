package guarantees

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/mutation"
)

// If nothing hangs, a panic comes out of Run at once instead of after 30 s, and all goroutines have
// ended.
func TestAPanicBesideNothingThatHangsComesOutOfRunAtOnce(t *testing.T) {
	reallyCrash(t)
	type waiter interface{ Run(context.Context) error }
	ways := map[string]func(t *testing.T, source cache.ListerWatcher) (run waiter, inf *cache.Informer[*object]){
		"an informer's": func(_ *testing.T, source cache.ListerWatcher) (waiter, *cache.Informer[*object]) {
			inf := panickingInformer(source)
			return inf, inf
		},
		"a set's": func(t *testing.T, source cache.ListerWatcher) (waiter, *cache.Informer[*object]) {
			set := &cache.InformerSet{}
			podInformerOf(t, set, newSource(t, pod("a", "1")))
			inf := podInformerOf(t, set, cache.ToListerWatcherWithContext(source))
			return set, inf
		},
	}
	for name, make := range ways {
		for what, source := range map[string]func(*testing.T) cache.ListerWatcher{
			"handler": func(t *testing.T) cache.ListerWatcher { return newSource(t, pod("a", "1")) },
			"source":  panickingSource,
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					run, inf := make(t, source(t))
					if what == "handler" {
						addPanicking(t, inf)
					}
					idle := newReplicaHandler(t)
					_, err := inf.Shared().AddEventHandler(idle)
					must(t, err)
					began := time.Now()
					var panicked any
					func() {
						defer func() { panicked = recover() }()
						_ = run.Run(t.Context())
					}()
					assert.Equal(t, 10*time.Second, time.Since(began))
					require.IsType(t, &cache.PanicError{}, panicked)
					assert.Equal(t, errBoom, panicked.(*cache.PanicError).Value)
					assert.Contains(t, string(panicked.(*cache.PanicError).Stack), "deliberatePanic")
					assert.True(t, inf.Shared().IsStopped())
					assert.Equal(t, 1, idle.callCount())
				})
			})
		}
	}
}

// Fails if a handler has synced before its informer: a caller that only waits for handlers could
// then read a store that has not synced.
func TestAHandlerHasNeverSyncedBeforeItsInformer(t *testing.T) {
	for range 20 {
		source := newSource(t, pod("a", "1"))
		r := newInformerRig(t, source, nil)
		var all sync.WaitGroup
		for range 100 {
			handle := r.handle(cache.ResourceEventHandlerFuncs{})
			all.Go(func() {
				<-handle.HasSyncedChecker().Done()
				assert.True(t, handle.HasSynced())
				assert.True(t, r.inf.HasSynced())
				assert.NoError(t, r.inf.HasSyncedChecker().(cache.DoneError).Err())
			})
		}
		r.run()
		all.Wait()
		r.stop()
	}
}

// endingClock ends a run the first time that Now is called.
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

// A handler that joins reads the clock after it was registered and before it is started; here the
// run ends at that moment. Fails if it stays registered, or if adding it returns no error.
func TestAHandlerThatIsRefusedBecauseTheRunEndsIsNotInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &endingClock{Clock: clock.RealClock{}}
		r := newInformerRig(t, newSource(t, pod("a", "1")), func(config *cache.InformerConfig[*object]) { config.ReflectorOptions.Clock = c })
		r.run()
		synctest.Wait()
		c.mu.Lock()
		c.end = func() { r.cancel(); <-r.done }
		c.mu.Unlock()
		notified := newReplicaHandler(t)
		handle, err := r.inf.Shared().AddEventHandler(notified)
		assert.ErrorIs(t, err, cache.ErrInformerStopped)
		assert.Nil(t, handle)
		assert.Empty(t, r.inf.Status().Handlers)
		assert.Zero(t, notified.callCount())
		r.stop()
	})
}

// deliberatePanic is the function that tests look for in a stack.
func deliberatePanic(any) { panic(errBoom) }

// With ReallyCrash, the default, a handler's panic ends the run: it comes out of Run as a
// *PanicError with the handler's stack, after the calls of other handlers have returned. Fails if
// it is lost, or ends another goroutine.
func TestAPanicOfAHandlerComesOutOfRunWithItsStack(t *testing.T) {
	got := reallyCrash(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		other := newReplicaHandler(t)
		begun := make(chan struct{}, 2)
		other.before = func(string) {
			begun <- struct{}{}
			time.Sleep(10 * time.Second)
		}
		handle := r.handle(other)
		r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			<-begun
			deliberatePanic(obj)
		}})
		began := time.Now()
		r.run()
		<-r.done
		assert.Equal(t, 10*time.Second, time.Since(began), "the other handler's call has returned")
		var panicked *cache.PanicError
		require.IsType(t, panicked, r.panicked)
		panicked = r.panicked.(*cache.PanicError)
		assert.Equal(t, errBoom, panicked.Value)
		assert.Contains(t, string(panicked.Stack), "deliberatePanic")
		assert.Equal(t, []any{errBoom}, *got)
		assert.Equal(t, []string{"add a/1@1"}, other.take())
		assert.True(t, r.inf.Shared().IsStopped())
		assert.ErrorIs(t, handle.HasSyncedChecker().(cache.DoneError).Err(), cache.ErrInformerStopped)
		r.source.Close()
	})
}

// The same for a handler that panics after the run, while Run waits for it.
func TestAPanicOfAHandlerThatRunWaitsForComesOutOfIt(t *testing.T) {
	reallyCrash(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { time.Sleep(time.Minute); deliberatePanic(obj) }})
		r.run()
		sleep(time.Second)
		r.cancel()
		<-r.done
		assert.ErrorIs(t, r.panicked.(error), errBoom)
		r.source.Close()
	})
}

// deathVariable is set for child processes of a test, and names the way to panic.
const deathVariable = "CACHE_TEST_DEATH"

// deaths start informers and sets of which a goroutine panics after 10 s, while a call that
// Run waits for hangs. Each runs in a bubble of its own process.
var deaths = map[string]func(*testing.T){
	"a handler beside one that hangs": func(t *testing.T) {
		inf := panickingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside one that hangs and was removed": func(t *testing.T) {
		inf := panickingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		handle := addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
		synctest.Wait()
		must(t, inf.RemoveHandler(handle))
	},
	"a handler whose source ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		inf := panickingInformer(source)
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside an error handler that hangs": func(t *testing.T) {
		inf := cache.NewTypedInformer(newSource(t, pod("a", "1"), pod("a", "bad")), cache.InformerConfig[*object]{
			Indexes:          cache.TypedIndexers[*object]{"picky": failingFor("bad")},
			ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: func(context.Context, *cache.Reflector, error) { select {} }},
		})
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a controller's handler beside a source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		go cache.New(&cache.Config{
			ListerWatcher: source, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged},
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a handler of one namespace beside another's source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		hangs := newSource(t)
		hangs.HangListsIgnoringContext(1)
		go cache.New(&cache.Config{
			Namespaces: map[string]cache.Source{"a": source.Namespace("a"), "b": hangs.Namespace("b")},
			Store:      cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged},
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a controller's source beside a handler that hangs": func(t *testing.T) {
		go cache.New(&cache.Config{
			ListerWatcher: panickingSource(t), Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }},
		}).RunWithContext(t.Context())
	},
	"a source beside a handler that hangs": func(t *testing.T) {
		inf := panickingInformer(panickingSource(t))
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler of a set beside one of another informer that hangs": func(t *testing.T) {
		var set cache.InformerSet
		panics := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of its own informer that hangs": func(t *testing.T) {
		var set cache.InformerSet
		inf := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside another source that ignores its context": func(t *testing.T) {
		var set cache.InformerSet
		panics := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		source := newSource(t)
		source.HangListsIgnoringContext(1)
		must(t, set.Add(cache.NewTypedInformer(source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged}})))
		go func() { _ = set.Run(t.Context()) }()
	},
	"a source of a set beside a handler of another informer that hangs": func(t *testing.T) {
		var set cache.InformerSet
		podInformerOf(t, &set, cache.ToListerWatcherWithContext(panickingSource(t)))
		hangs := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of a stopped informer that hangs": func(t *testing.T) {
		var set cache.InformerSet
		panics := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
		synctest.Wait()
		hangs.Stop()
	},
}

// A hanging call delays the end of the process by a panic for at most 30 s: then the panic
// continues on its own goroutine. Each case is a child process with a bubble. Fails if a process
// survives, or ends earlier or for another reason.
func TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs(t *testing.T) {
	if way := os.Getenv(deathVariable); way != "" {
		runUntilPanic(t, deaths[way])
	}
	program, err := os.Executable()
	must(t, err)
	for way := range deaths {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), program, "-test.run=^TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs$", "-test.timeout=10m")
			child.Env = append(os.Environ(), deathVariable+"="+way)
			var stdout, stderr bytes.Buffer
			child.Stdout, child.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			require.ErrorAs(t, child.Run(), &exit, stdout.String())
			assert.Equal(t, 2, exit.ExitCode(), "that of a panic")
			assert.Equal(t, "alive\n", stdout.String(), "it dies after 30 s, not earlier or later")
			assert.Contains(t, stderr.String(), "panic: ")
			assert.Contains(t, stderr.String(), errBoom.Error())
			assert.Contains(t, stderr.String(), ".deliberatePanic", "the stack of the place that panicked")
		})
	}
}

// runUntilPanic calls start, whose informer panics after 10 s of virtual time, and prints that
// it survived if it did.
func runUntilPanic(t *testing.T, start func(*testing.T)) {
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, nil // the output is the process's own
	synctest.Test(t, func(t *testing.T) {
		start(t)
		sleep(10*time.Second + 29*time.Second)
		fmt.Println("alive")
		sleep(2 * time.Second)
		fmt.Println("survived")
		os.Exit(0)
	})
}

func panickingInformer(source cache.ListerWatcher) *cache.Informer[*object] {
	return cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
		Strategy: cache.ListPaged, ErrorHandler: (&errorRecorder{}).handle,
	}})
}

func addPanicking(t *testing.T, inf *cache.Informer[*object]) {
	_, err := inf.Shared().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		time.Sleep(10 * time.Second)
		deliberatePanic(obj)
	}})
	must(t, err)
}

func addHanging(t *testing.T, inf *cache.Informer[*object]) cache.ResourceEventHandlerRegistration {
	handle, err := inf.Shared().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }})
	must(t, err)
	return handle
}

// panickingSource lists an object, and panics in Watch.
func panickingSource(t *testing.T) cache.ListerWatcher {
	lists := newSource(t, pod("a", "1"))
	return &cache.ListWatch{ListFunc: lists.List, WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
		time.Sleep(10 * time.Second)
		deliberatePanic(nil)
		return nil, nil
	}}
}

// failingFor returns an index function that fails for the object with that name.
func failingFor(name string) cache.TypedIndexFunc[*object] {
	return func(o *object) ([]string, error) {
		if o.Name == name {
			return nil, errBoom
		}
		return nil, nil
	}
}

// A handler that joins an informer of 100,000 objects, and hangs at the first one, blocks nothing:
// the next event is applied and delivered to other handlers, and reads return, at the same instant.
func TestAHandlerThatJoinsAHundredThousandObjectsPausesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := sampleOf(100_000)
		source := newBulkSource(objects)
		r := newBulkRig(t, source)
		first := newReplicaHandler(t)
		first.onlyCounts = true
		r.handle(first)
		r.run()
		synctest.Wait()
		require.Equal(t, objects, first.callCount())

		began := time.Now()
		late, goOn := stalledReplica(t)
		late.onlyCounts = true
		handle := r.handle(late)
		synctest.Wait()
		assert.Equal(t, objects-1, r.handlerStatus(1).Backlog, "all but the one that is being delivered")
		source.events <- watch.Event{Type: watch.Modified, Object: labelled(podAt("a", "7", itoa(objects+1)), "x")}
		synctest.Wait()
		assert.Equal(t, objects+1, first.callCount())
		stored, _ := r.inf.Lookup("a/7")
		assert.Equal(t, "x", stored.Labels["v"])
		assert.False(t, handle.HasSynced())
		goOn()
		synctest.Wait()
		assert.True(t, handle.HasSynced())
		assert.Equal(t, objects, late.initial)
		assert.Equal(t, objects+1, late.callCount())
		late.assertEqualsStore(r.inf.Shared().GetStore())
		assert.Zero(t, time.Since(began))
		r.cancel()
		<-r.done
	})
}

// The mutation detector calls the error handler on its own goroutine. Fails if its panic is delayed
// until the run ends.
func TestAPanicOnTheDetectorsGoroutineComesOutOfRunAtOnce(t *testing.T) {
	notRaced(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), func(c *cache.InformerConfig[*object]) {
			c.DetectMutations = mutation.Options{Period: 10 * time.Second}.New
			c.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) { deliberatePanic(err) }
		})
		r.run()
		synctest.Wait()
		changeStored(r.inf, "a/1")
		sleep(10 * time.Second)
		assert.True(t, isClosed(r.done), "it has come out when the first comparison was made")
		r.cancel()
		<-r.done
		require.IsType(t, &cache.PanicError{}, r.panicked)
		assert.Equal(t, errBoom, r.panicked.(*cache.PanicError).Value)
		assert.Equal(t, 2, r.inf.Len())
		r.source.Close()
	})
}

// changeStored modifies a stored object, which the mutation detector must report.
func changeStored(inf *cache.Informer[*object], key string) {
	changed, _ := inf.Lookup(key)
	changed.Labels = map[string]string{"changed": "by a reader"}
}

// notRaced skips a test that modifies a stored object, because that is a data race.
func notRaced(t *testing.T) {
	if raceDetected() {
		t.Skip("the change is a data race")
	}
}

// A handler that ends its goroutine is reported on that goroutine, where the error handler may
// panic or hang. Fails if ShutDownEventHandler waits for the ended goroutine.
func TestAnErrorHandlerThatHangsBlocksNoWaitForAHandlerThatExited(t *testing.T) {
	reallyCrash(t)
	for name, leave := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic(errBoom) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), func(c *cache.InformerConfig[*object]) {
					c.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) { leave() }
				})
				handle := r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }})
				r.run()
				assert.ErrorContains(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()), "handler ended its goroutine")
				shut := make(chan error, 1)
				go func() { shut <- cache.ShutDownEventHandler(r.inf.Shared(), handle) }()
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

// A handler that ends its goroutine (a test's FailNow) receives no more calls; that is reported,
// waits for it fail, and other handlers continue. Fails if there is no report, or if a wait lasts
// forever.
func TestAHandlerThatEndsItsGoroutineIsReportedAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		handle := r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }}, cache.HandlerOptions{Name: "leaver"})
		other := newReplicaHandler(t)
		r.handle(other)
		r.run()
		sleep(time.Second)
		assert.Len(t, other.take(), 2)
		require.Len(t, r.inf.Status().Handlers, 1)
		assert.False(t, handle.HasSynced())
		assert.ErrorContains(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()), "handler ended its goroutine")
		require.Len(t, r.heard.all(), 1)
		assert.ErrorContains(t, r.heard.all()[0], "handler ended its goroutine")
		assert.ErrorContains(t, r.heard.all()[0], "leaver")
		assert.NoError(t, cache.ShutDownEventHandler(r.inf.Shared(), handle), "nothing to wait for")
		must(t, r.source.Apply(pod("a", "3")))
		synctest.Wait()
		assert.Len(t, other.take(), 1)
		r.stop()
	})
}

// Fails if a mutation that is found while a change is applied is reported before handlers receive
// that change.
func TestTheReportOfAChangedObjectBlocksNoHandler(t *testing.T) {
	notRaced(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		reported := 0
		informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{
			DetectMutations: mutation.Options{Period: 100 * time.Hour}.New,
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
				if cache.CauseOf(err) == causeMutated {
					reported++
					time.Sleep(time.Hour)
				}
			}},
		})
		updates := 0
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{UpdateFunc: func(_, _ *object) { updates++ }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- informer.Run(ctx) }()
		synctest.Wait()
		changeStored(informer, "a/1")
		require.NoError(t, source.Apply(labelled(pod("a", "1"), "new")))
		synctest.Wait()
		assert.Equal(t, 1, updates)
		assert.Equal(t, 1, reported)
		cancel()
		require.NoError(t, <-over)
	})
}

// When a call returns, the context has ended, changes are pending and a resync is due. Fails if a
// select begins another call, which would follow if the run continued.
func TestNoHandlerIsCalledAfterTheContextHasEnded(t *testing.T) {
	for name, objects := range map[string][]apiruntime.Object{
		"changes and a resync": {pod("a", "1"), pod("a", "2"), pod("a", "3")},
		"a resync":             {pod("a", "1")},
	} {
		for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
			t.Run(fmt.Sprint(name, ", ", delivery), func(t *testing.T) {
				for range 100 {
					synctest.Test(t, func(t *testing.T) { contextEndsDuringCall(t, delivery, objects) })
				}
			})
		}
	}
}

func contextEndsDuringCall(t *testing.T, delivery cache.Delivery, objects []apiruntime.Object) {
	r := newInformerRig(t, newSource(t, pod("a", "first")), nil)
	notified := newReplicaHandler(t)
	period, ends, ended := 10*time.Second, false, false
	notified.before = func(string) {
		if assert.False(t, ended, "called after the context had ended"); ends {
			time.Sleep(2 * period) // two resyncs are due when it returns
			r.cancel()
			ended = true
		}
	}
	handle := r.handle(notified, cache.HandlerOptions{ResyncPeriod: &period, Delivery: delivery})
	r.run()
	must(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()))
	synctest.Wait()
	ends = true
	must(t, r.source.Apply(objects...))
	<-r.done
	r.stop()
	assert.Equal(t, 2, notified.callCount())
}
