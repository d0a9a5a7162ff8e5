package cache

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onlooker is a store whose user's functions look at it while something is on its way
// in: at the version first, then at the object.
type onlooker struct {
	*cache
	t     *testing.T
	looks int
	// grows is true if the next index function is to add an index, whose function has
	// to be called before the write that is being prepared.
	grows   bool
	indexes int
}

func newOnlooker(t *testing.T) *onlooker {
	o := &onlooker{t: t}
	key := func(obj any) (string, error) {
		o.look()
		return MetaNamespaceKeyFunc(obj)
	}
	o.cache = NewIndexer(key, Indexers{"first": o.index}, WithTransformer(func(obj any) (any, error) {
		o.look()
		return obj, nil
	})).(*cache)
	return o
}

func (o *onlooker) look() {
	if o.cache == nil {
		return // it is being made
	}
	o.looks++
	version := o.LastStoreSyncResourceVersion()
	received, exists := receivedUnder(o.cache, "a/1")
	if version != "" && assert.True(o.t, exists, "the version is %s, and the object is not there", version) {
		assert.False(o.t, versionBefore(received.ResourceVersion, version), "the version is %s, the object at %s", version, received.ResourceVersion)
	}
}

func (o *onlooker) index(any) ([]string, error) {
	o.look()
	if o.grows {
		o.grows = false
		o.indexes++
		assert.NoError(o.t, o.AddIndexers(Indexers{fmt.Sprint("added ", o.indexes): o.index}))
	}
	return nil, nil
}

// G11: on no way in does a function of the user's, whichever it is and whenever it is
// called, see a version that claims more than the store holds. Fails if the version is
// set before, and not in one step with, the write that it belongs to.
func TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject(t *testing.T) {
	for name, take := range map[string]func(o *onlooker, obj *object, version string) error{
		"an event": func(o *onlooker, obj *object, version string) error {
			return takeOne(o, event{kind: Updated, obj: obj, version: version})
		},
		"a batch": func(o *onlooker, obj *object, version string) error {
			applyBatch(o, context.Background(), batch{changes: []queued{changeOf(Updated, obj)}, version: version}, false, nil)
			return nil
		},
		"a list": func(o *onlooker, obj *object, version string) error { return o.Replace([]any{obj}, version) },
		"a list in parts": func(o *onlooker, obj *object, version string) error {
			r := o.BeginReplace(ReplaceOptions{Aside: true})
			if _, err := r.Part(bg, ReplacementPart{Items: []any{obj}}); err != nil {
				return err
			}
			return r.Commit(bg, version)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOnlooker(t)
			for i := 1; i <= 5; i++ {
				looks := o.looks
				o.grows = true
				require.NoError(t, take(o, podAt("a", "1", itoa(i)), itoa(i)))
				assert.False(t, o.grows)
				assert.GreaterOrEqual(t, o.looks-looks, 4, "by key, transform, index and the added index")
				assert.Equal(t, itoa(i), o.LastStoreSyncResourceVersion())
				o.look()
			}
		})
	}
}
