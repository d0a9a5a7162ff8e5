package cache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

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
		assert.ErrorIs(t, WaitForDone(t.Context(), handle.HasSyncedChecker()), ErrHandlerExited)
		require.Len(t, r.heard.all(), 1)
		assert.ErrorIs(t, r.heard.all()[0], ErrHandlerExited)
		assert.ErrorContains(t, r.heard.all()[0], "leaver")
		assert.NoError(t, ShutDownEventHandler(r.inf.Shared(), handle), "nothing to wait for")
		must(t, r.source.Apply(pod("a", "3")))
		synctest.Wait()
		assert.Len(t, other.take(), 1)
		r.stop()
	})
}
