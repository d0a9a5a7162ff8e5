// Package cache mirrors a remote list/watch API into memory: a source is listed
// and watched by a Reflector, which feeds a DeltaFIFO, which feeds an indexed
// Store, which tells a handler what changed.
//
//	ListerWatcher ──lists, events──▶ Reflector ──────────▶ DeltaFIFO
//	 (yours)                    list · stream · watch · pause   │ batches, in the
//	                                                            ▼ source's order
//	readers ◀────────────────── Indexer ◀──one write a batch── Controller ──▶ handler
//
// Names and meanings are those of k8s.io/client-go/tools/cache, so that a program
// which builds its own reflectors changes one import line. What differs, and why,
// is in docs/faults.md. Objects come from anything that lists and watches: a
// Kubernetes API (package kubeapi needs nothing but net/http), a test's fake
// (package cachetest), or a source of your own.
//
// # Start here
//
// Make a store, say what the source is, run it:
//
//	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
//		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
//	})
//	controller := cache.New(&cache.Config{ListerWatcher: source, Store: indexer})
//	go controller.RunWithContext(ctx)
//
// New builds the queue and the reflector. Those who want the parts build them:
// NewReflectorWithOptions, NewDeltaFIFOWithOptions, and a Config with a Process.
//
// # Objects are shared
//
// A store hands out the objects that it holds, and so does every handler. They,
// and all that can be reached from them, must never be changed: copy first. The
// library never changes an object either; only a transform may, before anyone
// else has seen it.
//
// # What is promised
//
// Each guarantee has a test with its number.
//
//	G1   A source that is quiet is equalled in finite time. After one that
//	     failed heals, within 60 s, or the Retry-After it named (honoured up to
//	     5 minutes), plus one list.
//	G2   For each key, the states that a reader or handler sees are a
//	     subsequence of the source's, and never go backwards.
//	G5   Synced turns true once, after the whole first list has been applied.
//	G6   What cannot be applied is reported by key and cause. It never holds
//	     back other objects and never makes synced lie.
//	G7   After a relist, keys that are absent go, also if they were only queued
//	     or just being processed.
//	G9   After the context ends, Run waits for those calls into source and
//	     handler that are running and for nothing else, returns at once
//	     otherwise, and leaves nothing behind. A source that ignores its context
//	     is waited for, and named in a report after 30 s.
//	G11  The applied version never runs ahead of what the store holds, nor
//	     backwards without a report.
//	G12  Every failure is reported once, with a typed cause, to the error
//	     handler and the status.
//	G13  With default options a source whose requests fail, or whose watches
//	     end within 10 s, gets at most 10 requests in the first minute and 3 a
//	     minute after; where each watch moved the version and then closed
//	     without an error, at most 16 and 11. A request is one call of List or
//	     Watch; the answered pages of one list count once.
//	G14  A transform runs at most once for each object received, and exactly
//	     once for each object applied.
//
// The numbers G3, G4, G8 and G10 belong to handlers with queues of their own and
// to readers without locks, which this package does not have yet. What holds of
// them today: a Config's Handler is told after the store has changed, in the
// source's order, on the controller's goroutine.
//
// # What is not promised
//
// Every intermediate state: two updates may arrive as one. Exact resync times.
// Deletions that the source hid behind a relist come as tombstones
// (DeletedFinalStateUnknown), with the last state that was known.
//
// That an object goes whose deletion does not say which one it is, because not even
// its name could be read, or because the key function needs more than was read: it
// stays until the next list. Until then Status lists the deletion as quarantined, by
// its place in the watch ("watch event at version 7") or by its name.
//
// # Two versions
//
// Store.LastStoreSyncResourceVersion and Controller.LastSyncResourceVersion are
// the applied version: everything up to it is in the store. A reflector's own
// LastSyncResourceVersion is the last one that its store accepted; with a queue
// between the two it may be ahead. Status has both.
//
// # An object that cannot be taken
//
// One that cannot be decoded, keyed, transformed or indexed is quarantined: what
// was there before stays, also through a relist (but in a store that has no
// Replacer, which is given the rest); key and cause are reported once a version and
// listed in the status; it is tried again when it next arrives. Its version counts.
// It never causes a list. An object whose key cannot be read is reported by its place
// or version, and nothing is kept for it.
//
// A source that cannot decode an object sends an Undecoded in its place, with as much
// of the metadata as it could read; that says which object is meant. If it says that
// the object was deleted, the object goes: nobody saw its final state, so a tombstone
// has the last known one.
//
// # Replacement in parts
//
// A list goes into a store as begin, parts, and commit or abort (Replacer). The
// first list is visible as it arrives; the version stays empty, and synced false,
// until it is committed. A relist is prepared aside, unchanged objects shared, and
// published in one step: objects, indexes, deletions and version. If it is
// aborted, nothing has happened. So is a first list after one that was aborted, if its
// version comes after its objects: it may be older than what has been shown. A store
// without Replacer gets one Replace.
//
// # Lists item by item
//
// A source that is an ItemLister is not asked for a list in one object: it hands
// over each item as soon as it has been read. They reach the store in parts of 100,
// and while the store takes one in the source is not read, so that of a list only a few
// hundred items are in memory before a transform has made of them what is kept,
// however long the list or its pages are. Package kubeapi is one. A store without
// Replacer needs the whole list all the same.
//
// A source is not read at the pace of a Handler or a Process: API servers cut a list
// that is not read within a minute. What waits for those is queued, transformed.
//
// # Going back in time
//
// A list older than what was applied, a bookmark below the watch's last version,
// or an event older than the entry under its own key is reported and not applied;
// the answer is a list at "", taken whatever its version. Versions that are not
// decimal numbers are in no order, and equal is no regression. An event of another
// key below the last version is applied and leaves the version where it is.
//
// # Several namespaces
//
// A program that may not read all namespaces, or need not, mirrors those that it
// wants into one store: Config.Namespaces has a source for each. Each is listed and
// watched by a reflector of its own, with its own version, pauses, failures and
// status, and feeds its own part of the store, a view (InNamespace): a relist
// deletes only what is of its namespace, and one that is forbidden, absent or slow
// holds back no other. Every guarantee holds for each of them, G13 for each of
// their reflectors.
//
// All of it is synced when all are; SyncedIn tells of one. The store's version is
// the lowest of theirs, empty until each has one, so the sources should be of one
// server. The handler is told of one namespace at a time, but there is no order
// among namespaces: an owner in one may be told of before or after what it owns in
// another. It is never one merged watch.
//
// # Locks
//
// No function of yours (key, index, transform, handler, source, clock) is called
// under a lock, with one exception: DeltaFIFOOptions.KnownObjects is read under
// the queue's, so it must answer from memory and must not call the queue. The
// order of locks is queue, then store; the reflector's own is held alone.
//
// # Goroutines
//
// Nothing runs before Run. While it runs, a reflector uses the goroutine that
// called it, and one more for as long as a call into the source lasts; a
// controller has one for its consumer besides. One of several namespaces has two
// for each, and one that notices when all have synced. Each is waited for before Run
// returns, and a panic in one comes out of Run as a *PanicError with the stack of
// the place that panicked.
//
// # Words
//
//	resource version  what a source calls a state of itself: opaque, but ordered
//	                  where it is a decimal number
//	bookmark          a version without an object: "you have seen all up to here"
//	relist            a list after the first; what it lacks is gone
//	resync            handing out again what the store holds; nothing is listed
//	streaming list    a watch that first sends everything, then goes on
//	page              a piece of a list that the source makes: one answer
//	part              a piece of a list that the store is given
//	undecoded         sent by the source in a form that cannot be read
//	tombstone         a deletion that was noticed, not seen
//	indexer           a store with indexes
//	view              the part of a store that has one namespace
//	informer          a controller with handlers; this package has none yet
package cache
