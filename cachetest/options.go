package cachetest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultBookmarkInterval is the time between two bookmarks of a watch if Options.BookmarkInterval
// is zero. Like API servers, a Source sends one more two seconds before the watch's timeout.
const DefaultBookmarkInterval = time.Minute

// Options configure a Source. The zero value allows objects of any type, and has an unlimited
// history and versions from 1.
type Options struct {
	// GroupVersionKind is set on unstructured objects stored without a kind, and on lists and
	// bookmarks of unstructured objects. Typed objects keep their TypeMeta. Default: that of the
	// first object.
	GroupVersionKind schema.GroupVersionKind

	// Resource is the name in errors ("pods \"web-1\" not found"). Default: the plural of the kind,
	// or "objects".
	Resource schema.GroupResource

	// NewObject returns an empty object of the source's type, for bookmarks. Default: the type of
	// NewList's items, else that of the first stored object, else unstructured. For typed objects
	// set NewObject or NewList if a bookmark may be sent before the first object is stored, and the
	// client checks its type: client-go's reflectors do, this module's do not. RigOver also makes
	// its objects with it. NewTestSourceOf and NewSourceOf set it.
	NewObject func() runtime.Object

	// NewList returns an empty list, such as func() runtime.Object { return &corev1.PodList{} }.
	// Default: an UnstructuredList, a PartialObjectMetadataList, or a metav1.List with the objects
	// as raw items.
	NewList func() runtime.Object

	// FieldValue returns the value at a field selector's path, and whether the path is supported.
	// It may be called concurrently, without a lock. Default: metadata.name and metadata.namespace;
	// for unstructured objects any dotted path.
	FieldValue func(obj runtime.Object, path string) (value string, ok bool)

	// StartVersion is the resource version before the first change: the first object gets
	// StartVersion+1. A source at version 0 moves to 1 when it is listed or watched, since "0" in a
	// request means any version.
	StartVersion uint64

	// HistoryLimit is the number of changes kept; a watch that falls behind ends with 410 Expired.
	// Zero keeps all.
	HistoryLimit int

	// BookmarkInterval is the time between two bookmarks of a watch that allows them. Zero means
	// DefaultBookmarkInterval, negative means no periodic bookmarks.
	BookmarkInterval time.Duration

	// IgnoreLimitAtZero ignores the limit of a list at resource version "0", as API servers do when
	// they list from their watch cache.
	IgnoreLimitAtZero bool

	// IgnoreTimeouts keeps watches open past their timeoutSeconds, like a half-open connection.
	IgnoreTimeouts bool

	// ExpiredOnStream makes a watch from a compacted version a stream with one 410 Expired event,
	// as API servers do from their watch cache. Otherwise Watch returns the error.
	ExpiredOnStream bool

	// RefuseFutureWatches makes a watch from a future version fail with 504 Timeout and the cause
	// ResourceVersionTooLarge. Otherwise it is accepted, and silent until the source is past that
	// version, as on an API server.
	RefuseFutureWatches bool

	// NoWatchList makes a watch with sendInitialEvents fail with 422 Invalid: the source does not
	// support streaming lists.
	NoWatchList bool

	// ShardSelectors applies shardSelector and reports it in the metadata of lists, like API
	// servers with the feature gate ShardedListAndWatch. Otherwise shardSelector is ignored.
	ShardSelectors bool

	// WatchListUnsupported is the result of IsWatchListSemanticsUnSupported. If it is false and
	// NoWatchList is true, the source announces streaming lists and refuses them.
	WatchListUnsupported bool
}

// bookmarkInterval returns zero for no periodic bookmarks.
func (o Options) bookmarkInterval() time.Duration {
	switch {
	case o.BookmarkInterval == 0:
		return DefaultBookmarkInterval
	case o.BookmarkInterval < 0:
		return 0
	}
	return o.BookmarkInterval
}
