package cache

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
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
func TestAnErrorHandlerThatHangsBlocksNoWaitForAHandlerThatExited(t *testing.T) {
	crashing(t)
	for name, leave := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic(errBoom) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
					c.ReflectorOptions.ErrorHandler = func(context.Context, *Reflector, error) { leave() }
				})
				handle := r.handle(ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }})
				r.run()
				assert.ErrorIs(t, WaitForDone(t.Context(), handle.HasSyncedChecker()), errHandlerExited)
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

// deliberatePanic is what a stack is looked for.
func deliberatePanic(any) { panic(errBoom) }

// With ReallyCrash as it is by default, a handler's panic ends the run: it comes out of
// Run as a *PanicError with the stack of the handler, after the calls of the other
// handlers have returned. Fails if it is lost, or another goroutine dies of it.
func TestAPanicOfAHandlerComesOutOfRunWithItsStack(t *testing.T) {
	got := crashing(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		other := newReplica(t)
		begun := make(chan struct{}, 2)
		other.before = func(string) {
			begun <- struct{}{}
			time.Sleep(10 * time.Second)
		}
		handle := r.handle(other)
		r.handle(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			<-begun
			deliberatePanic(obj)
		}})
		began := time.Now()
		r.run()
		<-r.done
		assert.Equal(t, 10*time.Second, time.Since(began), "the other handler's call has returned")
		var panicked *PanicError
		require.IsType(t, panicked, r.panicked)
		panicked = r.panicked.(*PanicError)
		assert.Equal(t, errBoom, panicked.Value)
		assert.Contains(t, string(panicked.Stack), "deliberatePanic")
		assert.Equal(t, []any{errBoom}, *got)
		assert.Equal(t, []string{"add a/1@1"}, other.take())
		assert.True(t, r.inf.Shared().IsStopped())
		assert.ErrorIs(t, handle.HasSyncedChecker().(DoneError).Err(), ErrInformerStopped)
		r.source.Close()
	})
}

// The same for one that panics when the run is over already, while Run waits for it.
func TestAPanicOfAHandlerThatRunWaitsForComesOutOfIt(t *testing.T) {
	crashing(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		r.handle(ResourceEventHandlerFuncs{AddFunc: func(obj any) { time.Sleep(time.Minute); deliberatePanic(obj) }})
		r.run()
		sleep(time.Second)
		r.cancel()
		<-r.done
		assert.ErrorIs(t, r.panicked.(error), errBoom)
		r.source.Close()
	})
}

// A panic of the source comes out of Run, and the handlers' goroutines end.
func TestAPanicOfTheSourceComesOutOfAnInformersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBulkRig(t, &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) { panic(errBoom) }})
		handle := r.handle(newReplica(t))
		r.run()
		<-r.done
		require.NotNil(t, r.panicked)
		assert.True(t, strings.Contains(fmt.Sprint(r.panicked), "boom"))
		assert.True(t, r.inf.Shared().IsStopped())
		assert.True(t, IsDone(handle.HasSyncedChecker()))
	})
}

// A handler that ends its goroutine (a test's FailNow) is told of nothing more; that is
// reported, whoever waits for it learns of it, and the others go on. Fails if the loss
// is silent, or somebody waits for ever.
func TestAHandlerThatEndsItsGoroutineIsReportedAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		handle := r.handle(ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }}, HandlerOptions{Name: "leaver"})
		other := newReplica(t)
		r.handle(other)
		r.run()
		sleep(time.Second)
		assert.Len(t, other.take(), 2)
		require.Len(t, r.inf.Status().Handlers, 1)
		assert.False(t, handle.HasSynced())
		assert.ErrorIs(t, WaitForDone(t.Context(), handle.HasSyncedChecker()), errHandlerExited)
		require.Len(t, r.heard.all(), 1)
		assert.ErrorIs(t, r.heard.all()[0], errHandlerExited)
		assert.ErrorContains(t, r.heard.all()[0], "leaver")
		assert.NoError(t, ShutDownEventHandler(r.inf.Shared(), handle), "nothing to wait for")
		must(t, r.source.Apply(pod("a", "3")))
		synctest.Wait()
		assert.Len(t, other.take(), 1)
		r.stop()
	})
}

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

func TestAnInformerRunOutsideItsSetIsNotReturnedOnceItHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		informer, _ := podInformerOf(t, &set, source)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = informer.Run(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		anew, _ := podInformerOf(t, &set, source)
		require.NotSame(t, informer, anew)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		end()
	})
}

// Fails if what the detector finds while a change is applied is reported before handlers
// are told of that change.
func TestTheReportOfAChangedObjectBlocksNoHandler(t *testing.T) {
	notRaced(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		reported := 0
		informer := NewInformerFor(source, InformerConfig[*object]{
			DetectMutations: MutationDetection{SampleEvery: 1, Period: 100 * time.Hour},
			ReflectorOptions: ReflectorOptions{ErrorHandler: func(_ context.Context, _ *Reflector, err error) {
				if CauseOf(err) == causeMutated {
					reported++
					time.Sleep(time.Hour)
				}
			}},
		})
		updates := 0
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{UpdateFunc: func(_, _ *object) { updates++ }})
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

// deathVariable tells a process that it is a child of a test, and which way to die.
const deathVariable = "CACHE_TEST_DEATH"

// deaths are informers and sets one of whose goroutines panics 10 s after the start, while
// something hangs that Run waits for. Each is started in a bubble of a process of its own.
var deaths = map[string]func(*testing.T){
	"a handler beside one that hangs": func(t *testing.T) {
		inf := dyingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside one that hangs and was removed": func(t *testing.T) {
		inf := dyingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		handle := addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
		synctest.Wait()
		must(t, inf.RemoveHandler(handle))
	},
	"a handler whose source ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		inf := dyingInformer(source)
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside an error handler that hangs": func(t *testing.T) {
		inf := NewInformerFor(newSource(t, pod("a", "1"), pod("a", "bad")), InformerConfig[*object]{
			Indexes:          TypedIndexers[*object]{"picky": failingFor("bad")},
			ReflectorOptions: ReflectorOptions{Strategy: ListPaged, ErrorHandler: func(context.Context, *Reflector, error) { select {} }},
		})
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a controller's handler beside a source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		go New(&Config{
			ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc), ReflectorOptions: ReflectorOptions{Strategy: ListPaged},
			Handler: ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a handler of one namespace beside another's source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		hangs := newSource(t)
		hangs.HangListsIgnoringContext(1)
		go New(&Config{
			Namespaces: map[string]ListerWatcher{"a": source.Namespace("a"), "b": hangs.Namespace("b")},
			Store:      NewStore(MetaNamespaceKeyFunc), ReflectorOptions: ReflectorOptions{Strategy: ListPaged},
			Handler: ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a controller's source beside a handler that hangs": func(t *testing.T) {
		go New(&Config{
			ListerWatcher: panickingSource(t), Store: NewStore(MetaNamespaceKeyFunc),
			Handler: ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }},
		}).RunWithContext(t.Context())
	},
	"a source beside a handler that hangs": func(t *testing.T) {
		inf := dyingInformer(panickingSource(t))
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler of a set beside one of another informer that hangs": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of its own informer that hangs": func(t *testing.T) {
		var set InformerSet
		inf, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside another source that ignores its context": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		source := newSource(t)
		source.HangListsIgnoringContext(1)
		_, _, err := InformerOf(&set, source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{Strategy: ListPaged}})
		must(t, err)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a source of a set beside a handler of another informer that hangs": func(t *testing.T) {
		var set InformerSet
		podInformerOf(t, &set, panickingSource(t))
		hangs, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of a released informer that hangs": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs, release := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
		synctest.Wait()
		release()
	},
}

// A panic that is not survived must not be kept from ending the process by something
// that hangs: 30 s after it, it goes on where it was. That ends the process, so that each
// case is a child that is a bubble. Fails if one lives, dies earlier or of something else.
func TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs(t *testing.T) {
	if way := os.Getenv(deathVariable); way != "" {
		die(t, deaths[way])
	}
	program, err := os.Executable()
	must(t, err)
	for way := range deaths {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), program, "-test.run=^TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs$", "-test.timeout=1m")
			child.Env = append(os.Environ(), deathVariable+"="+way)
			var stdout, stderr bytes.Buffer
			child.Stdout, child.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			require.ErrorAs(t, child.Run(), &exit, stdout.String())
			assert.Equal(t, 2, exit.ExitCode(), "that of a panic")
			assert.Equal(t, "alive\n", stdout.String(), "it dies after 30 s, not earlier or later")
			assert.Contains(t, stderr.String(), "panic: ")
			assert.Contains(t, stderr.String(), errBoom.Error())
			assert.Contains(t, stderr.String(), "cache.deliberatePanic", "the stack of the place that panicked")
		})
	}
}

// die starts what panics 10 s later, in virtual time, and says what it lives to see.
func die(t *testing.T, start func(*testing.T)) {
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, nil // what is printed is the process's own
	synctest.Test(t, func(t *testing.T) {
		start(t)
		sleep(10*time.Second + 29*time.Second)
		fmt.Println("alive")
		sleep(2 * time.Second)
		fmt.Println("survived")
		os.Exit(0)
	})
}

func dyingInformer(source ListerWatcher) *Informer[*object] {
	return NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{
		Strategy: ListPaged, ErrorHandler: (&heard{}).handle,
	}})
}

func addPanicking(t *testing.T, inf *Informer[*object]) {
	_, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		time.Sleep(10 * time.Second)
		deliberatePanic(obj)
	}})
	must(t, err)
}

func addHanging(t *testing.T, inf *Informer[*object]) ResourceEventHandlerRegistration {
	handle, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }})
	must(t, err)
	return handle
}

// panickingSource lists an object, and panics in the watch that follows.
func panickingSource(t *testing.T) ListerWatcher {
	lists := newSource(t, pod("a", "1"))
	return &ListWatch{ListFunc: lists.List, WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
		time.Sleep(10 * time.Second)
		deliberatePanic(nil)
		return nil, nil
	}}
}

// failingFor is an index function that fails for the object with that name.
func failingFor(name string) TypedIndexFunc[*object] {
	return func(o *object) ([]string, error) {
		if o.Name == name {
			return nil, errBoom
		}
		return nil, nil
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

// bulk is a source of many objects that are made without an API server's care for each,
// and of events that a test sends.
type bulk struct {
	scripted
	items   []object
	lists   int
	version int
	events  chan watch.Event
}

func newBulk(objects int) *bulk {
	s := &bulk{items: make([]object, objects), version: objects, events: make(chan watch.Event)}
	for i := range s.items {
		s.items[i] = *podAt("a", itoa(i), itoa(i+1))
	}
	s.list = func(o metav1.ListOptions) (apiruntime.Object, error) {
		if isVersionCheck(o) { // it has gone on, whatever was sent
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}}, nil
		}
		s.lists++
		// The copies are shallow: nobody changes an object.
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: itoa(s.version)}, Items: slices.Clone(s.items),
		}, nil
	}
	s.watch = func(context.Context, int) (watch.Interface, error) { return &probe{events: s.events}, nil }
	return s
}

// A handler that joins an informer of 100,000 objects pauses nobody, though it hangs at
// the first of them: the next event is applied and told to others, and readers answer,
// within the same instant.
func TestAHandlerThatJoinsAHundredThousandObjectsPausesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100_000
		source := newBulk(objects)
		r := newBulkRig(t, source)
		first := newReplica(t)
		first.onlyCounts = true
		r.handle(first)
		r.run()
		synctest.Wait()
		require.Equal(t, objects, first.told())

		began := time.Now()
		late, goOn := stalled(t)
		late.onlyCounts = true
		handle := r.handle(late)
		synctest.Wait()
		assert.Equal(t, objects-1, r.handlerStatus(1).Backlog, "all but the one that is being told")
		source.events <- watch.Event{Type: watch.Modified, Object: labelled(podAt("a", "7", itoa(objects+1)), "x")}
		synctest.Wait()
		assert.Equal(t, objects+1, first.told())
		stored, _ := r.inf.Lookup("a/7")
		assert.Equal(t, "x", stored.Labels["v"])
		assert.False(t, handle.HasSynced())
		goOn()
		synctest.Wait()
		assert.True(t, handle.HasSynced())
		assert.Equal(t, objects, late.initial)
		assert.Equal(t, objects+1, late.told())
		late.equals(r.inf.Shared().GetStore())
		assert.Zero(t, time.Since(began))
		r.cancel()
		<-r.done
	})
}

// newBulkRig is a rig without a cachetest source.
func newBulkRig(t *testing.T, source ListerWatcher) *informerRig {
	r := &informerRig{T: t, heard: &heard{}}
	r.inf = NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ErrorHandler: r.heard.handle}})
	return r
}

// raceDetected says whether the race detector is built in: its memory, and what it keeps
// alive, would be measured with what is measured.
func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// heap is how many bytes are alive.
func heap() int64 {
	// Twice: what has a finalizer or a cleanup goes with the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// kibiObject is an object of about 1 KiB.
func kibiObject(name string, version int) *object {
	o := podAt("a", name, itoa(version))
	o.Annotations = map[string]string{"content": strings.Repeat("x", 1000)}
	return o
}
