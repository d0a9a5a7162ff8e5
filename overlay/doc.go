// Package overlay shows a program its own writes at once, before the watch delivers them.
//
// A controller that creates an object and reads its cache right afterwards does not find it there, and creates another one.
// An [Overlay] is a view of an informer's store, with the same reads. What the program passes to [Overlay.Observed], the
// object that a create, update or patch call has returned, is in it from then on: by key, in lists, indexes and
// snapshots. [Overlay.ObservedDelete] hides what a delete call has removed.
//
//	pods, err := overlay.New(informer, overlay.Options[*corev1.Pod]{})
//	go pods.Run(ctx)
//	...
//	created, err := client.Create(ctx, pod)
//	if err == nil {
//		err = pods.Observed(created)
//	}
//	owned, err := pods.ByIndex("owner", name) // has created
//
// # What is shown
//
// For each key, the newest of the store's state and the observed writes. An observed write is obsolete once the store has
// its version or a newer one, another object under the key, or its deletion. That is so at the moment of each read: an
// observed write never hides a foreign change or deletion that the store has. An answer that comes late, after a
// newer one or after the watch, changes nothing.
//
// Versions that are decimal numbers decide, as those of Kubernetes are: with the store's applied version it is known even
// whether an object that is absent was deleted or has not come yet. Where versions are not ordered, a write is obsolete
// once the watch has delivered that version or the object's deletion, or the store has another UID.
//
// A write that the watch does not deliver within [Options.MaxAge] is no longer shown, which is reported.
//
// # Limits
//
// Versions must be those of the informer's source. A sources.PollingSource assigns its own: an overlay cannot compare
// them. Objects without a version are shown only where the store has no object. A transform of the informer should
// keep UID and version; see [Options.Transform], also for an informer with a selector.
//
// An answer that is observed after the object was deleted again is ignored only where versions are ordered; elsewhere the
// object is shown until it expires.
package overlay
