package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// slowFunction is a function of the user's that takes a second, once it is turned on; it
// counts its calls from then on, and tells nobody of the context.
type slowFunction struct {
	on    bool
	calls int
}

func (s *slowFunction) call() {
	if s.on {
		s.calls++
		time.Sleep(time.Second)
	}
}

func (s *slowFunction) index() Indexers {
	return Indexers{"slow": func(any) ([]string, error) { s.call(); return nil, nil }}
}

func (s *slowFunction) transform(obj any) (any, error) { s.call(); return obj, nil }

// stopped is what a test of the end of a run has of a mirror: how to end it, which waits,
// and what its handler was told or, where there is none, its store.
type stopped struct {
	stop  func()
	told  *recorder
	store Store
}

// stoppedMirrors call slow for each object: where a list's part is taken, where a batch is
// applied, or where a queue is filled.
var stoppedMirrors = map[string]func(*testing.T, *cachetest.Source, *slowFunction) stopped{
	"a reflector's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		indexer := NewIndexer(MetaNamespaceKeyFunc, slow.index())
		return startReflector(t, source, indexer)
	},
	"a reflector's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil, WithTransformer(slow.transform))
		return startReflector(t, source, indexer)
	},
	"a controller's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		r := newRig(t, source, func(c *Config) { c.Store = NewIndexer(MetaNamespaceKeyFunc, slow.index()) })
		r.run()
		return stopped{stop: func() { r.cancel(); <-r.done }, told: r.handler}
	},
	"a controller's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		r := newRig(t, source, func(c *Config) { c.Transform = slow.transform })
		r.run()
		return stopped{stop: func() { r.cancel(); <-r.done }, told: r.handler}
	},
	"an informer's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		return startInformer(t, source, func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"slow": func(*object) ([]string, error) { slow.call(); return nil, nil }}
		})
	},
	"an informer's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stopped {
		return startInformer(t, source, func(c *InformerConfig[*object]) {
			c.Transform = func(obj *object) (*object, error) { slow.call(); return obj, nil }
		})
	},
}

func startReflector(t *testing.T, source *cachetest.Source, store Store) stopped {
	r := NewReflectorWithOptions(source, &object{}, store, ReflectorOptions{Strategy: ListWhole})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	return stopped{stop: func() { cancel(); <-done }, store: store}
}

func startInformer(t *testing.T, source *cachetest.Source, change func(*InformerConfig[*object])) stopped {
	r := newInformerRig(t, source, change)
	told := &recorder{}
	r.handle(told)
	r.run()
	return stopped{stop: func() { r.cancel(); <-r.done }, told: told}
}

// hundred are a hundred objects, in the state that is given.
func hundred(state string) (objects []*object) {
	for i := range 100 {
		objects = append(objects, labelled(pod("a", itoa(i)), state))
	}
	return objects
}

func applyAll(t *testing.T, source *cachetest.Source, objects []*object) {
	t.Helper()
	for _, obj := range objects {
		require.NoError(t, source.Apply(obj))
	}
}

// G9: when the context ends in the middle of a function of the user's, Run waits for that
// call, and calls neither it nor any other for the objects that are left of the list. Fails
// if what was begun with a hundred objects is ended with a hundred.
func TestG9NoFunctionIsCalledForTheRestOfAListAfterTheContextEnded(t *testing.T) {
	for name, start := range stoppedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, slow := newSource(t), &slowFunction{on: true}
				applyAll(t, source, hundred("x"))
				m := start(t, source, slow)
				sleep(3500 * time.Millisecond)
				before := time.Now()
				m.stop()
				assert.Equal(t, 500*time.Millisecond, time.Since(before), "the fourth call is waited for")
				sleep(time.Hour)
				assert.Equal(t, 4, slow.calls)
				if m.told != nil {
					assert.Empty(t, m.told.take())
				} else {
					assert.Empty(t, m.store.List(), "the part was not taken")
					assert.Empty(t, m.store.LastStoreSyncResourceVersion())
				}
				source.Close()
			})
		})
	}
}

// G9: likewise for changes that have gathered while the handler was busy, and come to the
// store of a controller in one batch.
func TestG9NoFunctionIsCalledForTheRestOfABatchAfterTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, told := &slowFunction{}, 0
		r := newRig(t, newSource(t, pod("b", "1")), func(c *Config) {
			require.NoError(t, c.Store.(Indexer).AddIndexers(slow.index()))
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(any) { told++; time.Sleep(10 * time.Second) }}
		})
		r.run()
		synctest.Wait()
		slow.on = true
		applyAll(t, r.source, hundred("x"))
		sleep(12500 * time.Millisecond)
		before := time.Now()
		r.cancel()
		<-r.done
		assert.Equal(t, 500*time.Millisecond, time.Since(before), "the third call is waited for")
		sleep(time.Hour)
		assert.Equal(t, 3, slow.calls)
		assert.Equal(t, 1, told)
		assert.Equal(t, map[string]string{"b/1": "1"}, r.versions())
		assert.Equal(t, "1", r.status().AppliedVersion)
		r.source.Close()
	})
}

// G9: of what was created anew a controller's handler is not told the addition if the
// context ends while it is told the deletion. Fails if the two calls are one.
func TestG9TheSecondCallOfARecreationIsDroppedByAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, told := newSource(t, withUID(pod("a", "1"), "first")), &recorder{}
		var r *rig
		r = newRig(t, source, func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { told.OnAdd(obj, false) },
				UpdateFunc: told.OnUpdate,
				DeleteFunc: func(obj any) { told.OnDelete(obj); r.cancel() },
			}
		})
		r.run()
		synctest.Wait()
		require.Equal(t, []string{"add a/1@1"}, told.take())
		_, err := source.DeleteSilently("a", "1")
		must(t, err, source.Apply(withUID(pod("a", "1"), "second")))
		source.BreakWatches(cachetest.ErrExpired())
		<-r.done
		assert.Equal(t, []string{"tombstone a/1"}, told.take())
		assert.Equal(t, map[string]string{"a/1": "3"}, r.versions(), "readers are never behind handlers")
		source.Close()
	})
}
