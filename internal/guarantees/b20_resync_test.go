package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// resyncTimes records the times of resyncs, in seconds since it was made.
type resyncTimes struct {
	began time.Time
	at    []float64
}

func (r *resyncTimes) OnAdd(any, bool) {}

func (r *resyncTimes) OnDelete(any) {}

func (r *resyncTimes) OnUpdate(old, obj any) {
	if old == obj {
		r.at = append(r.at, time.Since(r.began).Seconds())
	}
}

// every returns the multiples of a period, each twice because there are two objects.
func every(from, period, until float64) (at []float64) {
	for s := from + period; s <= until; s += period {
		at = append(at, s, s)
	}
	return at
}

// B20: every due handler is resynced at its time, with every object, whatever handlers are added
// and removed in between, and whatever the periods of others.
func TestB20EveryDueHandlerGetsItsResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), func(c *cache.InformerConfig[*object]) { c.ResyncPeriod = 7 * time.Second })
		add := func(period float64) (*resyncTimes, cache.ResourceEventHandlerRegistration) {
			times := &resyncTimes{began: time.Now()}
			of := time.Duration(period * float64(time.Second))
			return times, r.handle(times, cache.HandlerOptions{ResyncPeriod: &of})
		}
		byDefault := &resyncTimes{began: time.Now()}
		r.handle(byDefault)
		three, first := add(3)
		five, _ := add(5)
		never, _ := add(0)
		r.run()
		sleep(7500 * time.Millisecond)
		four, _ := add(4)
		same, _ := add(4)
		for range 50 { // handlers that are added and removed between two resyncs
			_, handle := add(1)
			must(t, r.inf.RemoveHandler(handle))
		}
		sleep(12500 * time.Millisecond) // 20 s
		must(t, r.inf.RemoveHandler(first))
		_, again := add(3)
		sleep(41 * time.Second) // 61 s
		must(t, r.inf.RemoveHandler(again))
		assert.Equal(t, every(0, 3, 20), three.at)
		assert.Equal(t, every(0, 5, 61), five.at)
		assert.Equal(t, every(0, 7, 61), byDefault.at)
		assert.Equal(t, every(0, 4, 53.5), four.at)
		assert.Equal(t, four.at, same.at)
		assert.Empty(t, never.at)
		r.stop()
	})
}

// B20: resyncs do not accumulate for a handler that is slower than its period: it is resynced once
// when it is free again, without objects that have pending changes.
func TestB20ASlowHandlersResyncsDoNotPileUp(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
				notified := newReplicaHandler(t)
				second := time.Second
				r.handle(notified, cache.HandlerOptions{ResyncPeriod: &second, Delivery: delivery})
				r.run()
				sleep(500 * time.Millisecond)
				notified.take()
				var hung bool
				notified.before = func(string) {
					if !hung {
						hung = true
						time.Sleep(10 * time.Second)
					}
				}
				must(t, r.source.Apply(labelled(pod("a", "1"), "x")))
				sleep(9 * time.Second)
				must(t, r.source.Apply(labelled(pod("a", "2"), "x")))
				sleep(1200 * time.Millisecond) // it is free at 10.5 s
				log := notified.take()
				assert.Equal(t, "update a/1@3", log[0])
				assert.ElementsMatch(t, []string{"update a/2@4", "resync a/1@3"}, log[1:])
				r.stop()
			})
		})
	}
}

// B20: a resync is due only after the handler has synced, since the initial list delivers all
// objects. Here the second of two pages takes a minute.
func TestB20NoHandlerIsResyncedBeforeItHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		source.OnList(func(o metav1.ListOptions) error {
			if o.Continue != "" {
				time.Sleep(59500 * time.Millisecond)
			}
			return nil
		})
		r := newInformerRig(t, source, func(c *cache.InformerConfig[*object]) { c.ReflectorOptions.PageSize = 1 })
		notified := newReplicaHandler(t)
		second := time.Second
		r.handle(notified, cache.HandlerOptions{ResyncPeriod: &second})
		r.run()
		sleep(59 * time.Second)
		assert.Equal(t, []string{"add a/1@1"}, notified.take())
		sleep(1500 * time.Millisecond)
		log := notified.take()
		assert.Equal(t, "add a/2@2", log[0])
		assert.ElementsMatch(t, []string{"resync a/1@1", "resync a/2@2"}, log[1:])
		r.stop()
	})
}

// B20: the objects of listed namespaces are resynced, however long another one is forbidden.
func TestB20AForbiddenNamespaceDoesNotHoldUpTheResyncOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, false, func(c *cache.Config) { c.FullResyncPeriod = time.Hour })
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.run()
		sleep(time.Minute)
		r.handler.take()
		sleep(time.Hour)
		assert.ElementsMatch(t, []string{"update a/1@1", "update a/2@2", "update c/1@1", "update c/2@2"}, r.handler.take())
		r.stop()
	})
}
