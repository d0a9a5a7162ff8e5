package guarantees

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// versionHistory has the resource versions of each key over time, "" while it was absent.
type versionHistory map[string][]string

func (p versionHistory) note(key, version string) { p[key] = append(p[key], version) }

// requireSince fails the test if a key of the informer has a state that is older than the
// last one counted in counts.
func (p versionHistory) requireSince(t *testing.T, informer *cache.Informer[*object], counts map[string]int, seed uint64) {
	t.Helper()
	for key, versions := range p {
		version := ""
		if obj, err := informer.Get(key); err == nil {
			version = obj.GetResourceVersion()
		}
		require.Contains(t, versions[max(0, counts[key]-1):], version, "seed %d: %s has had %v, %d of them before the call",
			seed, key, versions, counts[key])
	}
}

func (p versionHistory) counts() map[string]int {
	counts := map[string]int{}
	for key, versions := range p {
		counts[key] = len(versions)
	}
	return counts
}

// freshSimulation has a source that changes and fails at random, and an informer of it.
type freshSimulation struct {
	t        *testing.T
	random   *rand.Rand
	source   *cachetest.Source
	informer *cache.Informer[*object]
	states   versionHistory
	server   *cachetest.Server // nil if the informer reads the source itself
}

func (w *freshSimulation) write() {
	name := fmt.Sprint(w.random.IntN(6))
	key := "a/" + name
	if w.random.IntN(3) > 0 {
		require.NoError(w.t, w.source.Apply(pod("a", name)))
		w.states.note(key, w.source.ResourceVersion())
	} else if _, err := w.source.Delete("a", name); err == nil {
		w.states.note(key, "")
	}
}

func (w *freshSimulation) step() {
	kinds := 12
	if w.server != nil {
		kinds = 15
	}
	switch w.random.IntN(kinds) {
	case 0, 1, 2, 3:
		w.write()
	case 4:
		w.source.Advance(uint64(1 + w.random.IntN(20)))
	case 5:
		w.source.CloseWatches()
	case 6:
		w.source.DelayEvents(time.Duration(w.random.IntN(300)) * time.Millisecond)
	case 7:
		w.source.DelayLists(time.Duration(w.random.IntN(300)) * time.Millisecond)
	case 8:
		w.source.CompactAll()
	case 9:
		w.source.FailRequests(1, cachetest.ErrTooManyRequests(1))
	case 10:
		w.source.BreakWatches(cachetest.ErrInternal())
	case 11:
		time.Sleep(time.Duration(w.random.IntN(2000)) * time.Millisecond)
	case 12:
		w.server.Listener.CutConnections()
	case 13:
		w.server.Listener.CutNext(1, w.random.IntN(2000))
	case 14:
		w.server.Listener.Freeze()
		time.Sleep(time.Duration(w.random.IntN(500)) * time.Millisecond)
		w.server.Listener.Thaw()
	}
}

// heal ends all faults.
func (w *freshSimulation) heal() {
	w.source.Heal()
	w.source.DelayEvents(0)
	w.source.DelayLists(0)
	if w.server != nil {
		w.server.Listener.Heal()
	}
}

// ways are the ways in which an informer of a freshSimulation reads its source.
var ways = map[string]bool{"directly": false, "over HTTP": true}

func newFreshSimulation(t *testing.T, seed uint64, overHTTP bool) *freshSimulation {
	w := &freshSimulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), source: newSource(t), states: versionHistory{}}
	for i := range 6 {
		w.states.note(fmt.Sprint("a/", i), "")
	}
	source := cache.Source(w.source)
	if overHTTP {
		w.server = cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
			Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: w.source}},
		}))
		t.Cleanup(w.server.Close)
		api, err := kubeapi.New(kubeapi.Options{
			BaseURL: w.server.URL, Resource: podResource, HTTPClient: w.server.Client(), ObjectType: &object{},
		})
		require.NoError(t, err)
		source = api
	}
	w.informer = runInformer(t, source, cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{
		ErrorHandler: func(context.Context, *cache.Reflector, error) {},
	}})
	return w
}

// seeds returns the number of random scripts of a test.
func seeds(many int) int {
	if testing.Short() {
		return many / 10
	}
	return many
}

func TestFreshNeverMissesAnEarlierCommit(t *testing.T) {
	for way, overHTTP := range ways {
		t.Run(way, func(t *testing.T) { freshMissesNoCommit(t, overHTTP) })
	}
}

func freshMissesNoCommit(t *testing.T, overHTTP bool) {
	returned := 0
	for seed := range uint64(seeds(300)) {
		synctest.Test(t, func(t *testing.T) {
			w := newFreshSimulation(t, seed, overHTTP)
			for range 25 {
				for range w.random.IntN(4) {
					w.step()
				}
				counts := w.states.counts()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				over := make(chan error, 1)
				go func() { over <- w.informer.Fresh(ctx) }()
				for range w.random.IntN(3) {
					w.step()
				}
				if err := <-over; err == nil {
					returned++
					w.states.requireSince(t, w.informer, counts, seed)
				}
				cancel()
			}
		})
	}
	assert.Greater(t, returned, seeds(300)*10, "most calls return")
}

func TestVerifyFindsEachPlantedDifferenceAndNoOther(t *testing.T) {
	for way, overHTTP := range ways {
		t.Run(way, func(t *testing.T) { verifyFindsPlantedDifferences(t, overHTTP) })
	}
}

func verifyFindsPlantedDifferences(t *testing.T, overHTTP bool) {
	for seed := range uint64(seeds(300)) {
		synctest.Test(t, func(t *testing.T) {
			w := newFreshSimulation(t, seed, overHTTP)
			store := w.informer.Shared().GetStore()
			for range 10 {
				for range w.random.IntN(5) {
					w.step()
				}
				var found *cache.DivergenceError
				over := make(chan error, 1)
				go func() { over <- w.informer.Verify(t.Context()) }()
				for range w.random.IntN(3) {
					w.step()
				}
				require.False(t, errors.As(<-over, &found), "seed %d: %v", seed, found)

				w.heal()
				time.Sleep(time.Minute)
				synctest.Wait()
				objects, err := w.informer.List(labels.Everything())
				require.NoError(t, err)
				if len(objects) == 0 {
					continue
				}
				lost := objects[w.random.IntN(len(objects))]
				key := lost.GetNamespace() + "/" + lost.GetName()
				expected := cache.DivergenceError{Name: w.informer.Status().Name}
				switch w.random.IntN(3) {
				case 0:
					require.NoError(t, store.Delete(lost))
					expected.Missing = []string{key}
				case 1:
					old := lost.DeepCopy()
					old.SetResourceVersion("1")
					require.NoError(t, store.Update(old))
					expected.Outdated = []string{key}
				case 2:
					_, err := w.source.DeleteSilently(lost.GetNamespace(), lost.GetName())
					require.NoError(t, err)
					w.states.note(key, "")
					w.source.Advance(1)
					time.Sleep(2 * time.Minute) // a bookmark moves the store past the deletion
					expected.Extra = []string{key}
				}
				err = w.informer.Verify(t.Context())
				require.ErrorAs(t, err, &found, "seed %d: planted %v", seed, expected)
				require.Equal(t, expected, *found, "seed %d", seed)
				require.NoError(t, w.informer.Verify(t.Context()), "seed %d: it was repaired", seed)
			}
		})
	}
}
