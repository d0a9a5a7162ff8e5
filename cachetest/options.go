package cachetest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultBookmarkInterval is how often a watch that allows bookmarks gets one
// when Options.BookmarkInterval is zero. API servers send about one a minute,
// and one more two seconds before the watch's timeout, as a Source does.
const DefaultBookmarkInterval = time.Minute

// Options configure a Source. The zero value is a source for objects of any
// type with an unlimited history, numbering its versions from 1.
type Options struct {
	// GroupVersionKind is what one object of the source is. It is put on
	// unstructured objects stored without a kind, and on lists and bookmarks of
	// unstructured objects. Typed objects keep the TypeMeta they came with.
	// Without it the source uses that of the first object it was given.
	GroupVersionKind schema.GroupVersionKind

	// Resource is the name that errors use ("pods \"web-1\" not found").
	// Default: the plural of GroupVersionKind's kind, or "objects".
	Resource schema.GroupResource

	// NewObject returns an empty object of the source's type; bookmarks are made
	// of it. Default: the type of NewList's items, else that of the first object
	// stored. A source of typed objects that may be watched before it holds any
	// needs NewObject or NewList, because a bookmark of a foreign type is what a
	// client must reject.
	NewObject func() runtime.Object

	// NewList returns an empty list for the objects, such as
	// func() runtime.Object { return &corev1.PodList{} }; its Items are filled by
	// meta.SetList. Default: an UnstructuredList for unstructured objects, a
	// PartialObjectMetadataList for those, else a metav1.List whose raw items
	// hold the objects themselves.
	NewList func() runtime.Object

	// FieldValue resolves a field selector's path for one object and says whether
	// the path can be selected by at all. It is asked first, outside of all locks,
	// possibly by several goroutines at a time. Default: metadata.name and
	// metadata.namespace, for unstructured objects any dotted path.
	FieldValue func(obj runtime.Object, path string) (value string, ok bool)

	// StartVersion is the resource version before the first change, so that the
	// first object stored gets StartVersion+1. A source that is listed or watched
	// while at version 0 first moves on to 1: "0" in a request means any version,
	// therefore no server answers with it.
	StartVersion uint64

	// HistoryLimit is how many events are kept; the oldest are compacted away as
	// new ones arrive, and a watch too slow for that ends with 410 Expired as on
	// an API server. Zero keeps all of them.
	HistoryLimit int

	// BookmarkInterval is the time between two bookmarks of a watch that allows
	// them: zero means DefaultBookmarkInterval, negative means none but those
	// that SendBookmarks asks for.
	BookmarkInterval time.Duration

	// IgnoreLimitAtZero answers a list at resource version "0" in one piece even
	// if it has a limit, as API servers do when they answer from their watch
	// cache. Without it every limit is honoured.
	IgnoreLimitAtZero bool

	// IgnoreTimeouts keeps watches open past their timeoutSeconds, as a broken
	// proxy or a half-open connection does.
	IgnoreTimeouts bool

	// ExpiredOnStream answers a watch from a compacted version with an open watch
	// whose only event is the 410 Expired, as API servers do that serve watches
	// from their watch cache. Without it Watch itself returns the error.
	ExpiredOnStream bool

	// RefuseFutureWatches answers a watch from a version that is not reached yet with
	// 504 Timeout and the cause ResourceVersionTooLarge. Without it such a watch is
	// accepted and silent until the source has come past that version, as on an API
	// server; a list, or a streaming list, of such a version is always answered 504.
	RefuseFutureWatches bool

	// NoWatchList makes the source one that does not know streaming lists: a
	// watch with sendInitialEvents is answered 422 Invalid.
	NoWatchList bool

	// WatchListUnsupported is what the marker IsWatchListSemanticsUnSupported
	// returns. It changes nothing else: with it false and NoWatchList true the
	// source promises a streaming list and then refuses it.
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
