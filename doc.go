// Package cache mirrors a remote list/watch API into an indexed store in memory and notifies
// handlers of changes.
//
//	source ──▶ Reflector ──▶ intake ──▶ store ──▶ event log ──▶ handlers
//	                                     └──▶ readers: Get, snapshots
//
// It has the names and meanings of k8s.io/client-go/tools/cache, so that a program changes one
// import line. [docs/migrating.md] and [docs/faults.md] have the differences, [docs/behaviour.md]
// the exact rules, [docs/architecture.md] the internals.
//
// # Start here
//
// Name the source and the type of its objects, add handlers, run it:
//
//	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{})
//	_, err := pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
//		AddFunc: func(pod *corev1.Pod) { fmt.Println(pod.Name) },
//	})
//	if err != nil {
//		return err
//	}
//	go pods.Run(ctx)
//	if err := pods.WaitSynced(ctx); err != nil {
//		return err
//	}
//
// The source is a Kubernetes API (package kubeapi), a function that is polled (package sources), a
// fake for tests (package cachetest), or your own ([docs/sources.md]). InformerSet runs several
// informers. Functions for code written for client-go say so in their first line.
//
// # Objects are shared
//
// Readers and handlers receive the stored objects. Never change one, or anything reachable from it:
// copy it first. Only a transform may change an object, before it is stored. In tests, package
// mutation reports code that changes one.
//
// # Reading
//
// An Informer is read with Get, List, ByIndex, ByNamespace and All. The error of Get tells an
// object that does not exist from one that exists and is quarantined (see Failures); Lookup does
// not. Every read is a consistent point-in-time view, unordered. Two reads may observe different
// versions; use a Snapshot when they must agree. Taking one is O(1) and iterating it copies
// nothing. Writes copy the parts that a live snapshot references, so do not retain one.
//
// # Handlers
//
// Handlers may be added and removed at any time, also from inside a handler. One that joins a
// running informer receives the store's content as Adds of the initial list, and continues from
// there. HandlerOptions.Delivery chooses Ordered (the default), Coalesced (merged per key, for
// controllers that only enqueue keys) or OrderedUnbounded (never merged, as in client-go). A slow
// handler delays neither the store nor others.
//
// An object that was deleted and created again, so that its UID changed, is delivered as OnDelete
// with a tombstone and OnAdd. A relist delivers only what changed. A panic of a handler ends the
// run, unless HandlerOptions.RecoverPanics is set.
//
// # Failures
//
// Every failure reaches the error handler with a typed cause (CauseOf), and Status, which also has
// the phase, the versions and each handler's backlog. An object that cannot be decoded, keyed,
// transformed or indexed is quarantined: its previous state stays, it is reported once per version,
// and it is retried when it next arrives. Get of a key that has only a quarantined state returns
// ErrQuarantined, not "not found".
//
// # Versions
//
// The applied version is the one up to which everything is in the store; the received version, a
// Reflector's LastSyncResourceVersion, may be ahead of it. Status has both. A source whose versions
// regress is reported (VersionRegressionError) and listed again.
//
// # What is promised
//
// Each guarantee has tests with its number in internal/guarantees: those of G10 are TestG10*.
//
//	G1   When the source is quiet the cache equals it. After a failing source recovers, it
//	     converges within 60 s, or the source's Retry-After (honoured up to 5 minutes), plus one
//	     list. [docs/behaviour.md] has the limits for a source that went back in time.
//	G2   For each key, the states that readers and handlers observe are a subsequence of the
//	     source's states and never go backwards.
//	G3   For each key a handler receives Add, then Updates, then Delete; across keys in the
//	     source's order (Ordered, while not merging).
//	G4   Store and indexes are updated before handlers are notified.
//	G5   HasSynced becomes true once, after the whole first list has been applied; a handler's
//	     own, after it has processed that list.
//	G6   An object that cannot be applied is reported by key and cause and blocks no other. A list
//	     whose objects are all of the wrong Go type or kind is a failed list, not an empty one.
//	G7   Objects missing from a relist are removed, even if they were still queued or being
//	     processed.
//	G8   A slow handler's backlog is bounded by max(1,024, 2 x live keys) changes; beyond that
//	     they are merged to at most two calls for each key that is live, or that the handler still
//	     believes live. The memory is released once the backlog is drained.
//	G9   After its context ends, Run waits only for running calls into the source and handlers,
//	     and leaves no goroutine behind. Pending notifications are dropped. A source that ignores
//	     its context is waited for, and reported after 30 s.
//	G10  Readers never wait for the source, the queue, a handler or an O(n) write. A Snapshot
//	     shows objects, indexes and version of one point in time and never changes.
//	G11  The applied version is never ahead of the store's content, and never regresses without a
//	     report.
//	G12  Every failure is reported once, with a typed cause, to the error handler and the status.
//	G13  With default options a failing source receives at most 20 requests in the first minute of
//	     failures and 3 per minute afterwards; where each watch brought events or closed without
//	     error, at most 20 and 11. A request is one List or Watch call; answered pages of one list
//	     count once.
//	G14  A transform runs at most once per object received, and exactly once per object applied.
//
// G3 and G8 are about handlers, Config.Handler included; changes for a Config.Process wait in its
// queue. Not promised: every intermediate state; exact resync times; deletions during an outage as
// anything but tombstones (DeletedFinalStateUnknown); an order among namespaces of
// Config.Namespaces.
//
// # Concurrency
//
// All methods may be called concurrently. No goroutine starts before Run, which waits for all of
// them. User functions, clocks and sources are called without a lock, except
// DeltaFIFOOptions.KnownObjects, which is read under the queue's lock.
//
// [docs/architecture.md]: https://github.com/watchmirror/cache/blob/main/docs/architecture.md
// [docs/behaviour.md]: https://github.com/watchmirror/cache/blob/main/docs/behaviour.md
// [docs/faults.md]: https://github.com/watchmirror/cache/blob/main/docs/faults.md
// [docs/migrating.md]: https://github.com/watchmirror/cache/blob/main/docs/migrating.md
// [docs/sources.md]: https://github.com/watchmirror/cache/blob/main/docs/sources.md
package cache
