package guarantees

import (
	"context"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G2: the parts of an aborted first list are visible, so the next first list must not be older.
// Fails if only a committed version is remembered.
func TestG2AFirstListIsNotFollowedByAnOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(version string) metav1.PartialObjectMetadata {
			o := pod("a", "1")
			o.ResourceVersion, o.UID = version, "u"
			return *o
		}
		answers := []struct {
			version, token, object string
			err                    error
		}{
			{"10", "more", "10", nil}, {err: apierrors.NewForbidden(pods, "", errBoom)}, {"8", "", "8", nil}, {"12", "", "11", nil},
		}
		var asked []string
		source := &funcSource{
			list: func(o metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, o.ResourceVersion)
				answer := answers[len(asked)-1]
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: answer.version, Continue: answer.token},
					Items:    []metav1.PartialObjectMetadata{at(answer.object)},
				}, answer.err
			},
			watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(), nil },
		}
		h, notified := &errorRecorder{}, &recorder{}
		controller := cache.New(&cache.Config{
			ListerWatcher: source, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), Handler: notified,
			ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: h.handle},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); controller.RunWithContext(ctx) }()
		sleep(time.Minute)
		assert.Equal(t, []string{"0", "", "10", ""}, asked)
		assert.Equal(t, []cache.Cause{cache.CauseForbidden, causeRegression}, h.causes())
		assert.Equal(t, []string{"add a/1@10 initial", "update a/1@11"}, notified.take())
		assert.Equal(t, "12", controller.LastSyncResourceVersion())
		cancel()
		<-done
	})
}

// regressionObserver checks that one observer sees, for each key, states that the source had,
// each newer than the one before.
type regressionObserver struct {
	t    *testing.T
	mu   sync.Mutex
	had  map[string]bool // key@version that the source had
	last map[string]int
}

// write changes the source and records the new state before an observer can see it.
func (s *regressionObserver) write(source *cachetest.Source, obj *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NoError(s.t, source.Apply(obj))
	stored, err := source.Get(obj.Namespace, obj.Name)
	require.NoError(s.t, err)
	s.had[nameOf(stored)+"@"+receivedOf(stored).ResourceVersion] = true
}

func (s *regressionObserver) observe(obj any) {
	key, version := nameOf(obj), receivedOf(obj).ResourceVersion
	number, err := strconv.Atoi(version)
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.True(s.t, s.had[key+"@"+version], "%s@%s is a state that the source never had", key, version)
	assert.GreaterOrEqual(s.t, number, s.last[key], "%s went backwards", key)
	s.last[key] = number
}

// G2: unless the source itself regresses, no reader and no handler sees a key regress, or a state
// that the key never had. Fails if changes of a key are applied out of order.
func TestG2NoKeyRegresses(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkNoKeyRegresses(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func checkNoKeyRegresses(t *testing.T, random *rand.Rand) {
	source := newSource(t)
	handler := &regressionObserver{t: t, had: map[string]bool{}, last: map[string]int{}}
	reader := &regressionObserver{t: t, had: handler.had, last: map[string]int{}}
	r := newRig(t, source, func(c *cache.Config) {
		c.ReflectorOptions.PageSize = 5
		c.ReflectorOptions.Strategy = cache.ListStrategy(random.IntN(4))
		c.Handler = cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, _ bool) { handler.observe(obj) },
			UpdateFunc: func(_, obj any) { handler.observe(obj) },
		}
	})
	r.run()
	for i := range 600 {
		name := itoa(random.IntN(25))
		if random.IntN(5) == 0 {
			_, _ = source.Delete("a", name)
		} else {
			handler.write(source, labelled(pod("a", name), itoa(i)))
		}
		injectFault(source, random)
		if random.IntN(3) == 0 {
			sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		}
		for _, obj := range r.indexer.List() {
			reader.observe(obj)
		}
	}
	source.Heal()
	sleep(3 * time.Minute)
	r.assertEqualsSource()
	namespaced, err := r.indexer.ByIndex(cache.NamespaceIndex, "a")
	require.NoError(t, err)
	assert.Len(t, namespaced, len(source.Objects()))
	r.stop()
}

// fixedMirrors quarantine an object in a store, in a store behind a queue, in a queue, or in
// a queue's consumer.
var fixedMirrors = map[string]func(*testing.T, *fixedSource) *fixedMirror{
	"a store": func(t *testing.T, source *fixedSource) *fixedMirror {
		h, indexer := &errorRecorder{}, cache.NewIndexer(cache.MetaNamespaceKeyFunc, failingIndex)
		r := cache.NewReflectorWithOptions(source, &object{}, indexer, fixedOptions(h))
		return &fixedMirror{h, r.Status, func() map[string]string { return contents(indexer) }, runReflector(t, r)}
	},
	"an informer's store": func(t *testing.T, source *fixedSource) *fixedMirror {
		return fixedInformer(t, source, func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"fails": func(obj *object) ([]string, error) { return nil, failIfBad(obj) }}
		})
	},
	"an informer's queue": func(t *testing.T, source *fixedSource) *fixedMirror {
		return fixedInformer(t, source, func(c *cache.InformerConfig[*object]) {
			c.Transform = func(obj *object) (*object, error) { return obj, failIfBad(obj) }
		})
	},
	"a controller's store": func(t *testing.T, source *fixedSource) *fixedMirror {
		return runFixed(newRig(t, newSource(t), func(c *cache.Config) {
			c.ListerWatcher = source
			require.NoError(t, c.Store.(cache.Indexer).AddIndexers(failingIndex))
		}))
	},
	"a Process": func(t *testing.T, source *fixedSource) *fixedMirror {
		r := refusingRigs["a Process"](t, newSource(t), func(c *cache.Config) { c.ListerWatcher = source })
		return runFixed(r)
	},
}

var failingIndex = cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }}

func runFixed(r *rig) *fixedMirror {
	r.run()
	synctest.Wait()
	return &fixedMirror{r.errors, r.status, r.versions, r.stop}
}

// G2, G11, B15: an event older than the stored state of its object is a regression, also while a
// newer state, or one without a version, is quarantined. Fails if objects with a quarantined state
// are not compared, or if a state without a version counts as the oldest: then the store regresses
// without a report.
func TestG2AnEventOlderThanTheShownStateIsRefusedWhileAnotherStateIsQuarantined(t *testing.T) {
	for name, mirrorOf := range fixedMirrors {
		for quarantined, newest := range map[string]string{"11": "11", "": "10"} {
			t.Run(fmt.Sprintf("%s, version %q", name, quarantined), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newFixedSource(podAt("a", "1", "10"), podAt("a", "1", "12"))
					m := mirrorOf(t, source)
					source.send(bad(podAt("a", "1", quarantined)))
					require.Equal(t, map[string]string{"a/1": quarantined}, m.quarantine())
					source.send(podAt("a", "1", "7"))
					assert.Equal(t, []cache.VersionRegressionError{{Kind: "event", Key: "a/1", Current: newest, Received: "7"}}, m.regressions())
					assert.Equal(t, map[string]string{"a/1": "10"}, m.versions())
					assert.Equal(t, map[string]string{"a/1": quarantined}, m.quarantine())
					assert.Equal(t, newest, m.status().AppliedVersion)
					sleep(time.Minute)
					assert.Equal(t, []string{"0", ""}, source.requestedVersions)
					assert.Equal(t, map[string]string{"a/1": "12"}, m.versions())
					assert.Empty(t, m.quarantine())
					m.stop()
				})
			})
		}
	}
}

// G2, G11: if a source was silently restored to a bad state of an object, the mirror keeps the state
// from before the restore. An event between the two is newer than the quarantined state, and applied.
// Fails if it is only compared with the stored state: then all events are refused until the object
// passes its old version.
func TestG2AnEventBetweenAQuarantinedRestoredStateAndTheShownOneIsApplied(t *testing.T) {
	for name, mirrorOf := range fixedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newFixedSource(podAt("a", "1", "10"), bad(podAt("a", "1", "5")))
				m := mirrorOf(t, source)
				source.open.events <- errorEvent(cachetest.ErrExpired())
				sleep(time.Minute)
				require.Equal(t, []string{"0", "10", ""}, source.requestedVersions)
				reported := []cache.VersionRegressionError{{Kind: "list", Current: "10", Received: "5"}}
				require.Equal(t, reported, m.regressions())
				require.Equal(t, map[string]string{"a/1": "5"}, m.quarantine())
				require.Equal(t, map[string]string{"a/1": "10"}, m.versions())
				source.send(podAt("a", "1", "7"))
				assert.Equal(t, map[string]string{"a/1": "7"}, m.versions())
				assert.Empty(t, m.quarantine())
				assert.Equal(t, reported, m.regressions())
				assert.Equal(t, "7", m.status().AppliedVersion)
				sleep(time.Minute)
				assert.Len(t, source.requestedVersions, 3, "nothing is listed because of it")
				m.stop()
			})
		})
	}
}

// exclusiveHandler is a handler that fails the test if it is called concurrently, if the
// store changes during a call, or if a key regresses.
type exclusiveHandler struct {
	*testing.T
	store  cache.Store
	random *rand.Rand

	running atomic.Int32
	calls   int
	newest  map[string]string
}

func (h *exclusiveHandler) handle(key, version string) {
	assert.EqualValues(h, 1, h.running.Add(1), "calls at once")
	defer h.running.Add(-1)
	time.Sleep(time.Duration(h.random.IntN(1000)) * time.Millisecond)
	h.calls++
	if version != "" {
		assert.False(h, versionBefore(version, h.newest[key]), "%s regresses from %s to %s", key, h.newest[key], version)
		h.newest[key] = version
	}
}

func (h *exclusiveHandler) OnAdd(obj any, _ bool) {
	h.handle(nameOf(obj), receivedOf(obj).ResourceVersion)
}

func (h *exclusiveHandler) OnUpdate(_, newObj any) {
	h.handle(nameOf(newObj), receivedOf(newObj).ResourceVersion)
}

func (h *exclusiveHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.handle(tombstone.Key, "")
		return
	}
	h.handle(nameOf(obj), receivedOf(obj).ResourceVersion)
}

// G2: one handler for all namespaces is never called concurrently, and in each key's order.
func TestG2AHandlerOfSeveralNamespacesIsNeverCalledConcurrently(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			h := &exclusiveHandler{T: t, random: rand.New(rand.NewPCG(seed, 1)), newest: map[string]string{}}
			r := newNamespaceRig(t, false, func(c *cache.Config) {
				h.store = c.Store
				c.Handler = h
			})
			r.run()
			for range 200 {
				namespace := []string{"a", "b", "c"}[random.IntN(3)]
				source := r.sources[namespace]
				switch name := itoa(random.IntN(4)); random.IntN(12) {
				case 0, 1:
					_, _ = source.Delete(namespace, name)
				case 2:
					_, _ = source.DeleteSilently(namespace, name)
				case 3:
					source.BreakWatches(cachetest.ErrExpired())
				default:
					r.apply(labelled(pod(namespace, name), itoa(random.IntN(100))))
				}
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			}
			for _, source := range r.sources {
				source.BreakWatches(cachetest.ErrExpired())
			}
			sleep(10 * time.Minute)
			r.assertEqualsSources("a", "b", "c")
			assert.Greater(t, h.calls, 100)
			r.stop()
		})
	}
}

// A busy namespace does not delay the changes of another.
func TestABusyNamespaceDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notified []string
		r := newNamespaceRig(t, false, func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
				time.Sleep(time.Second)
				notified = append(notified, obj.(*object).Namespace)
			}}
		})
		r.run()
		synctest.Wait()
		for i := range 100 {
			r.apply(labelled(pod("a", "1"), itoa(i)))
			if i == 50 {
				r.apply(labelled(pod("b", "1"), "x"))
			}
			time.Sleep(100 * time.Millisecond)
		}
		sleep(time.Hour)
		at := slices.Index(notified, "b")
		require.NotEqual(t, -1, at)
		assert.Less(t, at, 60, "at most the two batches that a had pending come first")
		r.stop()
	})
}
