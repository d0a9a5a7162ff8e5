package conformance

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReflectorStore is a store that a reflector writes to. TestStore finds the optional methods of a Store, an Indexer and
// a Replacer by name.
type ReflectorStore interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// StoreConfig describes a store to TestStore. New is required; the rest is for unusual objects, keys or contents.
type StoreConfig struct {
	// New makes an empty store. It is called for each check, inside its bubble if Virtual is set. Use t.Cleanup to end
	// what it starts.
	New func(t testing.TB) ReflectorStore

	// Content returns the stored objects once all writes are applied. It is for a store without List, such as a queue.
	Content func(store ReflectorStore) ([]any, error)

	// Object makes an object. Default: a PartialObjectMetadata in the namespace StoreNamespace, with the mark in the
	// annotation MarkAnnotation.
	Object func(StoreObject) any
	// Mark returns an object's mark. Default: that annotation.
	Mark func(obj any) string
	// Key returns the expected key of an object. Default: namespace/name, or name.
	Key func(obj any) string
	// Unkeyable makes an object for which the key function fails. Default: a struct without metadata.
	Unkeyable func() any

	// SharedIndexers: GetIndexers returns the store's own map, not a copy.
	SharedIndexers bool
	// NoIndexErrors: the store's methods do not return an index function's error. client-go, for example, panics.
	NoIndexErrors bool

	// Virtual and Patience are as in ListerWatcherConfig.
	Virtual  bool
	Patience time.Duration
}

// StoreObject describes an object that StoreConfig.Object makes.
type StoreObject struct {
	// Name determines the key; two objects with one name have the same key.
	Name string
	// Mark distinguishes the states of an object.
	Mark string
	// UID and ResourceVersion are for the metadata, if it has any.
	UID             types.UID
	ResourceVersion string
}

// StoreNamespace is the namespace of the objects that TestStore makes.
const StoreNamespace = "shop"

// TestStore checks that a Store, Indexer or ReflectorStore keeps the promises on which reflectors and readers rely, one
// subtest each. Optional methods are checked if the store has them. It reads and writes concurrently, so run it with
// the race detector.
func TestStore(t *testing.T, config StoreConfig) {
	t.Helper()
	if config.New == nil {
		t.Fatal("conformance.TestStore: config.New is nil")
	}
	runChecks(t, config.pace(), storeChecks(), config.start)
}

func (c StoreConfig) pace() pace { return newPace(c.Virtual, c.Patience, 0) }

// storeTrial is a store under test.
type storeTrial struct {
	pace
	config StoreConfig
	ctx    context.Context
	store  ReflectorStore
	// versions is the number of objects made so far.
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
		t.Fatal("conformance.TestStore: config.New made no store")
	}
	return &storeTrial{pace: c.pace(), config: c, ctx: ctx, store: store}
}

// annotatedMark is the default Mark of both suites.
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

// storeChecks returns the checks of a store, the simple ones first.
func storeChecks() []check[*storeTrial] {
	return []check[*storeTrial]{
		{name: "a new store is empty", run: checkNewStore},
		{name: "an added object is found under its key", run: checkAdd},
		{name: "a newer state replaces the older one", run: checkUpdate},
		{name: "a deleted object is not found", run: checkDelete},
		{name: "a tombstone deletes its key", run: checkTombstone},
		{name: "Replace is the whole content", run: checkReplace},
		{name: "Resync changes nothing", run: checkResync},
		{name: "an object without a key is an error and changes nothing", run: checkUnkeyable},
		{name: "a list with an object without a key is an error and loses nothing", run: checkUnkeyableInList},
		{name: "returned slices are the caller's", lacks: lacksReading, run: checkReturned},
		{name: "the version is that of the last list or bookmark", lacks: lacksVersion, run: checkVersion},
		{name: "setting a version changes no object", lacks: lacksTelling, run: checkTelling},
		{name: "ObjectVersion is that of the received object", lacks: lacksReceived, run: checkReceived},
		{name: "readers and writers may run concurrently", lacks: lacksReading, run: checkConcurrency},
		{name: "a reader sees all of a Replace or nothing", lacks: lacksReading, run: checkAtomicReplace},
		{name: "indexes equal a full scan", lacks: lacksIndexes, run: checkIndexes},
		{name: "an index added later has the stored objects", lacks: lacksIndexes, run: checkIndexAdded},
		{name: "an index added while the store is written has everything", lacks: lacksIndexes, run: checkIndexAddedMeanwhile},
		{name: "an index that does not exist is an error", lacks: lacksIndexes, run: checkNoSuchIndex},
		{name: "an index of a used name is refused", lacks: lacksIndexes, run: checkIndexInUse},
		{name: "the map of index functions is the caller's", lacks: lacksOwnIndexers, run: checkIndexersCopied},
		{name: "an object that cannot be indexed is an error and changes nothing", lacks: lacksIndexErrors, run: checkIndexFailure},
		{name: "an index that fails for a stored object is refused", lacks: lacksIndexErrors, run: checkIndexRefused},
		{name: "a replacement is complete at its commit", lacks: lacksReplacement, run: checkCommit},
		{name: "a first list is visible as it arrives", lacks: lacksReplacement, run: checkFirstList},
		{name: "a relist shows nothing before its commit", lacks: lacksReplacement, run: checkRelist},
		{name: "a relist that is aborted changes nothing", lacks: lacksReplacement, run: checkAbort},
		{name: "a part retains and deletes objects", lacks: lacksReplacement, run: checkKeepAndDeleted},
		{name: "a part accepts objects with a key and rejects the others", lacks: lacksReplacement, run: checkRejected},
	}
}
