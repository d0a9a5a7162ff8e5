package guarantees

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
)

// repairable is a store whose index function refuses a/x until it is repaired.
type repairable struct {
	cache.Indexer
	repaired atomic.Bool
}

func newRepairable() *repairable {
	s := &repairable{}
	s.Indexer = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"refusing": func(obj any) ([]string, error) {
		accessor, ok := obj.(metav1.Object)
		if !ok || accessor.GetName() == "x" && !s.repaired.Load() {
			return nil, errors.New("refused")
		}
		return nil, nil
	}})
	return s
}

func (s *repairable) snapshot() cache.Reader[any] {
	return s.Indexer.(cache.Snapshotter).Snapshot()
}

// reads are the ways to ask for a/x. Each returns true for an object, and the error of the read.
func (s *repairable) reads() map[string]func() (bool, error) {
	lister := cache.NewGenericLister(s.Indexer, schema.GroupResource{Resource: "pods"})
	return map[string]func() (bool, error){
		"GetByKey": func() (bool, error) {
			_, exists, err := s.GetByKey("a/x")
			return exists, err
		},
		"Get": func() (bool, error) {
			_, exists, err := s.Get(podAt("a", "x", "1"))
			return exists, err
		},
		"snapshot": func() (bool, error) {
			obj, err := s.snapshot().Get("a/x")
			return obj != nil, err
		},
		"lister": func() (bool, error) {
			obj, err := lister.ByNamespace("a").Get("x")
			return obj != nil, err
		},
	}
}

// G6: a key whose only state is quarantined does not read as "not found" while a write repairs it.
// Fails if the key is released before its object can be read, or if a reader does not look again.
func TestG6AQuarantinedKeyIsNeverNotFoundWhileAWriteRepairsIt(t *testing.T) {
	var list []any
	for i := range 5000 {
		list = append(list, podAt("b", itoa(i), "2"))
	}
	writes := map[string]func(s *repairable) error{
		"Update":  func(s *repairable) error { return s.Update(podAt("a", "x", "2")) },
		"Replace": func(s *repairable) error { return s.Replace(append([]any{podAt("a", "x", "2")}, list...), "2") },
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				s := newRepairable()
				require.Error(t, s.Add(podAt("a", "x", "1")))
				var wrong atomic.Int64
				var readers sync.WaitGroup
				end := make(chan struct{})
				for _, read := range s.reads() {
					readers.Go(func() {
						for running := true; running; {
							exists, err := read()
							if !exists && !errors.Is(err, cache.ErrQuarantined) {
								wrong.Add(1)
							}
							select {
							case <-end:
								running = false
							default:
							}
						}
					})
				}
				s.repaired.Store(true)
				must(t, write(s))
				close(end)
				readers.Wait()
				assert.Zero(t, wrong.Load(), "reads that said that the object does not exist")
			}
		})
	}
}

// G6: the same for a relist of a mirror, at whatever stage the object was refused: user functions that
// are called while the list is applied find it quarantined or repaired. Fails if the list releases the
// object before it is committed.
func TestG6AQuarantinedKeyIsNeverNotFoundWhileARelistRepairsIt(t *testing.T) {
	for stage, refuse := range objectFailures {
		if stage == stageKey {
			continue // then nothing is known under the key
		}
		for name, strategy := range strategies {
			t.Run(stage+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, bad(pod("a", "0")))
					var store cache.Store
					isRelist := false
					probes := 0
					probe := func() {
						if !isRelist {
							return
						}
						probes++
						_, exists, err := store.GetByKey("a/0")
						if !exists {
							require.ErrorIs(t, err, cache.ErrQuarantined)
						}
					}
					r := newRig(t, source, func(c *cache.Config) {
						c.ReflectorOptions.Strategy = strategy
						c.Transform = func(obj any) (any, error) {
							probe()
							return obj, nil
						}
						refuse(c, func(obj any) error {
							probe()
							if isBad(obj) {
								return errBoom
							}
							return nil
						})
						c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) { probe() }}
						store = c.Store
					})
					r.run()
					sleep(healthyTime)
					_, _, err := store.GetByKey("a/0")
					require.ErrorIs(t, err, cache.ErrQuarantined)

					// The repaired object is the first of the list.
					source.Silence()
					must(t, source.Apply(labelled(pod("a", "0"), "good")))
					for i := range 3 * partSize {
						must(t, source.Apply(pod("a", itoa(1+i))))
					}
					source.CompactAll()
					isRelist = true
					source.CloseWatches()
					source.Resume()
					sleep(time.Minute)
					r.assertEqualsSource()
					assert.GreaterOrEqual(t, probes, 3*partSize)
					r.stop()
				})
			})
		}
	}
}
