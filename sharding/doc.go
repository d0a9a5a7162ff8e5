// Package sharding divides the objects of a source among the replicas of a program. Each replica
// mirrors and handles its share, and no object has two owners.
//
// An object belongs to the range that contains the hash of its UID. The hash is that of Kubernetes
// API servers (64-bit FNV-1a), so every replica computes the same owner. A [Selector] has the
// ranges of one replica. Pass it to its reflectors or informers:
//
//	share := sharding.NewSelector(sharding.Split(3)[0]) // the first of three parts
//	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
//		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
//	})
//
// Requests have the ranges in the list option shardSelector. API servers with the feature gate
// ShardedListAndWatch (alpha in Kubernetes 1.36) then send only these objects, and report the
// ranges in the metadata of a list. All other sources send everything, and the reflector drops
// objects of other replicas. [Status] shows which of the two filters.
//
// # Changing the ranges
//
// [Selector.Set] and [Selector.Apply] change the ranges during the run. Each reflector lists:
// objects that leave the share are delivered as deletions (tombstones), new ones as additions, and
// the others not at all. Apply returns when the stores have changed. Informer.WaitForHandler then
// waits until a handler has processed the changes. While the source does not respond, no object
// leaves the store. [Selector.Includes] is exact as soon as Set was called: call it before each
// effect outside of the program.
//
// # Assigning ranges
//
// This package does not decide which replica has which ranges. A fixed number of replicas needs no
// coordination: each has the part with its ordinal. Replicas that come and leave elect an owner of
// each part with an existing library ([docs/scaling.md]).
//
// # Objects without a UID
//
// They are hashed by their key, namespace/name. API servers do not do that; if one filters objects
// without a UID, the list fails. UIDs must be random like those of Kubernetes: most consecutive
// numbers have the same owner. An object that cannot be decoded and has no readable UID is
// quarantined by all replicas until its next state.
//
// A store that is not from package cache receives, unless the server filters, a Delete for each
// event of another replica's object. It has the store's object under that key (if the store has
// GetByKey), or a tombstone.
//
// [docs/scaling.md]: https://github.com/watchmirror/cache/blob/main/docs/scaling.md
package sharding
