package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache"
)

// survivePanics makes apimachinery's panic handlers not end the process.
func survivePanics(t *testing.T) {
	before, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = before, handlers })
}

// panicking is a handler that panics for a/2.
func panicking(notified *replicaHandler) cache.ResourceEventHandler {
	notified.before = func(key string) {
		if key == "a/2" {
			panic(errBoom)
		}
	}
	return notified
}

// reallyCrash sets apimachinery's ReallyCrash to its default, true, and returns what its
// panic handlers receive.
func reallyCrash(t *testing.T) (got *[]any) {
	t.Helper()
	survivePanics(t)
	utilruntime.ReallyCrash = true
	got = &[]any{}
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) { *got = append(*got, value) })
	return got
}

// B9: if the process survives because ReallyCrash is off or because of RecoverPanics, a handler
// that panics during the initial list syncs and receives all other changes; each panic is counted,
// reported with its key, and passed to apimachinery's panic handlers.
func TestB9AHandlerThatPanicsDuringTheInitialListStillSyncs(t *testing.T) {
	for _, really := range []bool{false, true} {
		t.Run(fmt.Sprint("ReallyCrash ", really), func(t *testing.T) {
			got := reallyCrash(t)
			utilruntime.ReallyCrash = really
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
				notified, other := newReplicaHandler(t), newReplicaHandler(t)
				handle := r.handle(panicking(notified), cache.HandlerOptions{Name: "mine", RecoverPanics: really})
				r.handle(other)
				r.run()
				synctest.Wait()
				assert.True(t, handle.HasSynced())
				assert.NoError(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()))
				must(t, r.source.Apply(labelled(pod("a", "1"), "x")), r.source.Apply(labelled(pod("a", "2"), "x")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/1@1", "add a/3@3", "update a/1@4"}, notified.take())
				assert.Equal(t, cache.HandlerStatus{Name: "mine", Delivered: 5, Panics: 2, Synced: true, NotifiedVersion: "5"}, r.handlerStatus(0))
				assert.Equal(t, int64(0), r.handlerStatus(1).Panics)
				assert.Len(t, other.take(), 5)
				require.Len(t, r.heard.all(), 2)
				for _, err := range r.heard.all() {
					var reported *cache.ProcessError
					require.ErrorAs(t, err, &reported)
					assert.Equal(t, []string{"a/2"}, reported.Keys)
					assert.ErrorContains(t, err, "panicked")
					assert.ErrorContains(t, err, "mine")
				}
				assert.Equal(t, []any{errBoom, errBoom}, *got)
				r.stop()
			})
		})
	}
}

// A panic that ends the run is counted before the panic handlers of apimachinery are called: the
// handler is removed afterwards. Fails if it is counted only where the process survives.
func TestAPanicThatEndsTheRunIsCounted(t *testing.T) {
	reallyCrash(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
		r.handle(panicking(newReplicaHandler(t)))
		var during []cache.HandlerStatus
		utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(context.Context, any) { during = append(during, r.handlerStatus(0)) })
		r.run()
		<-r.done
		require.NotNil(t, r.panicked)
		require.Len(t, during, 1)
		assert.Equal(t, []int64{2, 1}, []int64{during[0].Delivered, during[0].Panics})
		assert.Empty(t, r.inf.Status().Handlers, "nothing is kept for it")
		r.source.Close()
	})
}
