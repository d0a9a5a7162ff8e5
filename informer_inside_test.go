package cache

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// insides are the places from which an informer calls a user, who then waits for himself
// if he waits for the informer. Each makes one that calls from there, at least once.
var insides = map[string]func(t *testing.T, set *InformerSet, call func()) *Informer[*object]{
	"a handler": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		informer := insideInformer(t, set, newSource(t, pod("a", "1")), nil)
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { call() }})
		must(t, err)
		return informer
	},
	"a handler that has removed itself": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		informer := insideInformer(t, set, newSource(t, pod("a", "1")), nil)
		var handle ResourceEventHandlerRegistration
		handle, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) {
			must(t, informer.RemoveHandler(handle))
			call()
		}})
		must(t, err)
		return informer
	},
	"the transform": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		return insideInformer(t, set, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
			c.Transform = func(o *object) (*object, error) { call(); return o, nil }
		})
	},
	"an index function": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		return insideInformer(t, set, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"any": func(*object) ([]string, error) { call(); return nil, nil }}
		})
	},
	"the error handler, of the source": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		source := newSource(t)
		source.FailLists(1, errBoom)
		return insideInformer(t, set, source, func(c *InformerConfig[*object]) { c.ReflectorOptions.ErrorHandler = calling(call) })
	},
	"the error handler, of a handler's panic": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		informer := insideInformer(t, set, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
			c.ReflectorOptions.ErrorHandler = calling(call)
		})
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { panic(errBoom) }},
			HandlerOptions{SurvivePanics: true})
		must(t, err)
		return informer
	},
	"the error handler, of a changed object": func(t *testing.T, set *InformerSet, call func()) *Informer[*object] {
		informer := insideInformer(t, set, newSource(t, pod("a", "1")), func(c *InformerConfig[*object]) {
			c.ReflectorOptions.ErrorHandler = calling(call)
			c.DetectMutations = MutationDetection{SampleEvery: 1}
		})
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { changeStored(informer, "a/1") }})
		must(t, err)
		return informer
	},
}

func insideInformer(t *testing.T, set *InformerSet, source ListerWatcher, change func(*InformerConfig[*object])) *Informer[*object] {
	config := InformerConfig[*object]{ReflectorOptions: ReflectorOptions{Strategy: ListPaged, ErrorHandler: (&heard{}).handle}}
	if change != nil {
		change(&config)
	}
	informer, _, err := InformerOf(set, source, config)
	require.NoError(t, err)
	return informer
}

func calling(call func()) WatchErrorHandlerWithContext {
	return func(context.Context, *Reflector, error) { call() }
}

// Fails if the caller waits for himself, for ever, or something is stopped all the same.
func TestWhoIsCalledByAnInformerCannotStopItAndWait(t *testing.T) {
	surviving(t)
	for place, make := range insides {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var set InformerSet
				var informer *Informer[*object]
				var got []error
				informer = make(t, &set, sync.OnceFunc(func() { got = append(got, set.Stop(t.Context(), informer.Shared())) }))
				end := runSet(t, &set)
				sleep(time.Minute)
				require.Len(t, got, 1)
				assert.ErrorIs(t, got[0], ErrOwnHandler)
				assert.False(t, informer.Shared().IsStopped())
				assert.Len(t, set.Status(), 1)
				end()
			})
		})
	}
}

// From inside, Shutdown ends the run and leaves the waiting to others. Fails if it waits
// for its own caller, or does nothing.
func TestWhoIsCalledByAnInformerShutsTheSetDownWithoutWaiting(t *testing.T) {
	surviving(t)
	for place, make := range insides {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var set InformerSet
				var got []error
				make(t, &set, sync.OnceFunc(func() { got = append(got, set.Shutdown(t.Context())) }))
				other, _ := podInformerOf(t, &set, newSource(t))
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				require.NoError(t, set.Run(ctx))
				assert.Less(t, time.Since(began), time.Minute)
				require.Len(t, got, 1)
				assert.ErrorIs(t, got[0], ErrOwnHandler)
				assert.True(t, other.Shared().IsStopped())
			})
		})
	}
}

// A handler that has released its informer is still one of those that Run waits for.
func TestAHandlerThatReleasedItsInformerShutsTheSetDownWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		informer, release := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var got error
		_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) {
			release()
			got = set.Shutdown(ctx)
		}})
		must(t, err)
		began := time.Now()
		require.NoError(t, set.Run(t.Context()))
		assert.Zero(t, time.Since(began))
		assert.ErrorIs(t, got, ErrOwnHandler)
	})
}
