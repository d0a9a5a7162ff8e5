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

// Limits that the documentation states.
const (
	// maxRetryAfter is the longest Retry-After that is honored.
	maxRetryAfter = 5 * time.Minute
	// watchGrace is how long a watch may stay open after its timeout.
	watchGrace = 30 * time.Second
	// streamProbe is the time after which a streaming list is tried again.
	streamProbe = 10 * time.Minute
	// watchesBeforeList is the number of consecutive failed watches before a list.
	watchesBeforeList = 10
	// partSize is the number of listed objects that are written together.
	partSize = 100
	// emptyPages is the maximum number of consecutive empty pages.
	emptyPages = 1000
)

// nameOf returns an object's key, namespace/name, or "" if it has no metadata.
func nameOf(obj any) string {
	name, err := cache.ObjectToName(obj)
	if err != nil {
		return ""
	}
	return name.String()
}

// receivedOf returns an object's UID and version, both empty if it has no metadata.
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

// versionBefore says whether both versions are well-formed and a is the lower one.
func versionBefore(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// newerOf returns the newer of two versions, a if they are not comparable.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}

// doneError returns the error of a checker that is done because it failed, or nil.
func doneError(checker cache.DoneChecker) error {
	if failed, ok := checker.(interface{ Err() error }); ok {
		return failed.Err()
	}
	return nil
}

// asObjectError returns the ObjectError that err wraps.
func asObjectError(err error) (*cache.ObjectError, bool) {
	var object *cache.ObjectError
	ok := errors.As(err, &object)
	return object, ok
}

// eachItem calls take for each item of a list.
func eachItem(list apiruntime.Object, take func(apiruntime.Object) error) error {
	return meta.EachListItemWithAlloc(list, take)
}

// listMetadata returns the version of a list and its continue token.
func listMetadata(list apiruntime.Object) (version, token string, err error) {
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", "", err
	}
	return about.GetResourceVersion(), about.GetContinue(), nil
}

// viewStore has the methods of a view of one namespace, fullStore those of a store.
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

// newTagStore returns a store with an index of the tags that tagged sets.
func newTagStore(opts ...cache.StoreOption) fullStore {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{tagIndex: byTag}, opts...).(fullStore)
}

// viewsOf returns a store and its views of two namespaces.
func viewsOf(opts ...cache.StoreOption) (whole fullStore, a, b viewStore) {
	whole = newTagStore(opts...)
	return whole, cache.InNamespace(whole, "a").(viewStore), cache.InNamespace(whole, "b").(viewStore)
}

func beginReplace(t *testing.T, v viewStore) testReplacement {
	return testReplacement{t, v.BeginReplace(cache.ReplaceOptions{})}
}

// newListedQueue returns a queue whose KnownObjects is a store with these objects.
func newListedQueue(t *testing.T, objects ...*object) (*cache.DeltaFIFO, fullStore) {
	store := newTagStore()
	for _, o := range objects {
		must(t, store.Add(o))
	}
	return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true}), store
}

// enqueue adds a change of an object to a queue.
func enqueue(t *testing.T, f *cache.DeltaFIFO, kind cache.DeltaType, name, version string) {
	t.Helper()
	ways := map[cache.DeltaType]func(any) error{cache.Added: f.Add, cache.Updated: f.Update, cache.Deleted: f.Delete}
	require.NoError(t, ways[kind](podAt("a", name, version)))
}

// drainTexts closes a queue, pops everything, and returns the deltas of each key as a text.
func drainTexts(t *testing.T, f *cache.DeltaFIFO) (words []string) {
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
			changes = append(changes, deltaText(d))
		}
		words = append(words, strings.Join(changes, ", "))
	}
}

// deltaText describes a delta.
func deltaText(d cache.Delta) string {
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

// splitObjectErrors separates the errors of single objects from the rest.
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
