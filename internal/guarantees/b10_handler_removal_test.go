package guarantees

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache"
)

// B10: a handler that removes itself or another one, or is shut down while the informer stops, does
// not deadlock. Fails if a call inside a handler waits forever for a handler, or with a lock that
// the other side needs.
func TestB10AHandlerIsRemovedInsideAHandlerDuringShutdown(t *testing.T) {
	for _, stopping := range []bool{false, true} {
		t.Run(fmt.Sprint("stopping ", stopping), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				var own, other cache.ResourceEventHandlerRegistration
				calls := 0
				own = r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
					calls++
					if stopping {
						r.cancel()
						synctest.Wait() // until only calls that the test blocks are running
					}
					shared := r.inf.Shared()
					began := time.Now()
					assert.ErrorIs(t, cache.ShutDownEventHandler(shared, own), cache.ErrHandlerRunning)
					assert.Equal(t, 30*time.Second, time.Since(began))
					assert.NoError(t, shared.RemoveEventHandler(other))
					assert.NoError(t, shared.RemoveEventHandler(own))
					assert.NoError(t, shared.RemoveEventHandler(own))
					assert.NoError(t, cache.ShutDownEventHandler(shared, other))
				}})
				other = r.handle(newReplicaHandler(t))
				r.run()
				sleep(time.Minute)
				assert.Equal(t, 1, calls, "it is called no more")
				assert.Empty(t, r.inf.Status().Handlers)
				r.stop()
			})
		})
	}
}

// B10: ShutDownEventHandler waits for the running call, from a goroutine and from another handler,
// and no call follows; RemoveEventHandler does not wait.
func TestB10ShutDownWaitsForTheRunningCall(t *testing.T) {
	for _, from := range []string{"goroutine", "handler"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				notified := newReplicaHandler(t)
				notified.before = func(string) { time.Sleep(10 * time.Second) }
				handle := r.handle(notified)
				r.run()
				sleep(3 * time.Second)
				began := time.Now()
				end := func() {
					assert.NoError(t, cache.ShutDownEventHandler(r.inf.Shared(), handle))
					assert.Equal(t, 7*time.Second, time.Since(began))
					assert.Equal(t, 1, notified.callCount())
				}
				if from == "handler" {
					done := make(chan struct{})
					r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
						if nameOf(obj) == "a/1" {
							end()
							close(done)
						}
					}})
					<-done
				} else {
					end()
				}
				assert.NoError(t, cache.ShutDownEventHandler(r.inf.Shared(), handle), "the second time there is nothing to wait for")
				sleep(time.Minute)
				assert.Equal(t, []string{"add a/1@1"}, notified.take())
				r.stop()
			})
		})
	}
}
