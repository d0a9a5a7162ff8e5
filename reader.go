// Reader, the typed view of a store that programs read, and the snapshots behind it. What does a
// read see, and from which index does it come? The Indexer of client-go reads through it too.

package cache

import (
	"iter"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/inspect"
	"github.com/watchmirror/cache/internal/table"
)

// Reader reads the objects of an informer or a store, or those of one namespace, from memory. It
// may be used concurrently. The objects are shared: do not change them. The slices are the
// caller's.
//
// Every read is a consistent point-in-time view, unordered. Two reads may observe different
// versions; use a Snapshot when they must agree.
type Reader[T any] struct {
	store *storage
	// snapshot is read instead of the store if its table is not nil, with quarantined, the store's
	// quarantine of that time, nil if it was empty.
	snapshot    view
	quarantined *table.Snapshot
	// resource is for errors.
	resource  schema.GroupResource
	namespace string
	// indexed is true if the index NamespaceIndex has the namespaces of the objects. A user's index
	// of that name may have other values.
	indexed bool
}

// Snapshot returns a reader of the current objects, indexes and version, which never change. Taking
// one is O(1) and iterating it copies nothing. Writes copy what a live snapshot references, so do
// not retain one.
func (r Reader[T]) Snapshot() Reader[T] {
	if r.snapshot.table != nil {
		return r
	}
	if r.store == nil {
		r.snapshot = emptyView()
		return r
	}
	r.snapshot, r.quarantined = r.store.frozen()
	return r
}

// ResourceVersion is the applied version, empty before the first list.
func (r Reader[T]) ResourceVersion() string { return r.currentView().table.Version }

// ByNamespace returns a reader of one namespace, or of all for "". Call its Lookup and Get with a
// name, "web-1". All and AllByIndex yield the key, "shop/web-1". Keys must have that form.
func (r Reader[T]) ByNamespace(namespace string) Reader[T] {
	r.namespace = namespace
	return r
}

// emptyView is the view of the zero Reader.
var emptyView = sync.OnceValue(func() view { return newStorage(nil).view() })

// currentView returns the view to read.
func (r Reader[T]) currentView() view {
	if r.snapshot.table != nil {
		return r.snapshot
	}
	if r.store != nil {
		return r.store.view()
	}
	return emptyView()
}

// Get returns the object under key: "namespace/name", or "name" in a reader of ByNamespace. If the
// object does not exist, apierrors.IsNotFound is true for the error. If it exists, but its only
// state is quarantined, the error is an *ObjectError, which wraps ErrQuarantined. Wait for the sync
// before relying on either.
func (r Reader[T]) Get(key string) (obj T, err error) {
	item, exists, err := r.get(table.NewKey(r.namespace, key))
	if err != nil {
		return obj, err
	}
	obj, fits := item.(T)
	if !exists || !fits {
		return obj, apierrors.NewNotFound(r.resource, key)
	}
	return obj, nil
}

// get returns the object of a key, or the error of a quarantined one.
func (r Reader[T]) get(key table.Key) (item any, exists bool, err error) {
	if r.snapshot.table == nil && r.store != nil {
		return r.store.getKey(key)
	}
	entry, exists := r.currentView().table.Get(key)
	if !exists {
		return nil, false, findIn(r.quarantined, key)
	}
	return entry.Object(), true, nil
}

// Lookup returns the object that can be read under key. False does not mean that the source lacks
// the object: its only state may be quarantined. Code that acts on a missing object, such as by
// deleting what belongs to it, must call Get, which tells the two apart.
func (r Reader[T]) Lookup(key string) (obj T, exists bool) {
	obj, exists = r.lookup(key).(T)
	return obj, exists
}

// lookup returns the object under key, nil if there is none.
func (r Reader[T]) lookup(key string) any {
	isLive := r.snapshot.table == nil && r.store != nil
	if isLive && r.namespace == "" {
		obj, _ := r.store.table.Get(key)
		return obj
	}

	named := table.NewKey(r.namespace, key)
	if isLive {
		obj, _ := r.store.table.GetKey(named)
		return obj
	}
	entry, exists := r.currentView().table.Get(named)
	if !exists {
		return nil
	}
	return entry.Object()
}

// Len returns the number of objects.
func (r Reader[T]) Len() int {
	return r.all().len()
}

// List returns the selected objects; nil selects all. The error is nil.
func (r Reader[T]) List(selector labels.Selector) ([]T, error) {
	if selector == nil || selector.Empty() {
		return r.all().objects(), nil
	}
	list := []T{}
	for _, obj := range r.all().each {
		if selector.Matches(labelsOf(obj)) {
			list = append(list, obj)
		}
	}
	return list, nil
}

// labelsOf returns the labels of an object, none if it has no such method.
func labelsOf(obj any) labels.Set {
	labelled, ok := obj.(interface{ GetLabels() map[string]string })
	if !ok {
		return nil
	}
	return labelled.GetLabels()
}

// All iterates over keys and objects as they are when the loop begins.
func (r Reader[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { r.all().withKeys(yield) }
}

// Values is All without keys.
func (r Reader[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) { r.values(yield) }
}

// values is a method so that the compiler allocates nothing for a loop over Values.
func (r Reader[T]) values(yield func(T) bool) {
	selected := r.all()
	if selected.isWhole() {
		table.ObjectsOf(selected.view.table, yield)
		return
	}
	selected.each(func(_ table.Entry, obj T) bool { return yield(obj) })
}

// ByIndex returns the objects that have the value. It fails without the index.
func (r Reader[T]) ByIndex(index, value string) ([]T, error) {
	selected, err := r.having(index, value)
	if err != nil {
		return nil, err
	}
	return selected.objects(), nil
}

// AllByIndex is ByIndex as an iterator over keys and objects.
func (r Reader[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	_, err := r.having(index, value)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		selected, _ := r.having(index, value) // no index is ever removed
		selected.withKeys(yield)
	}, nil
}

// IndexValues returns the values of an index. It fails without the index.
func (r Reader[T]) IndexValues(index string) ([]string, error) {
	selected, err := r.having(index, "")
	if err != nil {
		return []string{}, err
	}
	all, count := selected.view.table.Values(selected.index)
	values := slices.AppendSeq(make([]string, 0, count), all)
	if selected.namespace == "" && table.HasOnly[T](selected.view.table) {
		return values, nil
	}
	return slices.DeleteFunc(values, func(value string) bool {
		selected.value = value
		return selected.isEmpty()
	}), nil
}

// selection is a part of a view: the Ts with a value in an index, or all of them, and only those of
// the namespace unless it is empty.
type selection[T any] struct {
	view view
	// index is a position or noIndex, which selects all values.
	index     int
	value     string
	namespace string
}

const noIndex = -1

// all selects all objects of the reader, by the index of namespaces if possible.
func (r Reader[T]) all() selection[T] {
	now := r.currentView()
	if r.indexed && r.namespace != "" {
		at, err := now.indexers.position(NamespaceIndex)
		if err == nil {
			return selection[T]{view: now, index: at, value: r.namespace}
		}
	}
	return selection[T]{view: now, index: noIndex, namespace: r.namespace}
}

// having selects the objects with a value in the named index.
func (r Reader[T]) having(name, value string) (selection[T], error) {
	now := r.currentView()
	at, err := now.indexers.position(name)
	return selection[T]{view: now, index: at, value: value, namespace: r.namespace}, err
}

// isWhole reports whether the selection has all Ts of the view.
func (sel selection[T]) isWhole() bool { return sel.index == noIndex && sel.namespace == "" }

func (sel selection[T]) isEmpty() bool {
	for range sel.each {
		return false
	}
	return true
}

// len returns the number of objects. It visits them if that is not known otherwise.
func (sel selection[T]) len() int {
	if sel.namespace != "" || !table.HasOnly[T](sel.view.table) {
		count := 0
		for range sel.each {
			count++
		}
		return count
	}
	if sel.index == noIndex {
		return sel.view.table.Len()
	}
	return sel.view.table.HavingLen(sel.index, sel.value)
}

// each iterates over the selection.
func (sel selection[T]) each(yield func(table.Entry, T) bool) {
	visit := func(entry table.Entry) bool {
		obj, ok := entry.Object().(T)
		if !ok || sel.namespace != "" && !isInNamespace(obj, sel.namespace) {
			return true
		}
		return yield(entry, obj)
	}
	if sel.index == noIndex {
		sel.view.table.Each(visit)
		return
	}
	sel.view.table.Having(sel.index, sel.value, visit)
}

func isInNamespace(obj any, namespace string) bool {
	named, ok := obj.(interface{ GetNamespace() string })
	return ok && named.GetNamespace() == namespace
}

// withKeys iterates over keys and objects of the selection.
func (sel selection[T]) withKeys(yield func(string, T) bool) {
	if !sel.isWhole() {
		sel.each(func(entry table.Entry, obj T) bool { return yield(entry.Key().String(), obj) })
		return
	}
	sel.view.table.EachWithKey(func(key string, entry table.Entry) bool {
		obj, ok := entry.Object().(T)
		return !ok || yield(key, obj)
	})
}

// objects returns the objects of the selection.
func (sel selection[T]) objects() []T {
	if sel.namespace != "" {
		list := []T{}
		for _, obj := range sel.each {
			list = append(list, obj)
		}
		return list
	}
	if sel.index == noIndex {
		return table.AppendObjectsOf(make([]T, 0, sel.view.table.Len()), sel.view.table)
	}
	return table.ObjectsOfHaving[T](sel.view.table, sel.index, sel.value)
}

// resourceOf guesses the API's name for objects of type T from the kind of the example, or from the
// Go type.
func resourceOf[T any](example any) schema.GroupResource {
	gvk := gvkOf(example)
	if gvk.Empty() {
		t := reflect.TypeFor[T]()
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		gvk = schema.GroupVersionKind{Kind: t.Name()}
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return resource.GroupResource()
}

// live reads the current content.
func (s *storage) live() Reader[any] { return Reader[any]{store: s} }

// Index returns the objects that share a value with obj.
func (s *storage) Index(indexName string, obj any) ([]any, error) {
	selected, err := s.live().having(indexName, "")
	if err != nil {
		return nil, err
	}
	values, err := selected.view.indexers.appendValues(nil, selected.index, obj)
	if err != nil {
		return nil, err
	}
	list := []any{}
	seen := map[table.Entry]bool{} // objects may share several values
	for _, value := range values {
		selected.value = value
		for entry, object := range selected.each {
			if !seen[entry] {
				seen[entry] = true
				list = append(list, object)
			}
		}
	}
	return list, nil
}

// ByIndex returns the objects that have the value.
func (s *storage) ByIndex(indexName, indexedValue string) ([]any, error) {
	return s.live().ByIndex(indexName, indexedValue)
}

// IndexKeys returns the keys of the objects that have the value, sorted.
func (s *storage) IndexKeys(indexName, indexedValue string) ([]string, error) {
	having, err := s.live().AllByIndex(indexName, indexedValue)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for key := range having {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that at least one object has.
func (s *storage) ListIndexFuncValues(indexName string) []string {
	values, _ := s.live().IndexValues(indexName)
	return values
}

// view is a store at one point in time.
type view struct {
	indexers *indexerSet
	table    *table.Snapshot
}

func (s *storage) view() view {
	// In this order: then the snapshot has these indexes.
	indexers := s.indexers.Load()
	return view{indexers: indexers, table: s.table.Snapshot()}
}

// frozen returns the view and the entries of the quarantine of one point in time. A write publishes
// both in one step (storage.end). A list that cannot be too old is the exception: it quarantines
// with each part, before the write that has its version (storeReplacement.takesPart).
func (s *storage) frozen() (v view, quarantined *table.Snapshot) {
	v.indexers = s.indexers.Load() // before the snapshot: see view
	v.table = s.table.SnapshotWith(func() { quarantined = s.quarantine.shared.snapshot() })
	return v, quarantined
}

// Snapshotter is implemented by this package's stores and informers.
type Snapshotter interface{ Snapshot() Reader[any] }

// Snapshot implements Snapshotter.
func (s *storage) Snapshot() Reader[any] { return s.live().Snapshot() }

func init() { inspect.Open = openView }

// inspectable is implemented by readers, and by what has one.
type inspectable interface{ inspect() inspect.View }

func openView(reader any) (inspect.View, bool) {
	switch r := reader.(type) {
	case inspectable:
		return r.inspect(), true
	case Snapshotter: // a type of another package around one of this package
		return r.Snapshot().inspect(), true
	}
	return inspect.View{}, false
}

func (s *storage) inspect() inspect.View { return s.live().inspect() }

func (r Reader[T]) inspect() inspect.View {
	selected := r.all()
	return inspect.View{
		Version: selected.view.table.Version,
		Len:     selected.len(),
		Each: func(yield func(table.Entry) bool) {
			selected.each(func(entry table.Entry, _ T) bool { return yield(entry) })
		},
		TableBytes: selected.view.table.Bytes(),
	}
}
