// Package overlay shows a program its own writes at once, before the watch delivers them.
//
// A controller that creates an object and reads its cache right afterwards does not find the
// object, and creates another one. An [Overlay] is a view of an informer's store with the same
// reads. Pass the object that a create, update or patch call returns to [Overlay.Observed]: from
// then on it is visible by key, in lists, indexes and snapshots. [Overlay.ObservedDelete] hides a
// deleted object.
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
// Each read shows, for each key, the newest of the store's state and the observed writes. An
// observed write is obsolete once the store has its version or a newer one, another object under
// the key, or its deletion. This is checked at each read: an observed write never hides a foreign
// change or deletion that the store has. The result of a call that is observed late, after a newer
// one or after the watch's event, has no effect.
//
// If versions are decimal numbers, as in Kubernetes, they are compared. Together with the store's
// applied version they even show whether an absent object was deleted or has not arrived yet. If
// versions are not ordered, a write is obsolete once the watch has delivered its version or the
// object's deletion, or the store has another UID.
//
// A write that the watch does not deliver within [Options.MaxAge] expires: it is no longer shown,
// and is reported.
//
// # Limits
//
// Versions must be those of the informer's source. A sources.PollingSource assigns its own, so an
// overlay cannot compare them. Objects without a version are shown only while the store has no
// object under their key. A transform of the informer should keep UID and version; see
// [Options.Transform], also for an informer with a selector.
//
// If an informer has a selector, an object that was deleted by the caller, and had left the
// selector and come back before, is shown again from the watch's event of its return until that of
// its deletion.
//
// If objects have no UIDs, one that the caller has deleted is shown again from a change that others
// made before the deletion until the watch delivers the deletion.
//
// If the result of a call is observed after the object was deleted again, it is ignored only if
// versions are ordered. Otherwise the object is shown until it expires.
package overlay
