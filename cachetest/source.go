package cachetest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/option"
)

// Source is an in-memory collection of objects with resource versions, a history and a fault
// script. It can be listed and watched like an API server.
//
// All methods may be called concurrently. Objects are copied in and out. The only goroutines are
// those of open watches, and Close waits for them. In a testing/synctest bubble, list and watch
// inside the bubble; the Source may be made and filled outside.
type Source struct {
	options  Options
	resource schema.GroupResource

	mu       sync.Mutex
	history  history
	exemplar runtime.Object // the first stored object, which shows the type
	uids     uint64         // UIDs issued; never decreases, not even by Rollback
	epoch    int64          // increases whenever all continue tokens expire
	watches  map[*stream]struct{}
	faults   faults
	requests requests
	closed   bool
	plans    []*plan // faults that wait, or waited, for a request, if test is set

	test testing.TB // nil unless made by NewTestSource
}

// NewSource returns an empty source, with at most one Options. It starts no goroutine.
func NewSource(optional ...Options) *Source {
	options := option.AtMostOne("cachetest: NewSource", optional)
	s := &Source{
		options:  options,
		resource: options.Resource,
		history:  newHistory(options.StartVersion),
		watches:  map[*stream]struct{}{},
	}
	if s.resource.Empty() {
		s.resource = schema.GroupResource{Resource: "objects"}
		if kind := options.GroupVersionKind; !kind.Empty() {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			s.resource = plural.GroupResource()
		}
	}
	return s
}

// TypeDescription returns the version and resource of untyped objects, such as "v1 pods", or "" if
// Options name no kind.
func (s *Source) TypeDescription() string {
	if s.options.GroupVersionKind.Empty() {
		return ""
	}
	return s.options.GroupVersionKind.GroupVersion().String() + " " + s.resource.Resource
}

// NewSourceOf returns an empty source of objects of one type, such as *corev1.Pod. In a test use
// NewTestSourceOf.
func NewSourceOf[T runtime.Object]() *Source {
	return NewSource(Options{NewObject: newObjectOf[T]})
}

// NewTestSourceOf is NewTestSource for objects of one type, such as *corev1.Pod. It sets
// Options.NewObject.
func NewTestSourceOf[T runtime.Object](t testing.TB, optional ...Options) *Source {
	options := option.AtMostOne("cachetest: NewTestSourceOf", optional)
	options.NewObject = newObjectOf[T]
	return NewTestSource(t, options)
}

// newObjectOf returns an empty object of the type to which T points.
func newObjectOf[T runtime.Object]() runtime.Object {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
}

// Get returns a copy of an object, or a NotFound error.
func (s *Source) Get(namespace, name string) (runtime.Object, error) {
	s.mu.Lock()
	obj, exists := s.history.content[key{Namespace: namespace, Name: name}]
	s.mu.Unlock()
	if !exists {
		return nil, apierrors.NewNotFound(s.resource, name)
	}
	return obj.DeepCopyObject(), nil
}

// Objects returns copies of the current content, sorted by namespace and name.
func (s *Source) Objects() []runtime.Object {
	s.mu.Lock()
	state := s.history.snapshotAt(s.history.version)
	s.mu.Unlock()
	objects := make([]runtime.Object, 0, len(state.objects))
	for _, obj := range state.objects {
		objects = append(objects, obj.DeepCopyObject())
	}
	return objects
}

// Version returns the version of the current content.
func (s *Source) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.version
}

// ResourceVersion returns Version as a string.
func (s *Source) ResourceVersion() string {
	return formatVersion(s.Version())
}

// Advance adds n to the version without a change, as writes to other resources do on an API server.
// Only lists and bookmarks show it.
func (s *Source) Advance(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.version += n
}

// AdvanceCompacted is Advance and CompactWatches of all earlier versions in one step. A server does
// this when a backup is restored with a higher version (etcdutl's --bump-revision and
// --mark-compacted).
func (s *Source) AdvanceCompacted(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.version += n
	s.history.unwatchable = s.history.version
}

// Compact expires everything before version: exact lists, new watches and continue tokens of older
// versions fail with 410 Expired. Open watches still receive their events (BreakWatches ends them).
// A version above the current one means the current one.
func (s *Source) Compact(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.compacted = max(s.history.compacted, min(version, s.history.version))
	s.trimLocked()
}

// CompactAll is Compact of everything before the current version.
func (s *Source) CompactAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.compacted = s.history.version
	s.trimLocked()
}

// CompactWatches is Compact for new watches only. It happens on API servers when the watch cache
// has advanced but the storage still has the history: a client that lists an old version exactly
// cannot watch from it.
func (s *Source) CompactWatches(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.unwatchable = max(s.history.unwatchable, min(version, s.history.version))
}

// Rollback restores content and version of an earlier version, like a server restored from a
// backup, and closes all open watches. Later versions are issued again, and earlier continue tokens
// expire. A watch from a later version is accepted and silent, unless Options.RefuseFutureWatches
// is set. It fails if the version is compacted or not reached.
func (s *Source) Rollback(version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.history.compacted || version > s.history.version {
		return fmt.Errorf(
			"rollback to version %d: only %d to %d are kept", version, s.history.compacted,
			s.history.version)
	}
	s.history.rollback(version)
	s.epoch++
	for w := range s.watches {
		w.Stop()
	}
	return nil
}

// Close ends all watches and hanging requests and waits for the goroutines of the watches. Later
// lists and watches fail with ErrClosed. The content stays readable and writable. Closing twice is
// allowed.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.faults.releaseLocked()
	open := make([]*stream, 0, len(s.watches))
	for w := range s.watches {
		w.Stop()
		open = append(open, w)
	}
	s.mu.Unlock()
	for _, w := range open {
		<-w.finished
	}
	s.reportUnfired()
}

func formatVersion(v uint64) string { return strconv.FormatUint(v, 10) }

// parseVersion parses a resource version of a request; empty is zero.
func parseVersion(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf(
			"resourceVersion: invalid value %q: must be a decimal number",
			strings.ToValidUTF8(s, "?")))
	}
	return v, nil
}

// metaOf returns the metadata of a stored object, which always has some.
func metaOf(obj runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}

// copyAt returns a copy of obj with another version.
func copyAt(obj runtime.Object, version uint64) runtime.Object {
	copied := obj.DeepCopyObject()
	metaOf(copied).SetResourceVersion(formatVersion(version))
	return copied
}
