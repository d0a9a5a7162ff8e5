package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// stopScripts bring a pipeline into each phase in which it can be stopped.
var stopScripts = map[string]struct {
	fault  func(*cachetest.Source)
	change func(*Config)
	after  time.Duration
}{
	"before anything":               {},
	"while a list hangs":            {fault: func(s *cachetest.Source) { s.HangLists(1) }, after: time.Second},
	"in a list's backoff":           {fault: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, errBoom) }, after: 5 * time.Minute},
	"while a watch request hangs":   {fault: func(s *cachetest.Source) { s.HangWatches(1) }, after: time.Second},
	"in a watch's backoff":          {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }, after: 5 * time.Minute},
	"while watching":                {after: time.Minute},
	"while a watch is silent":       {fault: func(s *cachetest.Source) { s.Silence() }, after: time.Minute},
	"in Retry-After":                {fault: func(s *cachetest.Source) { s.FailLists(1, cachetest.ErrTooManyRequests(200)) }, after: time.Minute},
	"while a stream waits":          {fault: func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever) }, change: stream, after: 5 * time.Second},
	"in a stream's backoff":         {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) }, change: stream, after: 100 * time.Millisecond},
	"in a streaming list's backoff": {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrTooManyRequests(0)) }, change: stream, after: time.Second},
}

// G9, B4, B17: whatever the pipeline is doing, Run returns at the very instant
// (of virtual time) at which its context ends, reports nothing, and leaves no
// goroutine: the bubble would not end. Fails if any wait does not select on the
// context, if a failure is reported after it, or if a goroutine is left.
func TestG9RunReturnsAtOnceInEveryPhase(t *testing.T) {
	for name, script := range stopScripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t, pod("a", "1")), script.change)
				if script.fault != nil {
					script.fault(r.source)
				}
				r.run()
				if script.after > 0 {
					sleep(script.after)
				}
				before := len(r.heard.all())
				stopped := time.Now()
				r.cancel()
				<-r.done
				assert.Zero(t, time.Since(stopped), "virtual time between the context's end and Run's return")
				assert.Len(t, r.heard.all(), before, "nothing is reported when the context ends")
				assert.Equal(t, PhaseStopped, r.status().Phase)
				r.source.Close()
			})
		})
	}
}

// B4: a stop during the backoff of a streaming list takes no time. Fails if that
// pause does not select on the context.
func TestB4StopDuringAStreamingListsBackoffTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		source.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused())
		source.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused())
		r := newRig(t, source, stream)
		r.run()
		sleep(10 * time.Minute)
		stopped := time.Now()
		r.stop()
		assert.Zero(t, time.Since(stopped))
	})
}

// B17: a thousand runs leave no goroutine behind. Fails if a call into the source,
// or a consumer, outlives its run: one that ends with the source would not keep the
// bubble from ending.
func TestB17NoGoroutineOutlivesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		before := goroutines()
		for range 1000 {
			r := newRig(t, source, nil)
			r.run()
			synctest.Wait()
			r.cancel()
			<-r.done
		}
		assert.Equal(t, before, goroutines())
		assert.Zero(t, source.ActiveWatches())
		source.Close()
	})
}

// G9: a source that ignores its context is waited for, and named after 30 s.
// Fails if Run returns before the call does, or if nobody is told.
func TestG9ASourceThatIgnoresItsContextIsWaitedForAndNamed(t *testing.T) {
	for op, hang := range map[string]func(*cachetest.Source){
		"List":  func(s *cachetest.Source) { s.HangListsIgnoringContext(1) },
		"Watch": func(s *cachetest.Source) { s.HangWatchesIgnoringContext(1) },
	} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t), nil)
				hang(r.source)
				r.run()
				sleep(time.Second)
				r.cancel()
				sleep(29 * time.Second)
				assert.Empty(t, r.heard.all())
				sleep(2 * time.Second)
				var slow *SlowSourceError
				require.Len(t, r.heard.all(), 1)
				require.ErrorAs(t, r.heard.all()[0], &slow)
				assert.Equal(t, op, slow.Op)
				select {
				case <-r.done:
					t.Error("Run returned while the source was still being called")
				default:
				}
				r.source.ReleaseHanging()
				<-r.done
				r.source.Close()
			})
		})
	}
}

// S16: a panic in the source reaches the caller of Run, with the stack of the
// place that panicked. Fails if it kills a goroutine of its own or is swallowed.
func TestAPanicOfTheSourceReachesTheCallerOfRun(t *testing.T) {
	source := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) { panic(errBoom) },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, errBoom
		},
	}
	indexer, reflector := NewNamespaceKeyedIndexerAndReflector(source, nil, 0)
	for name, run := range map[string]func(){
		"reflector":  func() { reflector.RunWithContext(context.Background()) },
		"controller": func() { New(&Config{ListerWatcher: source, Store: indexer}).RunWithContext(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				panicked, ok := recover().(*PanicError)
				require.True(t, ok)
				assert.ErrorIs(t, panicked, errBoom)
				assert.Contains(t, panicked.Error(), "TestAPanicOfTheSourceReachesTheCallerOfRun.func1")
			}()
			run()
		})
	}
}

// B12: of two concurrent Runs exactly one runs; the other returns at once and
// reports ErrAlreadyRan. Fails if the second one lists, blocks, or is silent.
func TestB12OfTwoConcurrentRunsOneReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), nil)
		r.run()
		synctest.Wait()
		r.ctlr.RunWithContext(context.Background())
		require.Len(t, r.heard.all(), 1)
		assert.ErrorIs(t, r.heard.all()[0], ErrAlreadyRan)
		assert.Equal(t, 1, r.source.ListCalls())
		r.equalsSource()
		r.stop()
		r.ctlr.RunWithContext(context.Background())
		assert.Len(t, r.heard.all(), 2, "also after it has ended")
	})
}

func TestB12AReflectorMayRunAgainAfterItReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &heard{}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		reflector := NewReflectorWithOptions(source, &object{}, indexer, ReflectorOptions{ErrorHandler: h.handle})
		for round := range 3 {
			started := len(source.Requests())
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); reflector.RunWithContext(ctx) }()
			synctest.Wait()
			reflector.RunWithContext(ctx)
			assert.ErrorIs(t, reflector.ListAndWatchWithContext(ctx), ErrAlreadyRan)
			assert.Len(t, h.all(), round+1, "what is returned is not reported as well")
			assert.Len(t, indexer.ListKeys(), round+1)
			if round > 0 {
				first := source.Requests()[started]
				assert.Equal(t, itoa(round), first.Options.ResourceVersion, "the version is kept for the next run")
			}
			cancel()
			<-done
			require.NoError(t, source.Apply(pod("b", itoa(round))))
		}
		source.Close()
	})
}

// A panic of the consumer ends the whole controller and reaches the caller of
// Run, because nobody would know of the loss otherwise.
func TestAPanicOfProcessReachesTheCallerOfRun(t *testing.T) {
	source := cachetest.NewSource(cachetest.Options{})
	require.NoError(t, source.Apply(pod("a", "1")))
	defer source.Close()
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	controller := New(&Config{Queue: queue, ListerWatcher: source, Process: func(any, bool) error { panic(errBoom) }})
	defer func() {
		panicked, ok := recover().(*PanicError)
		require.True(t, ok)
		assert.True(t, errors.Is(panicked, errBoom))
	}()
	controller.RunWithContext(context.Background())
}
