package cachetest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReflectorStore is what a reflector needs of a store. TestStore finds by its methods
// what else a store can do: the reading ones of a Store, those of an Indexer, the
// versions (LastStoreSyncResourceVersion, Bookmark, UpdateResourceVersion), replacement
// in parts (BeginReplace) and ObjectVersion.
type ReflectorStore interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// StoreConfig says to TestStore how to make a store and what to put into it. New is
// required; the rest is for stores whose objects, keys or content are not the usual
// ones.
type StoreConfig struct {
	// New makes an empty store. It is called once for each check, inside of the
	// check's bubble if there is one. What it starts it must end by t.Cleanup.
	New func(t testing.TB) ReflectorStore

	// Content returns the objects that are in the store, once everything that the
	// store was given is applied. It is for a store that has no List, such as
	// a queue, whose content is what its consumer makes of it. Default: List.
	Content func(store ReflectorStore) ([]any, error)

	// Object makes an object. Default: a PartialObjectMetadata in the namespace
	// StoreNamespace, with the mark in the annotation MarkAnnotation.
	Object func(StoreObject) any
	// Mark reads an object's mark. Default: that annotation.
	Mark func(obj any) string
	// Key is the key that the store is to have for an object. Default:
	// "namespace/name", or the name where there is no namespace.
	Key func(obj any) string
	// Unkeyable makes something for which the store's key function fails. Default:
	// a struct without metadata.
	Unkeyable func() any

	// SharedIndexers: the map that GetIndexers returns must not be changed.
	SharedIndexers bool
	// NoIndexErrors: an index function that fails is not an error of the store's
	// methods. client-go's stores panic.
	NoIndexErrors bool

	// Virtual and Patience are as in ListerWatcherConfig.
	Virtual  bool
	Patience time.Duration
}

// StoreObject says what object StoreConfig.Object is to make.
type StoreObject struct {
	// Name is part of the key; two objects of one name have one key.
	Name string
	// Mark tells the states of an object apart.
	Mark string
	// UID and ResourceVersion belong into the metadata, if there is any.
	UID             types.UID
	ResourceVersion string
}

// StoreNamespace is the namespace of the objects that TestStore makes.
const StoreNamespace = "shop"

// TestStore checks that a store keeps what a reflector, and the readers of the store,
// rely on: subtests, each with the name of a promise. It is for the tests of
// a Store, an Indexer or a ReflectorStore. Optional methods are checked if the
// store has them; what it lacks is skipped with the reason.
//
// A store that can be read is read and written by several goroutines at once: run it
// with the race detector.
func TestStore(t *testing.T, config StoreConfig) {
	t.Helper()
	if config.New == nil {
		t.Fatal("cachetest.TestStore: config.New is nil")
	}
	runChecks(t, config.pace(), storeChecks(), config.start)
}

func (c StoreConfig) pace() pace { return newPace(c.Virtual, c.Patience, 0) }

// storeTrial is a store under check.
type storeTrial struct {
	pace
	config StoreConfig
	ctx    context.Context
	store  ReflectorStore
	// versions is how many objects were made.
	versions int
}

func (c StoreConfig) start(ctx context.Context, t testing.TB) *storeTrial {
	t.Helper()
	if c.Object == nil {
		c.Object = annotatedObject
	}
	if c.Mark == nil {
		c.Mark = annotatedMark
	}
	if c.Key == nil {
		c.Key = namespacedName
	}
	if c.Unkeyable == nil {
		c.Unkeyable = func() any { return struct{ NoMetadata bool }{true} }
	}
	store := c.New(t)
	if isNil(store) {
		t.Fatal("cachetest.TestStore: config.New made no store")
	}
	return &storeTrial{pace: c.pace(), config: c, ctx: ctx, store: store}
}

// annotatedMark is where both suites look for an object's mark.
func annotatedMark(obj any) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetAnnotations()[MarkAnnotation]
}

func annotatedObject(of StoreObject) any {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: StoreNamespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion,
		Annotations: map[string]string{MarkAnnotation: of.Mark},
	}}
}

func namespacedName(obj any) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	if accessor.GetNamespace() == "" {
		return accessor.GetName()
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

// storeChecks are the promises of a store, the simple ones first.
func storeChecks() []check[*storeTrial] {
	return []check[*storeTrial]{
		{name: "a new store is empty", run: checkNewStore},
		{name: "what is added is there under its key", run: checkAdd},
		{name: "a newer state takes the place of the older", run: checkUpdate},
		{name: "what is deleted is gone", run: checkDelete},
		{name: "Replace is the whole content", run: checkReplace},
		{name: "Resync changes nothing", run: checkResync},
		{name: "an object without a key is an error and changes nothing", run: checkUnkeyable},
		{name: "a list with an object without a key is an error and loses nothing", run: checkUnkeyableInList},
		{name: "what is returned is the caller's", lacks: lacksReading, run: checkReturned},
		{name: "the version is that of the last list or bookmark", lacks: lacksVersion, run: checkVersion},
		{name: "to be told a version changes no object", lacks: lacksTelling, run: checkTelling},
		{name: "what was received is known", lacks: lacksReceived, run: checkReceived},
		{name: "readers and writers may come at once", lacks: lacksReading, run: checkConcurrency},
		{name: "a reader sees all of a Replace or nothing", lacks: lacksReading, run: checkAtomicReplace},
		{name: "indexes equal a full scan", lacks: lacksIndexes, run: checkIndexes},
		{name: "an index added later has what is there", lacks: lacksIndexes, run: checkIndexAdded},
		{name: "an index added while the store is written has everything", lacks: lacksIndexes, run: checkIndexAddedMeanwhile},
		{name: "an index that does not exist is an error", lacks: lacksIndexes, run: checkNoSuchIndex},
		{name: "an index of a name that is taken is refused", lacks: lacksIndexes, run: checkIndexTaken},
		{name: "the map of index functions is the caller's", lacks: lacksOwnIndexers, run: checkIndexersCopied},
		{name: "an object that cannot be indexed is an error and changes nothing", lacks: lacksIndexErrors, run: checkIndexFailure},
		{name: "an index that fails for what is there is refused", lacks: lacksIndexErrors, run: checkIndexRefused},
		{name: "a replacement is whole at its commit", lacks: lacksReplacement, run: checkCommit},
		{name: "a first list shows as it comes", lacks: lacksReplacement, run: checkFirstList},
		{name: "a relist shows nothing before its commit", lacks: lacksReplacement, run: checkRelist},
		{name: "a relist that is aborted changes nothing", lacks: lacksReplacement, run: checkAbort},
		{name: "what a part keeps stays and what it takes back goes", lacks: lacksReplacement, run: checkKeepAndGone},
		{name: "a part takes what has a key and rejects the rest", lacks: lacksReplacement, run: checkRejected},
	}
}
