package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/internal/table"
)

// listedState is the state of a listed object.
type listedState struct {
	origin table.Origin
	// optional objects may be missing in the store: they do not fit, have no key (their name is used), or the transform drops
	// them.
	optional bool
}

// verify compares the store with the source. If they differ, it reports that and makes the reflector list.
func (f *feed) verify(ctx context.Context) error {
	shard := f.reflector.shard
	ranges := shard.Settled()
	found, listed, err := f.compare(ctx)
	if err != nil {
		return err
	}
	if len(found.Missing) > 0 { // or deleted after the list: only a second list can tell
		again, listedAgain, err := f.compare(ctx)
		if err != nil {
			return err
		}
		found.Missing = slices.DeleteFunc(found.Missing, func(text string) bool {
			key := table.KeyOf(text)
			return !slices.Contains(again.Missing, text) || listed[key] != listedAgain[key]
		})
	}
	if len(found.Missing)+len(found.Extra)+len(found.Outdated) == 0 || ranges == 0 || shard.Settled() != ranges {
		return nil // equal, or the list had other ranges than the store
	}
	slices.Sort(found.Missing)
	slices.Sort(found.Extra)
	slices.Sort(found.Outdated)
	err = found
	if failed := f.reflector.relist(ctx); failed != nil {
		err = fmt.Errorf("%w; not repaired: %w", found, failed)
	}
	f.reflector.report(f.informer.ctx, err) // ctx may have ended
	return err
}

// compare returns the differences between the newest list of the source and a later state of the store. Changes after the
// list cannot cause Extra and Outdated. Missing may have been deleted.
func (f *feed) compare(ctx context.Context) (*DivergenceError, map[table.Key]listedState, error) {
	before := f.LastStoreSyncResourceVersion()
	listed, version, err := f.listStates(ctx)
	if err == nil {
		err = f.catchUp(ctx, before, version)
	}
	if err != nil {
		return nil, nil, err
	}
	found, stored := &DivergenceError{Name: f.reflector.name}, f.storage.table.Snapshot()
	for key, state := range listed {
		entry, exists := stored.Get(key)
		switch {
		case state.optional || f.storage.quarantine.hasSince(key, state.origin.Version()):
		case !exists:
			found.Missing = append(found.Missing, key.String())
		case entry.Origin() != state.origin && !state.origin.OlderThan(entry.Origin()):
			found.Outdated = append(found.Outdated, key.String())
		}
	}
	listedAt := table.OriginOf(version, "")
	_, nameless := listed[table.Key{}] // could be any object
	for entry := range stored.Each {
		key := entry.Key()
		_, exists := listed[key]
		// After the list an object may have been created again, in a bad state, or may have lost its key.
		if exists || nameless || !f.scope.hasKey(key) || listedAt.OlderThan(entry.Origin()) ||
			f.storage.quarantine.hasSince(key, version) || listed[table.KeyOf(nameOf(entry.Object()))].optional {
			continue
		}
		found.Extra = append(found.Extra, key.String())
	}
	return found, listed, nil
}

// listStates lists the source at its newest version, in pages.
func (f *feed) listStates(ctx context.Context) (listed map[table.Key]listedState, version string, err error) {
	listed = map[table.Key]listedState{}
	r := f.reflector
	add := func(_ metav1.ListMeta, obj runtime.Object) error {
		var md metadata
		bad := r.examine(obj, &md, true)
		if r.excludes(&md, bad) {
			return ctx.Err()
		}
		key, err := f.keyOf(obj, &md)
		if err != nil {
			key = table.KeyOf(nameOf(obj))
		}
		state := listedState{originOf(md.received), bad != nil || err != nil}
		if _, stored := f.storage.table.GetKey(key); f.transform != nil && !state.optional && !stored {
			_, keep, err := callTransform(key, f.keyFunc, f.transform, obj)
			state.optional = err != nil || !keep
		}
		listed[key] = state
		return ctx.Err()
	}
	for options := (metav1.ListOptions{Limit: 500, ShardSelector: r.shard.Selector()}); ; {
		listMeta, err := r.listItems(ctx, options, add)
		if err != nil {
			return nil, "", fmt.Errorf("listing for a comparison: %w", err)
		}
		if listMeta.Continue == "" || listMeta.Continue == options.Continue {
			return listed, listMeta.ResourceVersion, nil
		}
		options.Continue = listMeta.Continue
	}
}

// verifyAtIntervals runs Verify until ctx ends, and reports its failures. Verify itself reports differences.
func (inf *sharedIndexInformer) verifyAtIntervals(ctx context.Context) {
	for {
		select {
		case <-inf.clock.After(wait.Jitter(inf.options.VerifyInterval, 0.1)):
		case <-ctx.Done():
			return
		}
		for _, f := range inf.feeds {
			err := f.startCall(ctx, "Verify", (*feed).verify)()
			if err != nil && ctx.Err() == nil && !errors.As(err, new(*DivergenceError)) {
				f.reflector.report(ctx, err)
			}
		}
	}
}
