package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// KeyValueStore is a store of keys whose changes have increasing revisions, for NewKeyValueSource.
// Packages sources/etcd and sources/nats have one each. The methods may be called concurrently, and
// must return when their context ends.
//
// A *apierrors.StatusError is passed on unchanged. For a revision that the store has forgotten,
// return Expired; for one that it has not reached, TooLarge. After ServiceUnavailable, or an error
// without a status, a reflector watches again, and lists if that fails ten times. After
// Disconnected it does not list.
//
// A store may also have the methods TypeDescription() string and SourceStatus() map[string]string,
// which name it in a log and on a status page.
type KeyValueStore interface {
	// List calls take once for each live key of the range, as it was at one revision. List passes
	// the revision to take and returns it. An error of take ends the list and is returned. more is
	// true if the limit omitted keys.
	List(
		ctx context.Context, keys KeyRange, take func(revision uint64, kv KeyValue) error,
	) (revision uint64, more bool, err error)
	// Watch starts to watch the changes after a revision. ctx is only that of the call, unlike in a
	// Source's WatchWithContext: the watch continues after ctx has ended, until its Stop.
	Watch(ctx context.Context, after uint64) (KeyWatch, error)
}

// KeyWatch is one watch. One goroutine at a time calls it.
type KeyWatch interface {
	// Next blocks until there are changes, and returns all changes of one revision, in order. A
	// revision without changes means that every change up to it has been returned: a bookmark.
	Next(ctx context.Context) (revision uint64, changes []KeyChange, err error)
	// Stop ends the watch and waits for its goroutines.
	Stop()
}

// KeyRange is the range of keys that a list requests.
type KeyRange struct {
	// Revision selects the state; 0 means the newest. A store without old states returns Expired
	// for any other, and must ignore Limit.
	Revision uint64
	// After is the last key of the previous page: the list begins after it. It is empty for the
	// first page.
	After string
	// Limit is the maximum number of keys; 0 means all. A store may ignore it. A store that applies
	// it must be able to list the first page's revision again for at least a minute, because the
	// next pages are requested at it.
	Limit int64
}

// KeyValue is the state of a key.
type KeyValue struct {
	// Key identifies the object: the text before its first slash is the namespace, the rest the
	// name. Without a slash all of it is the name.
	Key   string
	Value []byte
	// Created is the revision that created the key; the object's UID is derived from it. 0 means
	// that the object has no UID.
	Created uint64
	// Revision is the one that set the value, or that deleted the key.
	Revision uint64
}

// KeyChange is a change of a key: watch.Added, watch.Modified or watch.Deleted.
type KeyChange struct {
	Type watch.EventType
	// KeyValue is the new state. For a deletion it has the last value, and the deletion's revision.
	KeyValue
	// LastUnknown is true for a deletion whose last value is not known.
	LastUnknown bool
}

// KeyValueSource is a Source, and a ListerWatcher, over a KeyValueStore. All methods may be called
// concurrently.
//
// Resource versions are the store's revisions; "empty" is that of a store to which nothing was ever
// written. An object whose value cannot be decoded is quarantined. The changes of one revision,
// such as those of a transaction, are delivered one after the other with the same version: a reader
// may see only some of them.
type KeyValueSource[T Object] struct {
	store  KeyValueStore
	decode func(kv KeyValue) (T, error)

	mu sync.Mutex
	// partial has the revisions of which a stopped watch has sent some changes but not all. A watch
	// from such a revision begins before it.
	partial map[uint64]bool
}

var (
	_ cache.ListerWatcher = (*KeyValueSource[*Entry[string]])(nil)
	_ cache.Source        = (*KeyValueSource[*Entry[string]])(nil)
	_ cache.ItemLister    = (*KeyValueSource[*Entry[string]])(nil)
)

// NewKeyValueSource returns a source. decode makes an object from each listed or changed state,
// possibly concurrently. It must neither change nor retain the bytes of the value. The source sets
// the object's namespace, name and resource version, and its UID if it has none. An error or a
// panic of decode quarantines the object. NewKeyValueSource starts no goroutine, and panics if
// store or decode is nil.
func NewKeyValueSource[T Object](
	store KeyValueStore, decode func(kv KeyValue) (T, error),
) *KeyValueSource[T] {
	if store == nil || decode == nil {
		panic("sources: NewKeyValueSource: the store or the decode function is nil")
	}
	return &KeyValueSource[T]{store: store, decode: decode, partial: map[uint64]bool{}}
}

// List is ListWithContext without a context.
func (s *KeyValueSource[T]) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// ListWithContext returns a *metav1.List. It supports resource version, match, limit and continue
// token, as far as the store does. Selectors are refused with 400 Bad Request: use a separate
// prefix and source for each part.
func (s *KeyValueSource[T]) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	return collect(
		func(take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error) {
			return s.ListItems(ctx, options, take)
		},
	)
}

// TypeDescription names the objects of an untyped cache, in the words of the store's method of this
// name, if it has one.
func (s *KeyValueSource[T]) TypeDescription() string {
	if described, ok := s.store.(interface{ TypeDescription() string }); ok {
		return described.TypeDescription()
	}
	return ""
}

// SourceStatus returns details for a reflector's Status: those of the store's method of this name,
// if it has one.
func (s *KeyValueSource[T]) SourceStatus() map[string]string {
	if described, ok := s.store.(interface{ SourceStatus() map[string]string }); ok {
		return described.SourceStatus()
	}
	return nil
}

// ListItems implements cache.ItemLister.
func (s *KeyValueSource[T]) ListItems(
	ctx context.Context,
	options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error,
) (listMeta metav1.ListMeta, err error) {
	from, err := parsePosition(options)
	if err != nil {
		return listMeta, err
	}
	keys := KeyRange{Limit: options.Limit}
	switch {
	case options.Continue != "":
		revision, after, ok := strings.Cut(options.Continue, "/")
		keys.Revision, err = strconv.ParseUint(revision, 10, 64)
		if !ok || err != nil {
			return listMeta, apierrors.NewBadRequest("continue: invalid token")
		}
		keys.After = after
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		keys.Revision = from.revision
	}
	last := ""
	revision, more, err := s.store.List(ctx, keys, func(revision uint64, kv KeyValue) error {
		if from.revision > revision {
			return TooLarge(from.revision, revision)
		}
		last = kv.Key
		return take(metav1.ListMeta{ResourceVersion: formatPosition(revision)}, s.object(kv))
	})
	switch {
	case err != nil:
		return listMeta, requestError(ctx, err)
	case from.revision > revision:
		return listMeta, TooLarge(from.revision, revision)
	}
	listMeta.ResourceVersion = formatPosition(revision)
	if more {
		listMeta.Continue = formatVersion(revision) + "/" + last
	}
	return listMeta, nil
}

// object decodes a state and sets its metadata.
func (s *KeyValueSource[T]) object(kv KeyValue) Object {
	obj, err := callDecode(s.decode, kv)
	if err != nil {
		return setMetadata(&undecodableObject{err: fmt.Errorf("decode the value: %w", err)}, kv)
	}
	return setMetadata(obj, kv)
}

// setMetadata sets the metadata of an object from its key.
func setMetadata(obj Object, kv KeyValue) Object {
	namespace, name, _ := strings.Cut(kv.Key, "/")
	if namespace == "" || name == "" {
		namespace = ""
		name = kv.Key
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetResourceVersion(formatVersion(kv.Revision))
	if obj.GetUID() == "" && kv.Created > 0 {
		obj.SetUID(uidOf(kv))
	}
	return obj
}

// uidOf derives a UID from a key and the revision that created it, the same in every process. It is
// a hash, because package sharding needs random bits.
func uidOf(kv KeyValue) types.UID {
	sum := sha256.Sum256([]byte(formatVersion(kv.Created) + "/" + kv.Key))
	return types.UID(hex.EncodeToString(sum[:16]))
}

// emptyVersion is the version of a store at revision 0, to which nothing was ever written: "0"
// would mean any version.
const emptyVersion = "empty"

// position is the version of a request.
type position struct {
	revision uint64
	// anyVersion is true for "" and "0".
	anyVersion bool
}

func formatPosition(revision uint64) string {
	if revision == 0 {
		return emptyVersion
	}
	return formatVersion(revision)
}

// parsePosition parses the version of a request, and refuses selectors.
func parsePosition(options metav1.ListOptions) (position, error) {
	if options.LabelSelector != "" {
		return position{}, apierrors.NewBadRequest("labelSelector: not supported by this source")
	}
	if options.FieldSelector != "" {
		return position{}, apierrors.NewBadRequest("fieldSelector: not supported by this source")
	}
	if options.ResourceVersion == emptyVersion {
		return position{}, nil
	}
	revision, err := parseVersion(options)
	return position{revision, revision == 0}, err
}

// errLastUnknown does not quarantine: the deletion is applied, and handlers receive the last state
// in the cache.
var errLastUnknown = errors.New("the last value of the deleted key is unknown")

// event returns the event for a change.
func (s *KeyValueSource[T]) event(change KeyChange) watch.Event {
	if change.LastUnknown {
		return watch.Event{
			Type:   change.Type,
			Object: setMetadata(&undecodableObject{err: errLastUnknown}, change.KeyValue),
		}
	}
	return watch.Event{Type: change.Type, Object: s.object(change.KeyValue)}
}

// bookmark returns a bookmark with an empty object of the source's type.
func (s *KeyValueSource[T]) bookmark(revision uint64) watch.Event {
	bookmark := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(Object)
	bookmark.SetResourceVersion(formatPosition(revision))
	return watch.Event{Type: watch.Bookmark, Object: bookmark}
}

// watchStart returns the revision after which a watch from a revision begins.
func (s *KeyValueSource[T]) watchStart(from uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partial[from] {
		return from - 1
	}
	return from
}

// markPartial records a revision of which a watch has sent some changes but not all.
func (s *KeyValueSource[T]) markPartial(revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial[revision] = true
}

// requestError returns the context's error if it has ended, else err.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
