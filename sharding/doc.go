// Package sharding divides the objects of a source among the replicas of a program: each mirrors and handles its share, and no
// object has two owners.
//
// An object belongs to the range that has the hash of its UID, by the function of Kubernetes API servers (64-bit FNV-1a), so every
// replica computes the same owner. A [Selector] has the ranges of one replica. Pass it to its reflectors or informers:
//
//	share := sharding.NewSelector(sharding.Split(3)[0]) // the first of three parts
//	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
//		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
//	})
//
// Requests carry the ranges as the list option shardSelector. API servers with the feature gate ShardedListAndWatch (alpha in
// Kubernetes 1.36) then send nothing else, and say so in the metadata of a list. All other sources send everything, and the
// reflector drops what is of other replicas. The status says which ([Status]).
//
// # A change of ranges
//
// [Selector.Set] and [Selector.Apply] change the ranges during the run. Each reflector lists: objects that leave are delivered as
// deletions (tombstones), those that come as additions, and those that stay not at all. Apply returns when the stores have changed.
// Informer.WaitForHandler then waits until a handler has handled that. As long as the source does not answer, nothing leaves the store:
// [Selector.Includes] is exact from the moment of Set on, and should be asked before each effect outside of the program.
//
// # Replicas that come and leave
//
// A [Coordinator] assigns ranges to replicas with leases. A range passes on only after its owner has released it, or after the
// owner's lease has expired; the owner stops before that by its own clock.
//
// # Objects without a UID
//
// They are hashed by their key, namespace/name. API servers do not do that; if one filters objects that have no UID, the list fails.
// UIDs must be as random as those of Kubernetes: of consecutive numbers most have the same owner.
// An object that could not be decoded, and whose UID is not known, is quarantined by all replicas until its next state.
//
// A store that is not of package cache receives, unless the server filters, a Delete for each event of another replica's object: of the
// object that it has under that key (if it has a GetByKey), or of a tombstone.
package sharding
