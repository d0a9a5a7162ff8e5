package guarantees

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// B8: a relist of 100,000 unchanged objects delivers nothing; resyncs still happen at their times.
// Fails if unchanged objects are delivered, or if resyncs depend on lists.
func TestB8ARelistOfUnchangedObjectsDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := sampleOf(100_000)
		source := newBulkSource(objects)
		r := newBulkRig(t, source)
		notified, resynced := &countingHandler{}, &countingHandler{}
		period := 10 * time.Minute
		r.handle(notified)
		r.handle(resynced, cache.HandlerOptions{ResyncPeriod: &period})
		r.run()
		for range 3 {
			sleep(time.Minute)
			source.events <- errorEvent(cachetest.ErrExpired())
		}
		sleep(time.Minute)
		assert.Equal(t, 4, source.lists)
		assert.Equal(t, callCounts{adds: objects}, notified.count(callCounts{}))
		assert.Equal(t, callCounts{adds: objects}, resynced.count(callCounts{}))
		sleep(7 * time.Minute)
		assert.Equal(t, callCounts{adds: objects}, notified.count(callCounts{}))
		assert.Equal(t, callCounts{adds: objects, updates: objects}, resynced.count(callCounts{}))

		source.change(7)
		source.events <- errorEvent(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, callCounts{adds: objects, updates: 1}, notified.count(callCounts{}), "a changed object is delivered")
		r.cancel()
		<-r.done
	})
}

// B8: the same for each list strategy.
func TestB8NoListStrategyDeliversUnchangedObjects(t *testing.T) {
	for strategy := range cache.ListStrategy(4) {
		t.Run(fmt.Sprint(strategy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, filledSource(t, 300), func(c *cache.InformerConfig[*object]) {
					c.ReflectorOptions.Strategy, c.ReflectorOptions.PageSize = strategy, 100
				})
				notified := newReplicaHandler(t)
				r.handle(notified)
				r.run()
				synctest.Wait()
				watches := r.source.WatchCalls()
				notified.take()
				_, err := r.source.DeleteSilently("a", "5")
				must(t, err, r.source.Apply(pod("a", "new")))
				sleep(time.Second)
				r.source.CompactAll()
				r.source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Greater(t, r.source.WatchCalls(), watches)
				assert.Equal(t, []string{"add a/new@302", "tombstone a/5"}, notified.take())
				r.stop()
			})
		})
	}
}
