package cache

import "context"

// Replacer is an optional interface of a ReflectorStore that can take a list in
// parts. A reflector uses it for every list, streamed lists included; a store
// without it gets one Replace with everything.
//
// DeltaFIFO and the stores of NewStore and NewIndexer implement it. A type that embeds a DeltaFIFO
// is taken for a store without it, so that a Replace of its own is called.
type Replacer interface {
	// BeginReplace starts a replacement. It does not block. Of two that are open
	// at once, the one that commits last decides what is absent.
	BeginReplace(options ReplaceOptions) Replacement
}

// ReplaceOptions says what a replacement is about: always everything that is in the
// store on which it is begun. For a view that InNamespace made that is the namespace,
// and nothing else of the store behind it. Fields may be added; the zero value will
// go on meaning everything.
type ReplaceOptions struct {
	// Aside has the parts prepared aside, like those of a relist, also if nothing
	// has been committed yet. A reflector asks for it where a list has not said its
	// version, and may be older than what an earlier attempt has shown.
	Aside bool
	// VersionsReset says that the source has gone back in time and gives out versions
	// again: an object of the version last received may be another state, and is
	// unchanged only if its content is known to be.
	VersionsReset bool
}

// Replacement is one list on its way into a store: Part any number of times,
// then either Commit or Abort. Its methods are for one goroutine.
//
// The first replacement that a store sees is visible as it arrives: readers and
// handlers have its parts before it is whole, while the version stays empty and
// synced false until Commit. A later one (a relist), or one with Aside, is prepared
// aside and shows only at Commit, all of it at once: objects, indexes, deletions,
// version.
type Replacement interface {
	// Part takes some of the listed objects. An object that cannot be taken
	// (no key, a transform or an index function that fails) is returned in
	// rejected; its previous state stays, also through Commit, and the others
	// are taken. An object whose UID and resource version are those last
	// received for its key is unchanged: it is neither transformed nor told.
	//
	// Part may wait, holding no lock, while a controller writes to its Store and more
	// than one earlier part has not been written; it returns the context's error if
	// that ends first. It does not wait for a Handler or a Process: a server cuts a
	// list that is read too slowly. What waits for those, the list at most, waits in
	// the queue, as the Transformer has left it. Any error means that the replacement
	// is over: abort it.
	Part(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error)

	// Commit ends the list: what no part held is deleted, and version becomes
	// the store's version. It does not wait for the consumer. An error that joins
	// nothing but an *ObjectError each for single objects says what is the matter
	// with those: the list was taken.
	Commit(ctx context.Context, version string) error

	// Abort gives up. A relist drops what was prepared; the store is as it was.
	// A first list leaves its parts where they are, and the next commit deletes
	// what that one lacks. Abort after Commit does nothing.
	Abort()
}

// ReplacementPart is a piece of a list. The store owns the slices afterwards.
type ReplacementPart struct {
	// Items are the listed objects.
	Items []any
	// Keep are objects that the source has but that could not be taken as they
	// came (a wrong type, a body that could not be decoded). Only their key is
	// read: whatever the store holds under it stays through the commit. One
	// without a readable key keeps nothing.
	Keep []any
	// Gone are objects of earlier parts that have been deleted since: a stream
	// may tell so before it ends. Gone counts after Items and Keep of the same
	// part.
	Gone []any
}
