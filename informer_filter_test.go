package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// keysOfDeletions is a handler that keeps the keys of what it is told is gone.
func keysOfDeletions(keys *[]string) TypedResourceEventHandler[*object] {
	return TypedResourceEventHandlerFuncs[*object]{DeleteFunc: func(d DeletedObject[*object]) { *keys = append(*keys, d.GetKey()) }}
}

func passing(next TypedResourceEventHandler[*object]) TypedFilteringResourceEventHandler[*object] {
	return TypedFilteringResourceEventHandler[*object]{FilterFunc: func(o *object) bool { return !isBad(o) }, Handler: next}
}

// With a key function of one's own the key cannot be read from the object. Fails if a
// deletion that a filter has made of an update is told under another key.
func TestADeletionMadeByAFilterHasTheKeyOfTheStore(t *testing.T) {
	all := func(*object) bool { return true }
	for name, wrap := range map[string]func(TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object]{
		"filter": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] { return passing(next) },
		"pointer": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] {
			filter := passing(next)
			return &filter
		},
		"filter in a filter": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] {
			return TypedFilteringResourceEventHandler[*object]{FilterFunc: all, Handler: passing(next)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, withUID(pod("a", "1"), "one"), withUID(pod("a", "2"), "two"))
				inf := NewInformerFor(source, InformerConfig[*object]{KeyFunction: func(obj any) (string, error) {
					return "uid:" + string(obj.(*object).UID), nil
				}})
				var direct, typed []string
				_, err := inf.AddHandler(wrap(keysOfDeletions(&direct)))
				must(t, err)
				_, err = NewTypedSharedIndexInformer[*object](inf.Shared()).AddTypedEventHandler(wrap(keysOfDeletions(&typed)))
				must(t, err)
				stop := runTyped(t, source, inf)
				must(t, source.Apply(bad(withUID(pod("a", "1"), "one"))))
				_, err = source.Delete("a", "2")
				must(t, err)
				synctest.Wait()
				assert.Equal(t, []string{"uid:one", "uid:two"}, direct)
				assert.Equal(t, []string{"uid:one", "uid:two"}, typed)
				stop()
			})
		})
	}
}

// countedFilter is a filter with an OnUpdate of its own, as a user may make one.
type countedFilter struct {
	TypedFilteringResourceEventHandler[*object]
	updates int
}

func (c *countedFilter) OnUpdate(oldObj, newObj *object) {
	c.updates++
	c.TypedFilteringResourceEventHandler.OnUpdate(oldObj, newObj)
}

// Fails if the way by which a filter learns of keys passes by what was put around it.
func TestWhatEmbedsAFilterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := NewInformerFor(source, InformerConfig[*object]{})
		var gone []string
		counted := &countedFilter{TypedFilteringResourceEventHandler: passing(keysOfDeletions(&gone))}
		_, err := inf.AddHandler(counted)
		must(t, err)
		stop := runTyped(t, source, inf)
		must(t, source.Apply(bad(pod("a", "1"))))
		synctest.Wait()
		assert.Equal(t, 1, counted.updates)
		assert.Equal(t, []string{"a/1"}, gone)
		stop()
	})
}
