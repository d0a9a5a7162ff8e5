package guarantees

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache"
)

// Numbers that the documentation names, and that a test has to stay below or reach.
const (
	// maxRetryAfter is the longest Retry-After that is honoured.
	maxRetryAfter = 5 * time.Minute
	// watchGrace is how long a watch may stay open after its timeout.
	watchGrace = 30 * time.Second
	// streamProbe is after how long a source that could not stream is asked again.
	streamProbe = 10 * time.Minute
	// watchesBeforeList is how many watches in a row may fail before a list.
	watchesBeforeList = 10
	// partSize is how many objects of a list are written at a time.
	partSize = 100
	// emptyPages is how many pages in a row may be empty.
	emptyPages = 1000
)

// nameOf is an object's namespace and name as a key, "" if it has neither.
func nameOf(obj any) string {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		return ""
	}
	return name.String()
}

// receivedOf is an object's UID and version, both empty if it has no metadata.
func receivedOf(obj any) cache.ObjectVersion {
	about, err := meta.Accessor(obj)
	if err != nil {
		return cache.ObjectVersion{}
	}
	return cache.ObjectVersion{UID: about.GetUID(), ResourceVersion: about.GetResourceVersion()}
}

// isClosed says whether a channel is closed.
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// versionBefore says whether a is the lower one of two well-formed versions.
func versionBefore(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// newerOf is the newer of two versions, a if they are in no order.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}

// doneError is why a checker that is done was waited for in vain, nil if it was not.
func doneError(checker cache.DoneChecker) error {
	if failed, ok := checker.(interface{ Err() error }); ok {
		return failed.Err()
	}
	return nil
}

// asObjectError finds the ObjectError in err, if there is one.
func asObjectError(err error) (*cache.ObjectError, bool) {
	var object *cache.ObjectError
	ok := errors.As(err, &object)
	return object, ok
}

// eachItem calls take for each item of a list.
func eachItem(list apiruntime.Object, take func(apiruntime.Object) error) error {
	return meta.EachListItemWithAlloc(list, take)
}

// listMetadata is the version of a list and the token of the page after it.
func listMetadata(list apiruntime.Object) (version, token string, err error) {
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", "", err
	}
	return about.GetResourceVersion(), about.GetContinue(), nil
}

// viewStore is all that a view of one namespace can do, fullStore all that a store can.
type viewStore interface {
	cache.Store
	cache.Replacer
	ObjectVersion(key string) (cache.ObjectVersion, bool)
	Bookmark(resourceVersion string)
	UpdateResourceVersion(resourceVersion string)
}

type fullStore interface {
	viewStore
	cache.Indexer
	Snapshot() cache.Reader[any]
}

// newTagStore is a store with an index of the tags that tagged gives to an object.
func newTagStore(opts ...cache.StoreOption) fullStore {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{tagIndex: byTag}, opts...).(fullStore)
}

// viewsOf are a store and its views of two namespaces.
func viewsOf(opts ...cache.StoreOption) (whole fullStore, a, b viewStore) {
	whole = newTagStore(opts...)
	return whole, cache.InNamespace(whole, "a").(viewStore), cache.InNamespace(whole, "b").(viewStore)
}

func beginIn(t *testing.T, v viewStore) replacing {
	return replacing{t, v.BeginReplace(cache.ReplaceOptions{})}
}

// newListedQueue is a queue in front of a store that has these objects.
func newListedQueue(t *testing.T, objects ...*object) (*cache.DeltaFIFO, fullStore) {
	store := newTagStore()
	for _, o := range objects {
		must(t, store.Add(o))
	}
	return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true}), store
}

// send puts a change of an object into a queue.
func send(t *testing.T, f *cache.DeltaFIFO, kind cache.DeltaType, name, version string) {
	t.Helper()
	ways := map[cache.DeltaType]func(any) error{cache.Added: f.Add, cache.Updated: f.Update, cache.Deleted: f.Delete}
	require.NoError(t, ways[kind](podAt("a", name, version)))
}

// drained closes a queue and pops what it has, in words.
func drained(t *testing.T, f *cache.DeltaFIFO) (words []string) {
	t.Helper()
	f.Close()
	for {
		got, err := f.Pop(func(any, bool) error { return nil })
		if errors.Is(err, cache.ErrFIFOClosed) {
			return words
		}
		require.NoError(t, err)
		var changes []string
		for _, d := range got.(cache.Deltas) {
			changes = append(changes, said(d))
		}
		words = append(words, strings.Join(changes, ", "))
	}
}

// said is a change in words.
func said(d cache.Delta) string {
	switch obj := d.Object.(type) {
	case cache.BookmarkInfo:
		return fmt.Sprintf("%s @%s", d.Type, obj.ResourceVersion)
	case cache.DeletedFinalStateUnknown:
		version := "nothing"
		if o, ok := obj.Obj.(*object); ok {
			version = "@" + o.ResourceVersion
		}
		return fmt.Sprintf("%s tombstone %s %s", d.Type, obj.Key, version)
	case *object:
		return fmt.Sprintf("%s %s@%s%s", d.Type, nameOf(obj), obj.ResourceVersion, obj.Labels["v"])
	}
	return fmt.Sprintf("%s %v", d.Type, d.Object)
}

// splitObjectErrors takes an error apart into those of single objects and the rest.
func splitObjectErrors(err error) (objects []*cache.ObjectError, other error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var others []error
		for _, part := range joined.Unwrap() {
			more, rest := splitObjectErrors(part)
			objects, others = append(objects, more...), append(others, rest)
		}
		return objects, errors.Join(others...)
	}
	if object, ok := asObjectError(err); ok {
		return []*cache.ObjectError{object}, nil
	}
	return nil, err
}
