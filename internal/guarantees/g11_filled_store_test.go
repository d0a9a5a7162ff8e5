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
