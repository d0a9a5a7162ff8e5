package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// A handler that joins between a write and its publication stands behind that before it is
// there for others to read. Fails if what it has to read is counted from there, and is then
// less than nothing.
func TestWhoSkipsAWriteThatIsBeingPublishedHasNothingToTakeOut(t *testing.T) {
	log := newEventLog()
	log.appendLocked(make([]notification, 3), time.Time{})
	b := backlog{plain: plainQueue{logCursor: log.cursorLocked()}}
	require.Zero(t, b.takeSome(make([]notification, aheadLen)))
	log.endLocked()
	require.Zero(t, b.takeSome(make([]notification, aheadLen)))
	log.appendLocked([]notification{{kind: tellAdd}}, time.Time{})
	log.endLocked()
	require.Equal(t, 1, b.takeSome(make([]notification, aheadLen)))
}

// Of what was taken out together, that is said to wait which the handler has not been told,
// and since when: each time it is being told one.
func TestTheStatusCountsWhatWasTakenOutAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = aheadLen + 3
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

// A handler that is removed while it hangs is told nothing more of what was taken out for it,
// and its registration, which who added it may keep, keeps nothing of that.
func TestAHandlerThatIsRemovedIsNotToldWhatWasTakenOutAhead(t *testing.T) {
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
		assert.Zero(t, handle.(*listener).ahead.all)
		r.cancel()
		<-r.done
	})
}
