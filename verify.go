// Verify: a comparison of the store with a list of its source. Which differences are errors, and
// which are changes after the list?

package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/internal/table"
)

// listedState is the state of a listed object.
type listedState struct {
	origin table.Origin
	// optional objects may be missing in the store: they do not fit, have no key (their name is
	// used), or the transform drops them.
	optional bool
}

// difference is a key that differs, with the states of its objects as far as these exist.
type difference struct {
	kind           differenceKind
	listed, stored table.Origin
	// certain is true if versions prove that the difference is no change after the list.
	certain bool
}

// differenceKind is the kind of a difference. See DivergenceError.
type differenceKind int

const (
	isMissing differenceKind = iota
	isExtra
	isOutdated
)

// Verify compares the store of a running informer with a list of the source. A difference is a
// *DivergenceError and reported; the informer lists again.
func (o informerBase) Verify(ctx context.Context) error {
	return callFeeds(ctx, "Verify", (*feed).verify, o.shared)
}

// verify compares the store with the source. If they differ, it reports that and makes the
// reflector list.
func (f *feed) verify(ctx context.Context) error {
	shard := f.reflector.shard
	ranges := shard.Settled()
	found, err := f.findDifferences(ctx)
	if err != nil {
		return err
	}
	hadOtherRanges := ranges == 0 || shard.Settled() != ranges
	if len(found) == 0 || hadOtherRanges {
		return nil
	}
	divergence := f.divergence(found)
	err = divergence
	if failed := f.reflector.relist(ctx); failed != nil {
		err = fmt.Errorf("%w; not repaired: %w", divergence, failed)
	}
	f.reflector.report(f.informer.ctx, err) // ctx may have ended
	return err
}

// findDifferences returns the differences between store and source. An uncertain difference may be
// a change after the list. If a second comparison finds it again, in the same states, it is none:
// the store had everything up to the second list.
func (f *feed) findDifferences(ctx context.Context) (map[table.Key]difference, error) {
	found, err := f.compare(ctx)
	if err != nil || !hasUncertain(found) {
		return found, err
	}
	again, err := f.compare(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(found, func(key table.Key, first difference) bool {
		second, differs := again[key]
		isSame := differs && second == first
		return !first.certain && !isSame
	})
	return found, nil
}

func hasUncertain(found map[table.Key]difference) bool {
	for _, d := range found {
		if !d.certain {
			return true
		}
	}
	return false
}

// isOrdered reports whether an origin has a version that can be compared with others.
func isOrdered(origin table.Origin) bool { return origin.Version() != "" }

// divergence returns the error for differences.
func (f *feed) divergence(found map[table.Key]difference) *DivergenceError {
	err := &DivergenceError{Name: f.reflector.name}
	for key, d := range found {
		switch d.kind {
		case isMissing:
			err.Missing = append(err.Missing, key.String())
		case isExtra:
			err.Extra = append(err.Extra, key.String())
		case isOutdated:
			err.Outdated = append(err.Outdated, key.String())
		}
	}
	slices.Sort(err.Missing)
	slices.Sort(err.Extra)
	slices.Sort(err.Outdated)
	return err
}

// compare returns the differences between the newest list of the source and a later state of the
// store, except those that versions show to be changes after the list.
func (f *feed) compare(ctx context.Context) (map[table.Key]difference, error) {
	before := f.store.LastStoreSyncResourceVersion()
	listed, version, err := f.listStates(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.catchUp(ctx, before, version); err != nil {
		return nil, err
	}
	found := map[table.Key]difference{}
	stored := f.store.storage.table.Snapshot()
	for key, state := range listed {
		if d, differs := f.compareListed(key, state, stored); differs {
			found[key] = d
		}
	}
	f.addExtra(found, stored, listed, version)
	return found, nil
}

// compareListed compares a listed object with the stored one.
func (f *feed) compareListed(
	key table.Key, state listedState, stored *table.Snapshot,
) (d difference, differs bool) {
	if state.optional || f.store.storage.quarantine.shared.hasSince(key, state.origin.Version()) {
		return difference{}, false
	}
	entry, exists := stored.Get(key)
	if !exists {
		return difference{kind: isMissing, listed: state.origin}, true
	}
	if entry.Origin() == state.origin || state.origin.OlderThan(entry.Origin()) {
		return difference{}, false
	}
	d = difference{
		kind:    isOutdated,
		listed:  state.origin,
		stored:  entry.Origin(),
		certain: isOrdered(state.origin) && isOrdered(entry.Origin()),
	}
	return d, true
}

// addExtra adds the stored objects that the list of a version lacks. Since the list an object may
// have been created again, in a bad state, or may have lost its key.
func (f *feed) addExtra(
	found map[table.Key]difference, stored *table.Snapshot,
	listed map[table.Key]listedState, version string,
) {
	_, hasNameless := listed[table.Key{}] // could be any object
	if hasNameless {
		return
	}
	listedAt := table.OriginOf(version, "")
	for entry := range stored.Each {
		key := entry.Key()
		_, isListed := listed[key]
		if isListed || !f.store.hasKey(key) || listedAt.OlderThan(entry.Origin()) {
			continue
		}
		hasLostKey := listed[table.KeyOf(nameOf(entry.Object()))].optional
		if hasLostKey || f.store.storage.quarantine.shared.hasSince(key, version) {
			continue
		}
		found[key] = difference{
			kind:    isExtra,
			stored:  entry.Origin(),
			certain: isOrdered(listedAt) && isOrdered(entry.Origin()),
		}
	}
}

// listStates lists the source at its newest version, in pages.
func (f *feed) listStates(
	ctx context.Context,
) (listed map[table.Key]listedState, version string, err error) {
	listed = map[table.Key]listedState{}
	items := 0 // of the page
	add := func(_ metav1.ListMeta, obj runtime.Object) error {
		items++
		f.addState(listed, obj)
		return ctx.Err()
	}
	options := metav1.ListOptions{
		Limit:         defaultPageSize,
		ShardSelector: f.reflector.shard.Selector(),
	}
	var tokens pageTokens
	for {
		items = 0
		listMeta, err := f.reflector.listItems(ctx, options, add)
		if err == nil && listMeta.Continue == "" {
			return listed, listMeta.ResourceVersion, nil
		}
		if err == nil {
			err = tokens.check(listMeta.Continue, items)
		}
		if err != nil {
			return nil, "", fmt.Errorf("listing for a comparison: %w", err)
		}
		options.Continue = listMeta.Continue
	}
}

// addState adds the state of a listed object, unless it belongs to another replica.
func (f *feed) addState(listed map[table.Key]listedState, obj runtime.Object) {
	var md metadata
	bad := f.reflector.examine(obj, &md)
	if f.reflector.excludes(&md, bad) {
		return
	}
	key, err := f.store.keyOf(obj, &md)
	if err != nil {
		key = table.KeyOf(nameOf(obj))
	}
	isUnusable := bad != nil || err != nil
	listed[key] = listedState{
		origin:   originOf(md.received),
		optional: isUnusable || f.isDropped(key, obj),
	}
}

// isDropped reports whether the transform drops an object that is not stored, or fails for it.
func (f *feed) isDropped(key table.Key, obj runtime.Object) bool {
	if f.intake.transform == nil {
		return false
	}
	if _, isStored := f.store.storage.table.GetKey(key); isStored {
		return false
	}
	_, keep, err := callTransform(key, f.store.keyFunc, f.intake.transform, obj)
	return err != nil || !keep
}

// verifyTimeout limits a call of Verify at intervals, so that a request that hangs does not end
// them.
const verifyTimeout = 10 * time.Minute

// verifyAtIntervals runs Verify until ctx ends, and reports its failures. Verify itself reports
// differences.
func (f *feed) verifyAtIntervals(ctx context.Context) {
	const jitter = 0.1
	interval := f.informer.options.VerifyInterval
	for {
		select {
		case <-f.informer.clock.After(wait.Jitter(interval, jitter)):
		case <-ctx.Done():
			return
		}
		err := f.verifyWithin(ctx, verifyTimeout)
		if err != nil && ctx.Err() == nil && !errors.As(err, new(*DivergenceError)) {
			f.reflector.report(ctx, err)
		}
	}
}

// verifyWithin waits for the first list, without a limit, and then verifies.
func (f *feed) verifyWithin(ctx context.Context, limit time.Duration) error {
	if err := WaitForDone(ctx, f.synced); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f.startCall(ctx, "Verify", (*feed).verify)()
}
