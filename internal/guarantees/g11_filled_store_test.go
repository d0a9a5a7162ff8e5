package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// G11: a second reflector of a filled store asks for no older state than the store has, and reports
// one that is older. Fails if it begins like the reflector of an empty store.
func TestG11AReflectorOfAFilledStoreStartsFromItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		first := cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{})
		stop := runReflector(t, first)
		synctest.Wait()
		stop()
		version := store.LastStoreSyncResourceVersion()

		older := newSource(t, pod("a", "1")) // a copy of the source from before the second object
		var asked []string
		older.OnList(func(o metav1.ListOptions) error {
			asked = append(asked, o.ResourceVersion)
			return nil
		})
		errors := &errorRecorder{}
		options := cache.ReflectorOptions{ErrorHandler: errors.handle, Strategy: cache.ListUnpaged}
		second := cache.NewReflectorWithOptions(older, &object{}, store, options)
		stop = runReflector(t, second)
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		assert.Equal(t, version, asked[0])
		assert.Positive(t, errors.count(causeRegression)+errors.count(cache.CauseVersionTooLarge), "%v", errors.causes())
	})
}

// G11: the same for a reflector whose queue is consumed into a filled store. Fails if only the store
// of a reflector is asked for its version, and not the KnownObjects of a queue.
func TestG11AReflectorOfAQueueStartsFromTheVersionOfTheConsumersStore(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				older := newSource(t, pod("a", "1"))
				r := processRig(t, older, func(c *cache.Config, _ *cache.DeltaFIFO, consumed cache.Indexer) {
					c.ReflectorOptions.Strategy = strategy
					must(t, consumed.Replace([]any{podAt("a", "1", "90")}, "100"))
				})
				r.run()
				time.Sleep(time.Minute)
				synctest.Wait()
				asked := older.Requests()[0].Options.ResourceVersion
				r.stop()
				assert.Equal(t, "100", asked)
				reported := r.errors.count(causeRegression) + r.errors.count(cache.CauseVersionTooLarge)
				assert.Positive(t, reported, "%v", r.errors.causes())
				assert.Equal(t, "1", r.indexer.LastStoreSyncResourceVersion())
			})
		})
	}
}
