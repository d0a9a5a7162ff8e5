package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
