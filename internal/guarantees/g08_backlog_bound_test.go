package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G8: however many changes occur while a handler hangs, it then receives at most two calls for each
// key: a Delete and an Add. Fails if changes are appended instead of merged, or if an object that
// was added and deleted meanwhile is delivered.
func TestG8AHandlerThatHangsIsNotifiedAtMostTwiceOfEachKey(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects = 2000
				r := newInformerRig(t, filledSource(t, objects), nil)
				notified := newReplicaHandler(t)
				r.handle(notified, cache.HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				require.Equal(t, objects, notified.callCount())
				gate := make(chan struct{})
				notified.before = func(string) { <-gate }
				must(t, r.source.Apply(pod("b", "1"))) // the handler hangs in this one's call
				synctest.Wait()
				clear(notified.calls)
				notified.take()
				churn(t, r.source, objects)
				sleep(time.Second)
				status := r.handlerStatus(0)
				assert.True(t, status.Merging)
				assert.LessOrEqual(t, status.Backlog, objects+1)
				close(gate)
				synctest.Wait()
				notified.assertEqualsStore(r.inf.Shared().GetStore())
				for key, calls := range notified.calls {
					assert.LessOrEqual(t, calls, 2, key)
				}
				assert.Len(t, notified.calls, objects+1, "an object that came and was removed is not delivered")
				assert.Equal(t, objects/2+objects/4*2+objects/4+1, notified.callCount())
				assert.Equal(t, cache.HandlerStatus{
					Name: status.Name, Delivery: delivery, Merging: delivery == cache.Coalesced,
					Delivered: r.handlerStatus(0).Delivered, Synced: true, NotifiedVersion: r.inf.ResourceVersion(),
				}, r.handlerStatus(0))
				r.stop()
			})
		})
	}
}

// churn updates each object three times, deletes half of them, recreates half of these, and
// adds and deletes as many other objects.
func churn(t *testing.T, source *cachetest.Source, objects int) {
	for round := range 3 {
		for i := range objects {
			must(t, source.Apply(labelled(pod("a", itoa(i)), itoa(round))))
		}
	}
	for i := range objects {
		must(t, source.Apply(pod("other", itoa(i))))
		if i%2 == 0 {
			_, err := source.Delete("a", itoa(i))
			must(t, err)
		}
		if i%4 == 0 {
			must(t, source.Apply(pod("a", itoa(i))))
		}
		_, err := source.Delete("other", itoa(i))
		must(t, err)
	}
}

// G8: a handler with OrderedUnbounded receives everything, however long it hung.
func TestG8AnUnboundedHandlerReceivesEverythingAfterItHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		notified, goOn := stalledReplica(t)
		r.handle(notified, cache.HandlerOptions{Delivery: cache.OrderedUnbounded})
		r.run()
		synctest.Wait()
		for i := range 5000 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		sleep(time.Second)
		assert.Equal(t, 5000, r.handlerStatus(0).Backlog)
		goOn()
		synctest.Wait()
		assert.Len(t, notified.take(), 5001)
		r.stop()
	})
}

// One handler that hangs delays neither the store nor another handler.
func TestAHandlerThatHangsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		notified := newReplicaHandler(t)
		var letGo []func()
		for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
			hangs, goOn := stalledReplica(t)
			r.handle(hangs, cache.HandlerOptions{Delivery: delivery})
			letGo = append(letGo, goOn)
		}
		r.handle(notified)
		r.run()
		began := time.Now()
		for i := range 3000 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		synctest.Wait()
		notified.assertEqualsStore(r.inf.Shared().GetStore())
		assert.Equal(t, "3001", r.inf.ResourceVersion())
		assert.Zero(t, time.Since(began))
		for _, goOn := range letGo {
			goOn()
		}
		r.stop()
	})
}
