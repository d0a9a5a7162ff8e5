// Package cache mirrors a remote list/watch API into memory: a source is listed
// and watched by a Reflector; what it brings goes into an indexed Store, what is out of
// the ordinary by way of a DeltaFIFO; and handlers are told what changed.
//
//	ListerWatcher ──lists, events──▶ Reflector ──the rest───▶ DeltaFIFO
//	 (yours)                    list · stream · watch · pause     │ batches, in the
//	                                     │                        ▼ source's order
//	                                     └──events, first list──▶ Informer ──▶ log ──▶ listeners ──▶ handlers
//	                                                              │ one write a batch   (a goroutine each)
//	readers ◀────────────── Snapshot ◀────────────── Indexer ◀────┘
//
// Names and meanings are those of k8s.io/client-go/tools/cache, so that a program
// changes one import line. What differs, and why, is in docs/migrating.md and
// docs/faults.md. Objects come from anything that lists and watches: a Kubernetes API
// (package kubeapi needs nothing but net/http), a test's fake (package cachetest), or a
// source of your own.
//
// # Start here
//
// Say what the source is and what type it sends, add handlers, run it:
//
//	pods := cache.NewInformerFor(source, cache.InformerConfig[*corev1.Pod]{})
//	pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
//		AddFunc: func(pod *corev1.Pod) { fmt.Println(pod.Name) },
//	})
//	go pods.Run(ctx)
//	err := pods.WaitSynced(ctx)
//
// An Informer is also where its objects are read: Lookup, List, ByIndex, ByNamespace,
// All. Its Status says whether it is alive, how far it has come, and how each handler
// does. InformerSet runs several. Code that is written for client-go's interfaces has
// them: NewSharedIndexInformer, and Informer.Shared.
//
// There are smaller things underneath, for those who build informers of their own. New
// makes a Controller, which keeps a store equal to a source and calls one handler
// itself; it also mirrors several namespaces into one store. Its parts are
// NewReflectorWithOptions, NewDeltaFIFOWithOptions and NewIndexer.
//
// # Objects are shared
//
// A store hands out the objects that it holds, and so does every handler. They,
// and all that can be reached from them, must never be changed: copy first. The
// library never changes an object either; only a transform may, before anyone
// else has seen it.
//
// # Reading
//
// Each answer of a store, a lister or a loop over one is of one moment, and in no order. Two
// answers may be of two moments; where they must belong together, ask a Snapshot of the
// informer or its lister, or SnapshotOf a store. It is had at once, shows objects, indexes
// and version of one moment for as long as it is kept, and its loops copy nothing. What is
// written meanwhile costs copies of what it shows, so it is for a round of work and not for
// ever.
//
// Whoever reads waits for a few changes of single objects at most, never for a list that is
// being applied. docs/performance.md says how, and how to find out what a program's own
// reading costs.
//
// # What is promised
//
// Each guarantee has tests with its number: those of G10 are TestG10*. docs/testing.md
// says which of them to read first, and which faults are planted to see that they fail.
//
//	G1   A source that is quiet is equalled in finite time. After one that
//	     failed heals, within 60 s, or the Retry-After it named (honoured up to
//	     5 minutes), plus one list; a second more if the source says that it has
//	     not come as far as the mirror. If it has gone back and does not say so
//	     (see Going back in time), that has to be noticed first: within two
//	     minutes more after an outage, or three minutes of silence.
//	G2   For each key, the states that a reader or handler sees are a
//	     subsequence of the source's, and never go backwards.
//	G3   A handler is told of each key in the order Add, Updates, Delete; across
//	     keys in the order in which the source sent them, as long as its delivery
//	     is Ordered and not merging.
//	G4   Store and indexes have changed before handlers are told.
//	G5   Synced turns true once, after the whole first list has been applied; a
//	     handler's own, after it has handled that list.
//	G6   What cannot be applied is reported by key and cause. It never holds
//	     back other objects and never makes synced lie. A list whose objects are
//	     all of the wrong Go type or kind is a failed list, not an empty one.
//	G7   After a relist, keys that are absent go, also if they were only queued
//	     or just being processed.
//	G8   What waits for a slow handler of an informer is bounded, and given back
//	     after the drain: up to max(1,024, 2 x live keys) changes; from then on
//	     they are merged, and what waits are at most two calls for each key that
//	     is live, or that this handler still believes live.
//	G9   After the context ends, Run waits for those calls into source and
//	     handlers that are running and for nothing else (what still waits for a
//	     handler is dropped), returns at once otherwise, and leaves nothing
//	     behind. A source that ignores its context is waited for, and named in a
//	     report after 30 s.
//	G10  Readers never wait for the source, the queue, a handler or an O(n)
//	     write. What a Snapshot shows, objects, indexes and version, was there at
//	     one moment, and stays as it was for as long as it is kept.
//	G11  The applied version never runs ahead of what the store holds, nor
//	     backwards without a report.
//	G12  Every failure is reported once, with a typed cause, to the error
//	     handler and the status.
//	G13  With default options a source whose requests fail, or whose watches
//	     end within 10 s, gets at most 20 requests in the first minute and 3 a
//	     minute after; where each watch moved the version and then closed
//	     without an error, at most 20 and 11. A request is one call of List or
//	     Watch; the answered pages of one list count once. The first minute
//	     begins with the first request of a run of failures, however long that
//	     took to fail; two minutes without a failure end the run. Within these
//	     limits the retries of the first minute come after 0.2, 0.4, 0.8, 1.6,
//	     3.2 s and then every 4 s, jittered; later pauses grow to 30 s.
//	G14  A transform runs at most once for each object received, and exactly
//	     once for each object applied.
//
// G3 and G8 speak of informers. A Config's Handler is told in the source's order by the
// goroutine that writes to the store, and what waits for it is every change since, in
// the queue.
//
// # Handlers
//
// Each handler of an informer has a goroutine of its own and a Delivery: Ordered, the
// default; Coalesced, for controllers that only want to know what to look at;
// OrderedUnbounded, which is client-go's. Neither the store nor another handler waits
// for it. It may be added and removed at any time, also from inside a handler. One that
// is added while the informer runs is told of what the store holds, as Adds of the
// initial list, and goes on from there.
//
// An object that was deleted and created again under its name, so that its UID changed,
// is told as a Delete with a tombstone and an Add, in every delivery; MergeRecreated
// makes it one Update, as client-go does. A relist tells of nothing that did not change,
// but of an object of which a newer state was held back and is no more.
// Each handler has a resync period of its own, kept by its own goroutine: at that time
// it is told, as an Update of an object to itself, of each object of which nothing
// waits for it.
//
// A panic of a handler goes through apimachinery's panic handlers. By default it then
// ends the run and comes out of Run, and so ends the process, unless somebody recovers it
// there; if another handler or the source keeps Run from returning, it ends the process
// after 30 s, and then nobody can recover it. What is made of several, an InformerSet or
// the Controller of Config.Namespaces, may take 30 s once more. With
// HandlerOptions.SurvivePanics, or where apimachinery's ReallyCrash is false, it is counted
// and reported, and the handler goes on, its sync included.
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
// In an event it never causes a list. Get and GetByKey of a store, and Get of a lister, answer for a key
// that has no other state with an error, ErrQuarantined, and not with "not found": the
// source has the object. An object whose key cannot be read is reported by its place
// or version, and nothing is kept for it.
//
// A source that cannot decode an object sends an Undecoded in its place, with as much
// of the metadata as it could read; that says which object is meant. If it says that
// the object was deleted, the object goes: nobody saw its final state, so a tombstone
// has the last known one.
//
// An item of a list that could not be decoded may have been damaged on its way, and the watch
// does not bring it again until it is next written. So there is one more list, after a pause
// of the backoff and within the limits of G13; until then the watch goes on, and no sync
// waits for it. Each version of an item has that once, and such lists are a minute apart:
// what cannot be decoded again stays quarantined.
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
// # Streaming lists
//
// A source that can is asked for a state as a watch that first sends everything. The
// bookmark that ends it must come within 10 s of the last event. After a stream that was
// silent for so long, or that the source rejected, the next state is a list; so it is after
// two streams in a row that failed otherwise, as those do whose connection drops. Streams
// are tried again after 10 minutes.
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
// or an event older than what was last received of its own key, be it quarantined, is
// reported and not applied (docs/intake.md has all rules for one change);
// the answer is a list at "", taken whatever its version. A source that says itself that
// it has not come as far, as one does that was restored from a backup, is listed at ""
// for that, and so is one that answers a list or stream at the mirror's version with
// "expired"; if what it has is older, that is reported and taken at once.
//
// API servers that were restored accept a watch from a version that they have not reached,
// and are silent until they have. So after a watch was refused or cut by more than a clean
// close, and when the watch of a source that sends bookmarks has been silent for 3 minutes,
// one list with limit=1 at "" is made beside the open watch; if its version is lower than the
// mirror's, the source has gone back. Such a check follows a second after the watch is open,
// 20 s after the last one at the earliest, within G13; it holds nothing up. A check that fails
// is reported, and made three times at most. A source without decimal versions
// is not checked; one that answers with more than one object,
// or without a version, is left alone for an hour. One that has gone back and has come to the
// mirror's version again, with other content, before it is checked cannot be told from one
// that never did: the next list notices. One that says nothing and answers a list with an
// older state is asked once more, after another pause, for the answer may be a replica's that
// lags. Once a source has gone back its versions are given out again: of the list that follows
// an object is unchanged only if its content is known to be the same.
//
// Before its end, a streaming list is held to the same: an event older than what it, or the
// store, has of the key, and a bookmark older than one before it, end it. The first events
// have no order among keys. After a stream that broke, no state is taken that is older than
// any event of it.
//
// Versions that are not decimal numbers are in no order, and equal is no regression.
// An event of another key below the last version is applied and leaves the version
// where it is.
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
// the queue's, so it must answer from memory and must not call the queue. Where that
// is a store of this package, the methods of its objects that say UID and resource
// version are called with it: the same holds for them. The
// order of locks is queue, then store; the reflector's own is held alone.
//
// Who writes to a store in which anything is held back, or of whose objects a transform
// has taken away what was received, has a lock meanwhile for which Status, Received and
// the queue wait, however large the write is. Who reads objects does not wait for it.
//
// An informer holds no lock while it goes from a write to telling its listeners: the
// number of the write says what of it a snapshot has. The order of its locks is set of
// informers, log, informer, listener, then the store's, and checker of a sync.
//
// # From an event to the handlers
//
// An informer applies the events that wait in the watch's channel together, up to 32 in one
// write, and publishes them once; with a transform, each is a write of its own. One that
// comes alone is not held up for others.
//
// The queue is for what is out of the ordinary. An event passes it by where nothing waits
// there, which is always so once the first list has been applied; but a deletion goes through
// it if its final state is not known, could not be decoded, or is to be transformed. The first
// list passes it by up to the first object that is there already, or that has no key or that
// no index takes, unless there is a transform or a mutation detector: then all of it goes
// through the queue. Of a later list, what has not changed is only noted, and the rest goes
// through it. For a Config's Handler or Process everything does.
//
// A write of up to 32 changes is made where readers see it, and they wait for that; a larger
// one, as a relist is, is made aside and shown in one step.
//
// The changes that handlers are notified of are appended to one log (internal/eventlog), which every
// listener reads with a cursor of its own; it is kept back to the slowest. A listener that is behind costs
// nothing more until its changes are merged: then each publication moves a bounded number of them from the
// log into the backlog of its cursor. A late handler and a resync read a snapshot of the store before they
// go on in the log.
//
// # Goroutines
//
// Nothing runs before Run. While it runs, a reflector uses the goroutine that
// called it, one more for as long as a call into the source lasts (and another while it checks
// the source's version beside an open watch), and, where it feeds one
// of our informers, one while a watch sends faster than that applies. An informer
// applies what comes on that same goroutine, and has one more for each handler (and one
// if it detects mutations). A controller has one for its consumer besides the
// reflector's; one of several namespaces has two for each, and one that notices when all
// have synced. Each is waited for before Run returns, and a panic in one comes out of
// Run as a *PanicError with the stack of the place that panicked.
//
// # Metrics
//
// ReflectorOptions.MetricsProvider makes the instruments of a reflector: lists and watches,
// how long they took, how much they brought, the last version. The InformerMetricsProvider
// of an informer's options makes those of an informer that has an Identifier. Each run makes
// its own when it starts; a provider that is a ReflectorMetricsReleaser or an
// InformerMetricsReleaser is notified when the run stops. A store alone has WithStoreMetrics.
// Instruments are called without a lock, most of them on the goroutine of the run, so they
// must not block.
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
//	snapshot          what a store held at one moment, unchanged for as long as it is kept
//	informer          reflector, queue, store and handlers in one
//	handler           what a user implements: OnAdd, OnUpdate, OnDelete
//	listener          what an informer has for each handler: its goroutine, and
//	                  what it still has to hear
//	log               what all listeners of an informer are to hear, once for all
//	delivery          how changes come to a handler: each, or merged by key
package cache
