package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache"
)

// B11: a wait for a handler ends with an error when the handler is removed before it has synced.
func TestB11WaitingForAHandlerThatIsRemovedEnds(t *testing.T) {
	scripts := map[string]func(r *informerRig, notified *replicaHandler){
		"before the run":       func(*informerRig, *replicaHandler) {},
		"while the list hangs": func(r *informerRig, _ *replicaHandler) { r.source.HangLists(1); r.run(); sleep(time.Second) },
		"while the handler does": func(r *informerRig, notified *replicaHandler) {
			notified.before = func(string) { time.Sleep(time.Hour) }
			r.run()
		},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
				notified := newReplicaHandler(t)
				handle := r.handle(notified)
				script(r, notified)
				var waited error
				var all bool
				over := make(chan struct{}, 2)
				go func() { waited = cache.WaitForDone(t.Context(), handle.HasSyncedChecker()); over <- struct{}{} }()
				go func() { all = cache.WaitFor(t.Context(), "", handle.HasSyncedChecker()); over <- struct{}{} }()
				sleep(time.Minute)
				assert.Empty(t, over)
				assert.NoError(t, r.inf.RemoveHandler(handle))
				synctest.Wait()
				assert.Len(t, over, 2)
				assert.ErrorIs(t, waited, cache.ErrHandlerRemoved)
				assert.False(t, all)
				assert.False(t, handle.HasSynced())
				assert.ErrorIs(t, doneError(handle.HasSyncedChecker()), cache.ErrHandlerRemoved)
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
		handle := r.handle(newReplicaHandler(t))
		r.run()
		synctest.Wait()
		must(t, r.inf.RemoveHandler(handle))
		assert.True(t, handle.HasSynced())
		assert.NoError(t, doneError(handle.HasSyncedChecker()))
		r.stop()
		assert.True(t, handle.HasSynced())
	})
}
