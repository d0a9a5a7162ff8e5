package overlay_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/overlay"
)

// calls records a handler's notifications by kind, name and version.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) add(kind string, obj *object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf("%s %s %s", kind, obj.GetName(), obj.GetResourceVersion()))
}

// take returns the calls since its last call.
func (c *calls) take() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.list
	c.list = nil
	return made
}

func (c *calls) OnAdd(obj *object, _ bool)                 { c.add("add", obj) }
func (c *calls) OnUpdate(_, newObj *object)                { c.add("update", newObj) }
func (c *calls) OnDelete(obj cache.DeletedObject[*object]) { c.add("delete", obj.OptionalObj) }

// shared returns calls as an untyped handler.
func (c *calls) shared() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.add("add", obj.(*object)) },
		UpdateFunc: func(_, newObj any) { c.add("update", newObj.(*object)) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			c.add("delete", obj.(*object))
		},
	}
}

// forEachHandlerForm runs a test with a typed and an untyped handler that must not be notified of
// own writes.
func forEachHandlerForm(t *testing.T, test func(t *testing.T, r *rig, handler *calls)) {
	for name, add := range map[string]func(*rig, *calls) error{
		"typed": func(r *rig, c *calls) error {
			_, err := r.items.AddHandler(r.overlay.Handler(c))
			return err
		},
		"untyped": func(r *rig, c *calls) error {
			_, err := r.items.Shared().AddEventHandler(r.overlay.SharedHandler(c.shared()))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(
				t,
				func(o *overlay.Options[*object]) { o.MaxAge = time.Minute },
				func(t *testing.T, r *rig) {
					var handler calls
					r.create("there", "a")
					synctest.Wait()
					require.NoError(t, add(r, &handler))
					require.Equal(t, []string{"add there 2"}, handler.take())
					r.DelayEvents(delay)
					test(t, r, &handler)
				},
			)
		})
	}
}

func TestAHandlerIsNotNotifiedOfObservedStatesAndOfAllOthers(t *testing.T) {
	forEachHandlerForm(t, func(t *testing.T, r *rig, handler *calls) {
		r.observed(r.create("a", "a"))     // 3
		r.update("a", "b")                 // 4
		r.observed(r.update("there", "b")) // 5
		r.observed(r.update("a", "c"))     // 6
		r.create("b", "a")                 // 7
		r.delete("b")                      // 8
		r.delete("a")                      // 9
		r.overlay.ObservedDelete("shop/a", "")
		r.create("a", "d") // 10
		r.delete("a")      // 11
		time.Sleep(9 * delay)
		assert.Equal(
			t, []string{"update a 4", "add b 7", "delete b 8", "add a 10", "delete a 11"},
			handler.take())
	})
}

func TestAStateIsLeftOutOnceAndNotIfItWasObservedTooLate(t *testing.T) {
	forEachHandlerForm(t, func(t *testing.T, r *rig, handler *calls) {
		made := r.create("a", "a")
		time.Sleep(delay)
		assert.Equal(t, []string{"add a 3"}, handler.take())
		r.observed(made)
		updated := r.update("a", "b")
		r.observed(updated)
		r.observed(updated)
		time.Sleep(delay)
		assert.Empty(t, handler.take())
		r.update("a", "c")
		time.Sleep(delay)
		assert.Equal(t, []string{"update a 5"}, handler.take())
	})
}

func TestAStateThatThePendingHandlerHasNotSeenIsLeftOutAlsoIfTheStoreHasIt(t *testing.T) {
	forEachHandlerForm(t, func(t *testing.T, r *rig, handler *calls) {
		// Both are older than the state that the overlay shows, and the handler has not been
		// notified.
		first := r.create("a", "a")
		second := r.update("a", "b")
		r.observed(second)
		r.observed(first)
		time.Sleep(2 * delay)
		assert.Empty(t, handler.take())
	})
}

func TestAStateThatDoesNotComeIsForgotten(t *testing.T) {
	forEachHandlerForm(t, func(t *testing.T, r *rig, handler *calls) {
		made := r.create("a", "a")
		r.DelayEvents(time.Minute + time.Second)
		r.observed(made)
		time.Sleep(time.Minute + time.Second)
		assert.Equal(t, []string{"add a 3"}, handler.take())
		assert.Len(t, r.expired(), 1)
	})
}

func TestADeletionThatOnlyARelistShowsIsLeftOut(t *testing.T) {
	forEachHandlerForm(t, func(t *testing.T, r *rig, handler *calls) {
		r.Silence()
		r.delete("there")
		r.overlay.ObservedDelete("shop/there", "")
		r.create("foreign", "a")
		r.Heal()
		r.CompactAll()
		r.CloseWatches()
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"add foreign 4"}, handler.take())
	})
}

func TestTheInitialListAndResyncsArePassedOn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.DelayEvents(delay)
		var handler calls
		late := r.overlay.Handler(&handler)
		r.observed(r.create("a", "a"))
		time.Sleep(delay)
		synctest.Wait()
		second := time.Second
		_, err := r.items.AddHandler(late, cache.HandlerOptions{ResyncPeriod: &second})
		require.NoError(t, err)
		assert.Equal(t, []string{"add a 2"}, handler.take())
		r.observed(r.update("a", "b"))
		time.Sleep(delay)
		assert.Empty(t, handler.take())
		time.Sleep(second)
		assert.Equal(t, []string{"update a 3"}, handler.take())
		observedLate, err := r.Get("shop", "a")
		r.observed(must(t)(observedLate, err))
		time.Sleep(second)
		assert.Equal(t, []string{"update a 3"}, handler.take())
	})
}

func TestAStateThatComesASecondTimeIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handler calls
		o := overlay.Over(newIndexer(), overlay.Options[*object]{})
		filtered := o.SharedHandler(handler.shared())
		require.NoError(t, o.Observed(opaque("a", "u", "1")))
		for range 2 {
			filtered.OnAdd(opaque("a", "u", "1"), false)
			filtered.OnDelete(opaque("a", "u", "1"))
		}
		assert.Equal(t, []string{"delete a 1", "add a 1", "delete a 1"}, handler.take())

		// An object without a version, and a deletion without its last state, cannot be recognized.
		require.NoError(t, o.Observed(newObject("b", "a")))
		filtered.OnAdd(newObject("b", "a"), false)
		assert.Equal(t, []string{"add b "}, handler.take())
	})
}

// An own write takes the object out of the filter, and another program deletes it.
func TestBothNestingsOfAFilterAndAnOverlaysHandlerReportThatAnObjectNoLongerPasses(t *testing.T) {
	passes := func(obj *object) bool { return obj.GetLabels()["owner"] == "a" }
	passesUntyped := func(obj any) bool {
		last, isObject := obj.(*object)
		return isObject && passes(last)
	}
	type typedFilter = cache.TypedFilteringResourceEventHandler[*object]
	for name, add := range map[string]func(*rig, *calls) error{
		"typed, the filter outside": func(r *rig, c *calls) error {
			_, err := r.items.AddHandler(typedFilter{FilterFunc: passes, Handler: r.overlay.Handler(c)})
			return err
		},
		"typed, the filter inside": func(r *rig, c *calls) error {
			_, err := r.items.AddHandler(r.overlay.Handler(typedFilter{FilterFunc: passes, Handler: c}))
			return err
		},
		"typed, a pointer to a filter inside": func(r *rig, c *calls) error {
			_, err := r.items.AddHandler(r.overlay.Handler(&typedFilter{FilterFunc: passes, Handler: c}))
			return err
		},
		"untyped, the filter outside": func(r *rig, c *calls) error {
			_, err := r.items.Shared().AddEventHandler(cache.FilteringResourceEventHandler{
				FilterFunc: passesUntyped, Handler: r.overlay.SharedHandler(c.shared()),
			})
			return err
		},
		"untyped, the filter inside": func(r *rig, c *calls) error {
			_, err := r.items.Shared().AddEventHandler(r.overlay.SharedHandler(&cache.FilteringResourceEventHandler{
				FilterFunc: passesUntyped, Handler: c.shared(),
			}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig) {
				var handler calls
				r.create("x", "a")
				require.NoError(t, add(r, &handler))
				require.Equal(t, []string{"add x 2"}, handler.take())
				r.DelayEvents(delay)
				r.observed(r.update("x", "b"))
				time.Sleep(delay)
				assert.Equal(t, []string{"delete x 2"}, handler.take())
				r.observed(r.update("x", "a"))
				time.Sleep(delay)
				assert.Empty(t, handler.take(), "it is an own write")
				r.update("x", "a")
				time.Sleep(delay)
				assert.Equal(t, []string{"update x 5"}, handler.take())
				r.delete("x")
				time.Sleep(delay)
				assert.Len(t, handler.take(), 1)
			})
		})
	}
}

func TestAFilterWithoutAHandlerDoesNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		_, err := r.items.AddHandler(
			r.overlay.Handler(cache.TypedFilteringResourceEventHandler[*object]{}))
		require.NoError(t, err)
		_, err = r.items.Shared().AddEventHandler(
			r.overlay.SharedHandler(cache.FilteringResourceEventHandler{}))
		require.NoError(t, err)
		r.create("x", "a")
		synctest.Wait()
		assert.Equal(t, 1, r.items.Len())
	})
}
