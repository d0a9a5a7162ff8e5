package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// values is what a recordedMetrics recorded of one run.
type values = map[string][]float64

func TestAFirstListInPagesIsOneListForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 5), newRecordedMetrics(t)
		defer source.Close()
		source.DelayLists(2 * time.Second)
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: 2, MetricsProvider: metrics})
		pass(0)
		assert.Equal(t, values{"lists": {1}}, metrics.take("r"), "a list is counted when it begins")
		pass(time.Minute)
		assert.Equal(t, values{"list seconds": {6}, "list items": {5}, "version": {5}, "watches": {1}}, metrics.take("r"))
		stop()
		assert.Equal(t, values{"watch seconds": {54}, "watch items": {0}}, metrics.take("r"), "one that is stopped has an end")
	})
}

func TestAStreamingListIsAWatchForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListStreaming, MetricsProvider: metrics})
		pass(5 * time.Second)
		assert.Equal(t, values{"watches": {1}, "version": {3}}, metrics.take("r"))
		require.NoError(t, source.Apply(meteredPod(3)))
		pass(2 * time.Second)
		stop()
		assert.Equal(t, values{
			"version": {4}, "watch seconds": {7}, "watch items": {5}, // 3, their bookmark, and 1
		}, metrics.take("r"))
	})
}

func TestTheEventsOfAWatchAreCountedForMetrics(t *testing.T) {
	for _, direct := range []bool{false, true} { // by a store and by an informer, which takes several at once
		t.Run(fmt.Sprint(direct), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, metrics := meteredSource(t, 1), newRecordedMetrics(t)
				defer source.Close()
				options := cache.ReflectorOptions{
					Name: "r", Strategy: cache.ListWhole, MetricsProvider: metrics,
					ErrorHandler: func(context.Context, *cache.Reflector, error) {},
				}
				var stop func()
				if direct {
					stop = startMetered(cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{},
						cache.SharedIndexInformerOptions{ReflectorOptions: options}).RunWithContext)
				} else {
					stop = runMetered(t, source, options)
				}
				pass(0)
				assert.Equal(t, values{
					"lists": {1}, "list seconds": {0}, "list items": {1}, "watches": {1}, "version": {1},
				}, metrics.take("r"))
				for n := range 100 {
					require.NoError(t, source.Apply(meteredPod(n+1)))
				}
				_, err := source.Delete("a", "1")
				require.NoError(t, err)
				pass(30 * time.Second)
				source.BreakWatches(cachetest.ErrInternal()) // an error event is none of them
				synctest.Wait()
				said := metrics.take("r")
				assert.Equal(t, []float64{30}, said["watch seconds"])
				assert.Equal(t, []float64{101}, said["watch items"])
				assert.Equal(t, float64(102), said["version"][len(said["version"])-1])
				assert.NotContains(t, said, "short watches")
				assert.NotContains(t, said, "lists")
				stop()
			})
		})
	}
}

func TestAWatchThatIsClosedAtOnceIsAShortOneForMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		strategy cache.ListStrategy
		script   func(*cachetest.Source)
		want     values
	}{
		"a watch": {cache.ListWhole, func(s *cachetest.Source) { s.CloseNextWatches(1, 0) },
			values{"watches": {1}, "short watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a stream": {cache.ListStreaming, func(s *cachetest.Source) { s.CloseNextWatches(1, 0) },
			values{"watches": {1}, "short watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a stream with an event": {cache.ListStreaming, func(s *cachetest.Source) { s.CloseNextWatches(1, 1) },
			values{"watches": {1}, "watch seconds": {0}, "watch items": {1}}},
		"a stream with an error": {cache.ListStreaming, func(s *cachetest.Source) { s.BreakNextWatches(1, 0, nil) },
			values{"watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a watch with an error": {cache.ListWhole, func(s *cachetest.Source) { s.BreakNextWatches(1, 0, nil) },
			values{"watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a watch that is refused": {cache.ListWhole, func(s *cachetest.Source) { s.FailWatches(1, cachetest.ErrInternal()) },
			values{"watches": {1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, metrics := meteredSource(t, 1), newRecordedMetrics(t)
				defer source.Close()
				c.script(source)
				stop := runMetered(t, source, cache.ReflectorOptions{Strategy: c.strategy, MetricsProvider: metrics})
				defer stop()
				synctest.Wait()
				said := metrics.take("r")
				for _, kind := range []string{"lists", "list seconds", "list items", "version"} {
					delete(said, kind)
				}
				assert.Equal(t, c.want, said)
			})
		})
	}
}

func TestAWatchThatLivesASecondIsNoShortOneForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 1), newRecordedMetrics(t)
		defer source.Close()
		source.DelayWatches(time.Hour)
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListWhole, MetricsProvider: metrics, MinWatchTimeout: 2 * time.Hour})
		pass(time.Hour)
		metrics.take("r")
		pass(time.Second)
		source.CloseWatches()
		synctest.Wait()
		assert.Equal(t, values{"watch seconds": {1}, "watch items": {0}}, metrics.take("r"), "it is open from its answer on")
		stop()
	})
}

func TestAFailedListAndARelistAreListsForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 2), newRecordedMetrics(t)
		defer source.Close()
		source.FailLists(1, cachetest.ErrInternal())
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListWhole, MetricsProvider: metrics})
		synctest.Wait()
		assert.Equal(t, values{"lists": {1}}, metrics.take("r"))
		pass(10 * time.Second)
		assert.Equal(t, values{
			"lists": {1}, "list seconds": {0}, "list items": {2}, "version": {2}, "watches": {1},
		}, metrics.take("r"))

		source.BreakWatches(cachetest.ErrExpired())
		pass(30 * time.Second)
		said := metrics.take("r")
		assert.Equal(t, []float64{1}, said["lists"])
		assert.Equal(t, []float64{2}, said["list items"])
		assert.Equal(t, []float64{1}, said["watches"])
		assert.Equal(t, []float64{0}, said["watch items"])
		stop()
	})
}

// A list whose continue token expires is followed by a whole one.
func TestAListWhoseTokenExpiresIsTwoListsForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 5), newRecordedMetrics(t)
		defer source.Close()
		source.OnList(func(options metav1.ListOptions) error {
			if options.Continue != "" {
				return cachetest.ErrExpired()
			}
			return nil
		})
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: 2, MetricsProvider: metrics})
		pass(10 * time.Second)
		assert.Equal(t, values{
			"lists": {1, 1}, "list seconds": {0}, "list items": {5}, "version": {5}, "watches": {1},
		}, metrics.take("r"))
		stop()
	})
}

// Of a long version the digits that a float64 holds are shown, as client-go's stores show it.
func TestTheLastVersionIsShownAsANumber(t *testing.T) {
	for version, want := range map[string][]float64{
		"17":                  {17},
		"999999999999999":     {999999999999999},
		"1000000000000001":    {1},
		"1234567890123456789": {567890123456789},
		"1e5":                 nil,
		"0x10":                nil,
		"-5":                  nil,
		"NaN":                 nil,
		"etag":                nil,
	} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := newRecordedMetrics(t)
				source := &cache.ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
				}
				stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListWhole, MetricsProvider: metrics})
				synctest.Wait()
				assert.Equal(t, want, metrics.take("r")["version"])
				stop()
			})
		})
	}
}

// A second run has instruments of its own, which show the version that it goes on from.
func TestEachRunHasInstrumentsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		reflector := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Name: "r", Strategy: cache.ListWhole, MetricsProvider: releasingMetrics{metrics},
		})
		_, made := metrics.inUse()
		assert.Zero(t, made, "none before a run")
		stop := startMetered(reflector.RunWithContext)
		synctest.Wait()
		reflector.RunWithContext(t.Context()) // is refused
		live, made := metrics.inUse()
		assert.Equal(t, 1, live)
		assert.Equal(t, 8, made)
		stop()
		live, _ = metrics.inUse()
		assert.Zero(t, live, "released")
		metrics.take("r")

		source.FailLists(cachetest.Forever, cachetest.ErrInternal())
		require.Error(t, reflector.ListAndWatchWithContext(t.Context()))
		assert.Equal(t, values{"version": {3}, "lists": {1}}, metrics.take("r"))
		live, made = metrics.inUse()
		assert.Zero(t, live)
		assert.Equal(t, 16, made)
	})
}

// Of two reflectors with one name each has a run: what they share may only be removed with the
// last of them.
func TestTwoReflectorsOfOneNameAreReleasedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 1), newRecordedMetrics(t)
		defer source.Close()
		options := cache.ReflectorOptions{Strategy: cache.ListWhole, MetricsProvider: releasingMetrics{metrics}}
		first, second := runMetered(t, source, options), runMetered(t, source, options)
		synctest.Wait()
		assert.Equal(t, []float64{1, 1}, metrics.take("r")["lists"])
		first()
		live, _ := metrics.inUse()
		assert.Equal(t, 1, live)
		require.NoError(t, source.Apply(meteredPod(1)))
		synctest.Wait()
		assert.Equal(t, []float64{2}, metrics.take("r")["version"], "the other goes on")
		second()
		live, _ = metrics.inUse()
		assert.Zero(t, live)
	})
}

// Controllers and typed informers pass the provider on to their reflectors.
func TestEveryKindOfMirrorHasMetricsOfItsReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, source := newRecordedMetrics(t), meteredSource(t, 2)
		defer source.Close()
		options := func(name string) cache.ReflectorOptions {
			return cache.ReflectorOptions{Name: name, Strategy: cache.ListWhole, MetricsProvider: releasingMetrics{metrics}}
		}
		_, plain := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ReflectorOptions: options("plain")})
		typed := cache.NewInformerFor(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: options("typed")})
		stops := []func(){
			startMetered(plain.RunWithContext),
			startMetered(func(ctx context.Context) { _ = typed.Run(ctx) }),
			startMetered(cache.New(&cache.Config{
				ListerWatcher: source, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: options("controller"),
			}).RunWithContext),
			startMetered(cache.New(&cache.Config{
				Namespaces: map[string]cache.ListerWatcher{"a": source.Namespace("a"), "b": source.Namespace("b")},
				Store:      cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: options("namespaces"),
			}).RunWithContext),
		}
		synctest.Wait()
		for name, items := range map[string]float64{"plain": 2, "typed": 2, "controller": 2, "namespaces/a": 2, "namespaces/b": 0} {
			assert.Equal(t, values{
				"lists": {1}, "list seconds": {0}, "list items": {items}, "version": {2}, "watches": {1},
			}, metrics.take(name), name)
		}
		for _, stop := range stops {
			stop()
		}
		live, made := metrics.inUse()
		assert.Zero(t, live)
		assert.Equal(t, 40, made)
	})
}

// sparseMetrics leaves out all instruments, or panics in place of the last one.
type sparseMetrics struct {
	releasingMetrics
	panics bool
}

func (m sparseMetrics) NewListsMetric(name string) cache.CounterMetric {
	if m.panics {
		return m.releasingMetrics.NewListsMetric(name)
	}
	return nil
}
func (m sparseMetrics) NewListDurationMetric(string) cache.SummaryMetric  { return nil }
func (m sparseMetrics) NewItemsInListMetric(string) cache.SummaryMetric   { return nil }
func (m sparseMetrics) NewWatchesMetric(string) cache.CounterMetric       { return nil }
func (m sparseMetrics) NewShortWatchesMetric(string) cache.CounterMetric  { return nil }
func (m sparseMetrics) NewWatchDurationMetric(string) cache.SummaryMetric { return nil }
func (m sparseMetrics) NewItemsInWatchMetric(string) cache.SummaryMetric  { return nil }
func (m sparseMetrics) NewLastResourceVersionMetric(string) cache.GaugeMetric {
	if m.panics {
		panic("no more")
	}
	return nil
}
func (m sparseMetrics) ReleaseReflectorMetrics(name string) {
	if m.panics {
		m.release(name)
	}
}

func TestInstrumentsMayBeLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 1), sparseMetrics{releasingMetrics: releasingMetrics{newRecordedMetrics(t)}}
		defer source.Close()
		source.CloseNextWatches(1, 0)
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListWhole, MetricsProvider: metrics})
		pass(time.Minute)
		require.NoError(t, source.Apply(meteredPod(1)))
		synctest.Wait()
		stop()
		assert.Len(t, source.Requests(), 3)
	})
}

// What a provider made before it panicked is released, and the reflector can run again.
func TestAProviderThatPanicsIsReleased(t *testing.T) {
	metrics := sparseMetrics{releasingMetrics{newRecordedMetrics(t)}, true}
	source := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("down") }}
	reflector := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{MetricsProvider: metrics})
	for range 2 {
		require.PanicsWithValue(t, "no more", func() { reflector.RunWithContext(t.Context()) })
		live, _ := metrics.inUse()
		assert.Zero(t, live)
	}
}

// Reflectors come and go in a program that watches what its users name: their instruments must
// not stay.
func TestTenThousandRunsLeaveNoInstrument(t *testing.T) {
	const runs = 10_000
	metrics := newRecordedMetrics(t)
	for n := range runs {
		name := fmt.Sprint("leaves none ", n%(runs/2)) // each name comes twice
		informerName, err := cache.NewInformerName(name)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		source := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			cancel()
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		}}
		cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
			Identifier: informerName.WithResource(podsResource), InformerMetricsProvider: releasingMetrics{metrics},
			ReflectorOptions: cache.ReflectorOptions{Name: name + " r", MetricsProvider: releasingMetrics{metrics}},
		}).RunWithContext(ctx)
		informerName.Release()
	}
	live, made := metrics.inUse()
	assert.Zero(t, live)
	assert.Equal(t, runs*11, made)
}
