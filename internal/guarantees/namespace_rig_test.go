package guarantees

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// namespaceRig is a mirror of several namespaces, each with its own source.
type namespaceRig struct {
	*rig
	sources map[string]*cachetest.Source
}

// eachNamespaceRig runs a test with a controller and with an informer, in virtual time.
func eachNamespaceRig(t *testing.T, test func(t *testing.T, informer bool)) {
	for name, informer := range map[string]bool{"controller": false, "informer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, informer) })
		})
	}
}

// newNamespaceRig makes a controller, or an informer with the same options, of the namespaces
// a, b and c, each with the objects 1 and 2.
func newNamespaceRig(t *testing.T, informer bool, change func(*cache.Config)) *namespaceRig {
	t.Helper()
	var config cache.Config
	r := &namespaceRig{sources: map[string]*cachetest.Source{}}
	for _, namespace := range []string{"a", "b", "c"} {
		r.sources[namespace] = newSource(t, pod(namespace, "1"), pod(namespace, "2"))
	}
	r.rig = newRig(t, nil, func(c *cache.Config) {
		c.ListerWatcher, c.Namespaces = nil, map[string]cache.Source{}
		for namespace, source := range r.sources {
			c.Namespaces[namespace] = source.Namespace(namespace)
		}
		if change != nil {
			change(c)
		}
		config = *c
	})
	if !informer {
		return r
	}
	options := cache.SharedIndexInformerOptions{
		Namespaces: config.Namespaces, Transform: config.Transform, RecreateAsUpdate: config.RecreateAsUpdate,
		Indexers: r.indexer.GetIndexers(), ReflectorOptions: config.ReflectorOptions,
	}
	inf := cache.NewSharedIndexInformerWithOptions(nil, config.ObjectType, options)
	if config.Handler != nil {
		_, err := inf.AddEventHandler(config.Handler)
		require.NoError(t, err)
	}
	r.ctlr, r.indexer = inf.(reportingController), inf.GetIndexer()
	return r
}

func (r *namespaceRig) stop() {
	r.cancel()
	<-r.done
	r.close()
}

func (r *namespaceRig) close() {
	for _, source := range r.sources {
		source.Close()
	}
}

// apply writes objects, each to the source of its namespace.
func (r *namespaceRig) apply(objects ...*object) {
	r.Helper()
	for _, obj := range objects {
		require.NoError(r, r.sources[obj.Namespace].Apply(obj))
	}
}

// assertEqualsSources fails the test unless the indexer and its namespace index equal the
// sources of these namespaces.
func (r *namespaceRig) assertEqualsSources(namespaces ...string) {
	r.Helper()
	held := r.versions()
	for _, namespace := range namespaces {
		want := map[string]string{}
		for _, obj := range r.sources[namespace].Objects() {
			want[nameOf(obj)] = receivedOf(obj).ResourceVersion
		}
		got := map[string]string{}
		for key, version := range held {
			if key[:len(namespace)+1] == namespace+"/" {
				got[key] = version
			}
		}
		assert.Equal(r, want, got, "namespace %s", namespace)
		keys, err := r.indexer.IndexKeys(cache.NamespaceIndex, namespace)
		require.NoError(r, err)
		assert.ElementsMatch(r, slices.Collect(mapsKeys(want)), keys, "index of namespace %s", namespace)
	}
}

// statusOf returns the status of a namespace.
func (r *namespaceRig) statusOf(namespace string) cache.Status {
	r.Helper()
	for _, one := range r.status().Namespaces {
		if one.Namespace == namespace {
			return one
		}
	}
	require.Fail(r, "no such namespace", namespace)
	return cache.Status{}
}

// synced returns the namespaces that have synced.
func (r *namespaceRig) synced() []string {
	var synced []string
	for _, namespace := range []string{"a", "b", "c"} {
		checker, ok := r.ctlr.SyncedIn(namespace)
		require.True(r, ok)
		if cache.IsDone(checker) {
			synced = append(synced, namespace)
		}
	}
	return synced
}
