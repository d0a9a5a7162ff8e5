package cache

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// The status counts the changes that came together and were not delivered yet, and says since when the
// oldest has waited, during each call.
func TestTheStatusCountsWhatWaitsDuringEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 11
		source := newBulk(objects)
		r := newBulkRig(t, source)
		told := newReplica(t)
		step := make(chan struct{})
		told.before = func(string) { <-step }
		r.handle(told)
		r.run()
		for n := range objects {
			sleep(time.Second)
			status := r.handlerStatus(0)
			assert.Equal(t, objects-1-n, status.Backlog)
			age := time.Duration(n+1) * time.Second
			if n == objects-1 {
				age = 0
			}
			assert.Equal(t, age, status.OldestAge, n)
			step <- struct{}{}
		}
		synctest.Wait()
		assert.Zero(t, r.handlerStatus(0).Backlog)
		close(step)
		r.cancel()
		<-r.done
	})
}

// A handler that is removed during a call is not called for the changes that waited, and its
// registration, which the caller may keep, does not keep the log.
func TestAHandlerThatIsRemovedDuringACallIsNotCalledAgain(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, func(t *testing.T) {
		source := newBulk(3)
		r := newBulkRig(t, source)
		slow, goOn := stalled(t)
		handle := r.handle(slow)
		r.handle(ResourceEventHandlerFuncs{}) // for whom the log goes on
		r.run()
		synctest.Wait()
		require.NoError(t, r.inf.RemoveHandler(handle))
		before := heap()
		for i := range 10_000 {
			source.events <- watch.Event{Type: watch.Modified, Object: kibiObject("0", i+4)}
		}
		synctest.Wait()
		assert.LessOrEqual(t, heap()-before, int64(2<<20))
		goOn()
		synctest.Wait()
		assert.Equal(t, []string{"add a/0@1"}, slow.take())
		runtime.KeepAlive(handle)
		r.cancel()
		<-r.done
	})
}
