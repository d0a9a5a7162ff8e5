package guarantees

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// fieldView is what a handler makes of the objects: a map by a field that changes. It finds an entry
// only if OnUpdate and OnDelete have the state that was delivered last.
type fieldView struct {
	t     *testing.T
	names map[string]string // by the value of label v
	uids  map[string]types.UID
	calls []string
	gate  chan struct{}
}

func newFieldView(t *testing.T) *fieldView {
	return &fieldView{t: t, names: map[string]string{}, uids: map[string]types.UID{}, gate: make(chan struct{})}
}

// fieldOf is unique among the objects of these tests at every moment.
func fieldOf(o *object) string { return o.Name + "=" + o.Labels["v"] }

func (v *fieldView) put(o *object) {
	v.names[fieldOf(o)] = o.Name
	v.uids[o.Name] = o.UID
	if o.Name == "block" {
		<-v.gate
	}
}

func (v *fieldView) remove(o *object) {
	_, known := v.names[fieldOf(o)]
	assert.True(v.t, known, "%s was not delivered last: %q", fieldOf(o), v.calls)
	delete(v.names, fieldOf(o))
	delete(v.uids, o.Name)
}

func (v *fieldView) add(o *object) {
	v.calls = append(v.calls, "add "+fieldOf(o))
	assert.NotContains(v.t, v.uids, o.Name, "added twice: %q", v.calls)
	v.put(o)
}

func (v *fieldView) update(old, o *object) {
	v.calls = append(v.calls, "update "+fieldOf(old)+" "+fieldOf(o))
	assert.Equal(v.t, old.UID, o.UID, "an update is of one object: %q", v.calls)
	v.remove(old)
	v.put(o)
}

func (v *fieldView) delete(o *object) {
	v.calls = append(v.calls, "delete "+fieldOf(o))
	v.remove(o)
}

func (v *fieldView) untyped() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { v.add(o.(*object)) },
		UpdateFunc: func(old, o any) { v.update(old.(*object), o.(*object)) },
		DeleteFunc: func(o any) { v.delete(lastState(o)) },
	}
}

func lastState(o any) *object {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	return o.(*object)
}

func (v *fieldView) typed() cache.TypedResourceEventHandler[*object] {
	return cache.TypedResourceEventHandlerFuncs[*object]{
		AddFunc:    v.add,
		UpdateFunc: v.update,
		DeleteFunc: func(d cache.DeletedObject[*object]) { v.delete(d.OptionalObj) },
	}
}

// isOutside is true for a state that the filters of these tests do not pass.
func isOutside(o *object) bool { return o.Labels["v"] == "out" }

// fieldViews add one view to an informer, in each way in which a program may.
var fieldViews = map[string]struct {
	filters bool
	add     func(*fieldView, *cache.Informer[*object], cache.HandlerOptions) error
}{
	"untyped": {false, func(v *fieldView, inf *cache.Informer[*object], options cache.HandlerOptions) error {
		_, err := inf.Shared().AddEventHandlerWithOptions(v.untyped(), options)
		return err
	}},
	"typed": {false, func(v *fieldView, inf *cache.Informer[*object], options cache.HandlerOptions) error {
		_, err := inf.AddHandler(v.typed(), options)
		return err
	}},
	"untyped filter": {true, func(v *fieldView, inf *cache.Informer[*object], options cache.HandlerOptions) error {
		all := func(any) bool { return true }
		inside := func(o any) bool { return !isOutside(lastState(o)) }
		// Of two filters, one is a pointer.
		_, err := inf.Shared().AddEventHandlerWithOptions(&cache.FilteringResourceEventHandler{FilterFunc: all,
			Handler: cache.FilteringResourceEventHandler{FilterFunc: inside, Handler: v.untyped()}}, options)
		return err
	}},
	"typed filter": {true, func(v *fieldView, inf *cache.Informer[*object], options cache.HandlerOptions) error {
		inside := func(o *object) bool { return !isOutside(o) }
		_, err := inf.AddHandler(&cache.TypedFilteringResourceEventHandler[*object]{
			Handler: cache.TypedFilteringResourceEventHandler[*object]{FilterFunc: inside, Handler: v.typed()}}, options)
		return err
	}},
}

// deliveries are all ways of delivery, with how many other changes wait before those of a test:
// beyond the bound, an Ordered handler's changes are merged.
var deliveries = map[string]struct {
	options cache.HandlerOptions
	others  int
}{
	"ordered":                   {},
	"ordered, beyond its bound": {others: 3000},
	"coalesced":                 {options: cache.HandlerOptions{Delivery: cache.Coalesced}},
	"unbounded":                 {options: cache.HandlerOptions{Delivery: cache.OrderedUnbounded}, others: 3000},
}

// labelledUID is an object with a value and a UID.
func labelledUID(name, value string, uid types.UID) *object {
	return withUID(labelled(pod("a", name), value), uid)
}

// runFieldView makes changes while the handler is busy, and returns what it has in the end. The
// object x exists before, with the value "in".
func runFieldView(t *testing.T, view, delivery string, changes func(*cachetest.Source)) *fieldView {
	v := newFieldView(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, labelledUID("x", "in", "1"),
			labelledUID("block", "in", "block"), labelledUID("other", "in", "other"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		close(v.gate)
		must(t, fieldViews[view].add(v, inf, deliveries[delivery].options))
		stop := runTyped(t, source, inf)
		v.gate = make(chan struct{})
		must(t, source.Apply(labelledUID("block", "busy", "block")))
		synctest.Wait()
		for i := range deliveries[delivery].others {
			must(t, source.Apply(labelledUID("other", itoa(i), "other")))
		}
		changes(source)
		sleep(time.Minute)
		close(v.gate)
		sleep(time.Minute)
		stored := map[string]types.UID{}
		for _, o := range inf.All() {
			if !fieldViews[view].filters || !isOutside(o) {
				stored[o.Name] = o.UID
			}
		}
		assert.Equal(t, stored, v.uids, "the handler's objects are those of the store: %q", v.calls)
		assert.Len(t, v.names, len(stored), "no entry of an earlier state is left: %q", v.calls)
		stop()
	})
	return v
}

// fieldChanges are changes of the object x.
var fieldChanges = map[string]func(t *testing.T, source *cachetest.Source){
	"changes and is deleted": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "other", "1")))
		remove(t, source)
	},
	"leaves the filter and is deleted": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "out", "1")))
		remove(t, source)
	},
	"leaves the filter, and a relist finds it deleted": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "out", "1")))
		synctest.Wait()
		_, err := source.DeleteSilently("a", "x")
		must(t, err)
		source.Advance(5)
		source.CompactAll()
		source.BreakWatches(cachetest.ErrExpired())
	},
	"leaves the filter, and is created again inside": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "out", "1")))
		remove(t, source)
		must(t, source.Apply(labelledUID("x", "in", "2")))
	},
	"leaves the filter, and is created again outside": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "out", "1")))
		remove(t, source)
		must(t, source.Apply(labelledUID("x", "out", "2")))
	},
	"changes, is created again, and is deleted": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "other", "1")))
		remove(t, source)
		must(t, source.Apply(labelledUID("x", "third", "2")))
		remove(t, source)
	},
	"leaves the filter, returns, and is deleted": func(t *testing.T, source *cachetest.Source) {
		must(t, source.Apply(labelledUID("x", "out", "1")))
		must(t, source.Apply(labelledUID("x", "in", "1")))
		remove(t, source)
	},
}

func remove(t *testing.T, source *cachetest.Source) {
	t.Helper()
	_, err := source.Delete("a", "x")
	must(t, err)
}

// B29: whichever changes of an object are merged while a handler is behind, OnUpdate and OnDelete
// have the state that it received last, so a map by any field and a filter lose nothing. Fails if a
// merged deletion has the state before the deletion, which the handler may not have received.
func TestB29AMergedChangeStartsFromTheStateThatWasDeliveredLast(t *testing.T) {
	for delivery := range deliveries {
		for view := range fieldViews {
			for name, changes := range fieldChanges {
				t.Run(fmt.Sprint(delivery, "/", view, "/", name), func(t *testing.T) {
					runFieldView(t, view, delivery, func(source *cachetest.Source) { changes(t, source) })
				})
			}
		}
	}
}

// B29: an object whose last state was quarantined is deleted as the state that was delivered last.
// Fails if OnDelete has the final state, which nobody has received.
func TestB29TheDeletionOfAQuarantinedObjectHasTheDeliveredState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFieldView(t)
		close(v.gate)
		source := newSource(t, labelledUID("x", "in", "1"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{
			Indexes: cache.TypedIndexers[*object]{"v": func(o *object) ([]string, error) {
				if o.Labels["v"] == "bad" {
					return nil, errors.New("bad")
				}
				return nil, nil
			}},
		})
		must(t, fieldViews["untyped"].add(v, inf, cache.HandlerOptions{}))
		stop := runTyped(t, source, inf)
		must(t, source.Apply(labelledUID("x", "bad", "1")))
		synctest.Wait()
		remove(t, source)
		synctest.Wait()
		assert.Equal(t, []string{"add x=in", "delete x=in"}, v.calls)
		stop()
	})
}

// B29: the event of a deletion may be the first one that shows that an object has left the filter:
// an update that removes the last finalizer is sent as a deletion alone. Fails if a filter is asked
// about the final state alone.
func TestB29AFilterPassesTheDeletionOfAnObjectThatItsHandlerHas(t *testing.T) {
	for delivery := range deliveries {
		for _, view := range []string{"untyped filter", "typed filter"} {
			t.Run(fmt.Sprint(delivery, "/", view), func(t *testing.T) {
				v := runFieldView(t, view, delivery, func(source *cachetest.Source) {
					_, err := source.DeleteSilently("a", "x")
					must(t, err)
					final := labelledUID("x", "out", "1")
					final.ResourceVersion = itoa(int(source.Version()))
					source.Inject(watch.Event{Type: watch.Deleted, Object: final})
				})
				assert.Contains(t, v.calls, "delete x=in")
			})
		}
	}
}

// B29: a handler that receives one OnUpdate for an object that was created again also does if the
// two events were merged in its backlog, and not only if the source merged them. Fails if only the
// latter counts.
func TestB29AnObjectCreatedAgainIsOneUpdateIfTheBacklogMergesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, labelledUID("x", "in", "1"), labelledUID("block", "in", "block"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{RecreateAsUpdate: true})
		var calls []string
		gate := make(chan struct{})
		_, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{
			UpdateFunc: func(old, o *object) {
				calls = append(calls, fmt.Sprint("update ", o.Name, " ", old.UID, " ", o.UID))
				if o.Name == "block" {
					<-gate
				}
			},
			DeleteFunc: func(d cache.DeletedObject[*object]) { calls = append(calls, "delete "+d.GetName()) },
		}, cache.HandlerOptions{Delivery: cache.Coalesced})
		must(t, err)
		stop := runTyped(t, source, inf)
		must(t, source.Apply(labelledUID("block", "busy", "block")))
		synctest.Wait()
		remove(t, source)
		must(t, source.Apply(labelledUID("x", "in", "2")))
		synctest.Wait()
		close(gate)
		synctest.Wait()
		require.Equal(t, []string{"update block block block", "update x 1 2"}, calls)
		stop()
	})
}

// overridden embeds a filter and has an OnDelete of its own.
type overridden struct {
	cache.FilteringResourceEventHandler
	deleted int
}

func (o *overridden) OnDelete(obj any) {
	o.deleted++
	o.FilteringResourceEventHandler.OnDelete(obj)
}

// Fails if a filter's notification of a deletion bypasses the handler that embeds it.
func TestB29AHandlerThatEmbedsAFilterReceivesItsDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "x"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		h := &overridden{}
		h.Handler = cache.ResourceEventHandlerFuncs{}
		_, err := inf.Shared().AddEventHandler(h)
		must(t, err)
		stop := runTyped(t, source, inf)
		remove(t, source)
		synctest.Wait()
		assert.Equal(t, 1, h.deleted)
		stop()
	})
}
