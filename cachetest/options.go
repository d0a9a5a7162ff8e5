package cachetest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultBookmarkInterval is the time between two bookmarks of a watch if Options.BookmarkInterval is zero. As API
// servers do, a Source sends one more two seconds before the watch's timeout.
const DefaultBookmarkInterval = time.Minute

// Options configure a Source. The zero value is useful: objects of any type, an unlimited history, versions from 1.
type Options struct {
	// GroupVersionKind is set on unstructured objects stored without a kind, and on lists and bookmarks of unstructured
	// objects. Typed objects keep their TypeMeta. Default: that of the first object.
	GroupVersionKind schema.GroupVersionKind

	// Resource is the name in errors ("pods \"web-1\" not found"). Default: the plural of the kind, or "objects".
	Resource schema.GroupResource

	// NewObject returns an empty object of the source's type, for bookmarks. Default: the type of NewList's items, else
	// of the first object stored. A source of typed objects that may be watched while empty needs NewObject or NewList.
	NewObject func() runtime.Object

	// NewList returns an empty list, such as func() runtime.Object { return &corev1.PodList{} }. Default: an
	// UnstructuredList, a PartialObjectMetadataList, or a metav1.List with the objects in its raw items.
	NewList func() runtime.Object

	// FieldValue returns the value of a field selector's path, and whether the path can be selected by. It may be
	// called concurrently, without a lock. Default: metadata.name and metadata.namespace; for unstructured objects any
	// dotted path.
	FieldValue func(obj runtime.Object, path string) (value string, ok bool)

	// StartVersion is the resource version before the first change: the first object gets StartVersion+1. A source at
	// version 0 moves to 1 when it is listed or watched, since "0" in a request means any version.
	StartVersion uint64

	// HistoryLimit is the number of events kept; a watch that falls behind ends with 410 Expired. Zero keeps all.
	HistoryLimit int

	// BookmarkInterval is the time between two bookmarks of a watch that allows them. Zero means
	// DefaultBookmarkInterval, negative only those of SendBookmarks.
	BookmarkInterval time.Duration

	// IgnoreLimitAtZero answers a list at resource version "0" unpaged even if it has a limit, as API servers do from
	// their watch cache.
	IgnoreLimitAtZero bool

	// IgnoreTimeouts keeps watches open past their timeoutSeconds, as a half-open connection does.
	IgnoreTimeouts bool

	// ExpiredOnStream answers a watch from a compacted version with a stream of one 410 Expired event, as API servers
	// do from their watch cache. Otherwise Watch returns the error.
	ExpiredOnStream bool

	// RefuseFutureWatches answers a watch from a future version with 504 Timeout and the cause ResourceVersionTooLarge.
	// Otherwise it is accepted and silent until the source is past that version, as on an API server.
	RefuseFutureWatches bool

	// NoWatchList answers a watch with sendInitialEvents with 422 Invalid: the source does not support streaming lists.
	NoWatchList bool

	// ShardSelectors filters by shardSelector and says so in the metadata of lists, as API servers do that have the feature gate
	// ShardedListAndWatch. Otherwise the option is ignored.
	ShardSelectors bool

	// WatchListUnsupported is the result of IsWatchListSemanticsUnSupported. With false, and NoWatchList true, the
	// source announces streaming lists and refuses them.
	WatchListUnsupported bool
}

// bookmarkInterval is zero when no timer is wanted.
func (o Options) bookmarkInterval() time.Duration {
	switch {
	case o.BookmarkInterval == 0:
		return DefaultBookmarkInterval
	case o.BookmarkInterval < 0:
		return 0
	}
	return o.BookmarkInterval
}
