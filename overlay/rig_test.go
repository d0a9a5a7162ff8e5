package overlay_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/overlay"
)

type object = unstructured.Unstructured

// newObject returns an object in namespace shop, with its owner in a label for the index "owner".
func newObject(name, owner string) *object {
	obj := &object{}
	obj.SetAPIVersion("v1")
	obj.SetKind("Item")
	obj.SetNamespace("shop")
	obj.SetName(name)
	obj.SetLabels(map[string]string{"owner": owner})
	return obj
}

func byOwner(obj *object) ([]string, error) { return []string{obj.GetLabels()["owner"]}, nil }

// rig is an overlay of an informer of a source, in virtual time.
type rig struct {
	*cachetest.Source
	t       *testing.T
	items   *cache.Informer[*object]
	overlay *overlay.Overlay[*object]

	mu      sync.Mutex
	reports []overlay.Expired
}

func (r *rig) report(e overlay.Expired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, e)
}

// expired returns the reports.
func (r *rig) expired() []overlay.Expired {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reports)
}

// inBubble runs a test with an informer that has synced. change, if not nil, changes the options.
func inBubble(
	t *testing.T, change func(*overlay.Options[*object]), test func(t *testing.T, r *rig),
) {
	t.Helper()
	inBubbleWith(t, nil, change, test)
}

// inBubbleWith is inBubble with a transform for the informer.
func inBubbleWith(
	t *testing.T, transform func(*object) (*object, error), change func(*overlay.Options[*object]),
	test func(t *testing.T, r *rig),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Source: cachetest.NewTestSource(t, cachetest.Options{}), t: t}
		r.items = cache.NewTypedInformer(r.Source, cache.InformerConfig[*object]{
			Indexes: cache.TypedIndexers[*object]{"owner": byOwner}, Transform: transform,
		})
		options := overlay.Options[*object]{OnExpired: r.report}
		if change != nil {
			change(&options)
		}
		var err error
		r.overlay, err = overlay.New(r.items, options)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.items.Run(ctx) }()
		go r.overlay.Run(ctx)
		require.NoError(t, r.items.WaitSynced(ctx))
		test(t, r)
		cancel()
		synctest.Wait()
	})
}

// create creates an object at the source, without the overlay.
func (r *rig) create(name, owner string) *object {
	r.t.Helper()
	return must(r.t)(r.Create(newObject(name, owner)))
}

// update updates an object at the source, without the overlay.
func (r *rig) update(name, owner string) *object {
	r.t.Helper()
	return must(r.t)(r.Update(newObject(name, owner)))
}

// delete deletes an object at the source, without the overlay.
func (r *rig) delete(name string) *object {
	r.t.Helper()
	return must(r.t)(r.Delete("shop", name))
}

func must(t *testing.T) func(runtime.Object, error) *object {
	return func(obj runtime.Object, err error) *object {
		t.Helper()
		require.NoError(t, err)
		return obj.(*object)
	}
}

func (r *rig) observed(obj *object) {
	r.t.Helper()
	require.NoError(r.t, r.overlay.Observed(obj))
}

// assertShows checks that all reads show exactly these objects, given as name and version.
func (r *rig) assertShows(want map[string]string) {
	r.t.Helper()
	for _, reader := range []overlay.Reader[*object]{r.overlay.Reader, r.overlay.Snapshot()} {
		assert.Equal(r.t, want, versions(reader), "reads")
	}
	assert.Equal(r.t, want, indexerVersions(r.t, r.overlay.Indexer()), "reads of the Indexer")
}

// versions returns the versions of objects by name, and checks that all methods of a reader agree.
func versions(reader overlay.Reader[*object]) map[string]string {
	reader = reader.ByNamespace("shop").Snapshot()
	found := map[string]string{}
	owners := map[string]map[string]string{}
	add := func(to map[string]string, obj *object) { to[obj.GetName()] = obj.GetResourceVersion() }
	for key, obj := range reader.All() {
		if key != "shop/"+obj.GetName() {
			found["key "+key] = obj.GetName()
		}
		add(found, obj)
		owner := obj.GetLabels()["owner"]
		if owners[owner] == nil {
			owners[owner] = map[string]string{}
		}
		add(owners[owner], obj)
	}
	for name, version := range found {
		if obj, err := reader.Get(name); err != nil || obj.GetResourceVersion() != version {
			found["get "+name] = "not " + version
		}
	}
	listed := map[string]string{}
	indexed := map[string]map[string]string{}
	all, _ := reader.List(nil)
	for _, obj := range all {
		add(listed, obj)
	}
	values, _ := reader.IndexValues("owner")
	for _, owner := range values {
		indexed[owner] = map[string]string{}
		objects, _ := reader.ByIndex("owner", owner)
		for _, obj := range objects {
			add(indexed[owner], obj)
		}
	}
	if !maps.Equal(listed, found) || len(all) != len(found) || reader.Len() != len(found) {
		found["list"] = "differs"
	}
	if !maps.EqualFunc(owners, indexed, maps.Equal[map[string]string, map[string]string]) {
		found["index"] = "differs"
	}
	return found
}

func indexerVersions(t *testing.T, indexer cache.Indexer) map[string]string {
	t.Helper()
	found := map[string]string{}
	keys := []string{}
	for _, obj := range indexer.List() {
		item := obj.(*object)
		found[item.GetName()] = item.GetResourceVersion()
		keys = append(keys, "shop/"+item.GetName())
		got, exists, err := indexer.Get(item)
		assert.NoError(t, err)
		assert.True(t, exists)
		assert.Same(t, item, got)
		same, err := indexer.Index("owner", item)
		assert.NoError(t, err)
		assert.Contains(t, same, obj)
	}
	assert.ElementsMatch(t, keys, indexer.ListKeys())
	byIndex := []string{}
	for _, owner := range indexer.ListIndexFuncValues("owner") {
		keys, err := indexer.IndexKeys("owner", owner)
		assert.NoError(t, err)
		assert.True(t, slices.IsSorted(keys))
		objects, err := indexer.ByIndex("owner", owner)
		assert.NoError(t, err)
		assert.Len(t, objects, len(keys))
		byIndex = append(byIndex, keys...)
	}
	assert.ElementsMatch(t, keys, byIndex)
	return found
}

// opaque returns an object with a UID and a version that may be any text.
func opaque(name string, uid types.UID, version string) *object {
	obj := newObject(name, "a")
	obj.SetUID(uid)
	obj.SetResourceVersion(version)
	return obj
}

var _ metav1.Object = &object{}

const delay = 200 * time.Millisecond
