// The lists that a reflector writes to a store of this package. Which of the listed objects have
// changed, which stored ones are missing, and when do readers see the list?

package cache

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/watchmirror/cache/internal/table"
)

// storeReplacement is the Replacement of a store of this package.
type storeReplacement struct {
	in intake
	// isInitial is true for the first list of an informer.
	isInitial bool
	// isVisible is true if the parts are published as they arrive. Those of other lists are staged
	// until Commit.
	isVisible bool
	// versionsReset is that of the ReplaceOptions.
	versionsReset bool
	// over is true after Commit and Abort.
	over bool
	// changed is true once a write of the list has added, changed or removed an object.
	changed bool
	// mayBeTooOld is true if the list may be refused before Commit, which then quarantines.
	mayBeTooOld bool
	// ofStream is true for a part that has events of a streaming list, which may have later states
	// of a key.
	ofStream bool
	// mergesKeys is true while items of a list are prepared, which should have each key once.
	mergesKeys bool

	// batch has the changes that are being prepared, staged those of Commit.
	batch  []change
	staged stagedChanges
	// stagedAt has the newest staged change of each key. It is nil until the list seems to have a
	// key twice.
	stagedAt   map[table.Key]*change
	duplicates duplicates
	// refused has the changes that cannot be applied and have not been returned.
	refused []change
	// retained has the keys whose newest state was refused, or is in Retain. Their stored and
	// quarantined states stay.
	retained map[table.Key]refusal
	// unwanted has the states that the transform has dropped from visible parts. The table has no
	// entry of their keys, which tells that an older state must not be stored.
	unwanted map[table.Key]table.Origin

	// marks has the stored entries that the list contains. Commit deletes the others.
	marks *table.Listing
	// displaced has the listed states of marked entries that other writes have changed or removed
	// since. Commit restores them: the last to commit decides. The storage's writing guards it.
	displaced map[table.Key]table.Slot
}

// refusal is a listed state that was refused. It is empty for an object of Retain.
type refusal struct {
	origin table.Origin
	// err is the entry for the quarantine, and cause its cause as the quarantine keeps it.
	err   *ObjectError
	cause error
	// inWrite is true if the state failed for an index that was added after it was prepared.
	inWrite bool
}

// BeginReplace implements Replacer.
func (k *keyedStore) BeginReplace(options ReplaceOptions) Replacement {
	in := k.intake()
	return in.BeginReplace(options)
}

// BeginReplace implements Replacer.
func (in *intake) BeginReplace(options ReplaceOptions) Replacement {
	storage := in.store.storage
	storage.writing.Lock()
	defer storage.writing.Unlock()
	r := &storeReplacement{
		in:            *in,
		isInitial:     in.publisher != nil && !in.publisher.hasListed,
		isVisible:     !in.store.committed && !options.Staged,
		versionsReset: options.VersionsReset,
		mayBeTooOld:   options.Staged,
		retained:      map[table.Key]refusal{},
		unwanted:      map[table.Key]table.Origin{},
		marks:         storage.table.BeginListing(),
		displaced:     map[table.Key]table.Slot{},
	}
	r.in.buffer = valueBuffer{} // its own: staged changes keep it
	storage.lists = append(storage.lists, r)
	return r
}

// Replace makes list the whole content.
func (k *keyedStore) Replace(list []any, resourceVersion string) error {
	r := k.BeginReplace(ReplaceOptions{Staged: true}).(*storeReplacement)
	_ = r.prepare(context.Background(), received{kind: Replaced}, list)
	var failures []error
	for _, c := range r.publish(resourceVersion) {
		failures = append(failures, c.prepared.failure())
	}
	return errors.Join(failures...)
}

// Add implements Replacement.
func (r *storeReplacement) Add(
	ctx context.Context, part ReplacementPart,
) (rejected []*ObjectError, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.over {
		return nil, errReplacementOver
	}
	handlers := r.in.publisher
	if handlers != nil && handlers.beginWrite(len(part.Items)+len(part.Deleted)) {
		defer handlers.endWrite()
	}
	r.ofStream = part.ofStream
	if err := r.prepare(ctx, received{kind: Replaced}, part.Items); err != nil {
		return nil, err
	}
	for _, obj := range part.Retain {
		key, err := r.in.store.eventKey(obj)
		if err == nil {
			r.retained[key] = refusal{}
		}
	}
	err = r.prepare(ctx, received{kind: Deleted, excluded: part.excluded}, part.Deleted)
	for _, c := range r.refused {
		rejected = append(rejected, cmp.Or(c.prepared.err, c.prepared.finalErr))
	}
	r.refused = nil
	return rejected, err
}

// prepare prepares objects in batches, and publishes or stages them.
func (r *storeReplacement) prepare(ctx context.Context, each received, objects []any) error {
	r.mergesKeys = each.kind != Deleted && !r.ofStream
	for part := range slices.Chunk(objects, table.InPlace) {
		r.fillBatch(each, part)
		r.compareWithStore()
		for i := range r.batch {
			if err := r.in.prepare(ctx, &r.batch[i]); err != nil {
				r.batch = nil // a part of it is prepared
				return err
			}
		}
		r.keepChanged()
		if r.isVisible {
			r.publishPart()
		} else {
			r.stageBatch()
		}
	}
	return nil
}

// fillBatch makes the batch of some objects. each is what they have in common. It only sets fields:
// the memory of the batch is empty, and writing a whole change takes as long as reading an object.
func (r *storeReplacement) fillBatch(each received, objects []any) {
	if r.batch == nil {
		r.batch = newPart()
	}
	r.batch = r.batch[:len(objects)]
	for i, obj := range objects {
		c := &r.batch[i] // empty
		c.received.kind = each.kind
		c.received.excluded = each.excluded
		c.received.object = obj
		c.prepared.mayExist = r.staged.count > 0
	}
}

// publishPart writes the batch, which readers see at once.
func (r *storeReplacement) publishPart() {
	write := storeWrite{scope: r.in.store.scope, list: r, feed: r.in.publisher}
	_, _ = r.in.store.storage.write(r.batch, write)
	clear(r.batch)
	r.in.buffer = r.in.buffer.emptied() // the table has copies
}

// stageBatch keeps the batch for Commit.
func (r *storeReplacement) stageBatch() {
	// Its memory belongs to staged changes; growing it would copy their values.
	r.in.buffer = valueBuffer{}
	if len(r.batch) == 0 {
		return
	}
	kept := r.staged.add(r.batch)
	if r.stagedAt != nil {
		r.indexStaged(len(r.batch))
	}
	if kept {
		r.batch = nil
	} else {
		clear(r.batch)
	}
}

// keepChanged drops what the write does not need: unchanged objects, and refused ones, which are
// quarantined, by Commit while the list may be too old.
func (r *storeReplacement) keepChanged() {
	kept := 0
	for i := range r.batch {
		c := &r.batch[i]
		if c.prepared.unchanged || !r.takesPart(c) {
			continue
		}
		r.noteUnwanted(c)
		c.received = received{} // it may be larger than what was prepared from it
		if kept < i {
			r.batch[kept] = *c
		}
		kept++
	}
	clear(r.batch[kept:])
	r.batch = r.batch[:kept]
}

// noteUnwanted records whether a listed state of a visible part was dropped by the transform.
func (r *storeReplacement) noteUnwanted(c *change) {
	if !r.isVisible || r.ofStream || r.in.transform == nil {
		return
	}
	if !c.prepared.dropped {
		delete(r.unwanted, c.prepared.key)
		return
	}
	own := strings.Clone(c.prepared.key.String()) // the key may share memory with the object
	r.unwanted[table.KeyOf(own)] = c.prepared.origin
}

// takesPart records a refused change, and reports whether the write needs the change.
func (r *storeReplacement) takesPart(c *change) bool {
	delete(r.retained, c.prepared.key)
	switch {
	case c.prepared.err != nil:
		r.refuse(c)
		if !r.mayBeTooOld {
			r.in.store.storage.quarantine.addChange(c)
			return false
		}
		known, _ := r.in.store.storage.quarantine.entry(c.prepared.key)
		c.prepared.err.repeated = known.repeats(c.prepared.err)
		c.prepared.object = nil
	case c.prepared.finalErr != nil:
		r.refused = append(r.refused, *c)
	}
	return true
}

// indexStaged records the places of the last staged changes, all of one part. An older state of a
// listed key is dropped: handlers receive one change.
func (r *storeReplacement) indexStaged(count int) {
	last := r.staged.parts[len(r.staged.parts)-1]
	added := last[len(last)-count:]
	for i := range added {
		newer := &added[i]
		older, isStaged := r.stagedAt[newer.prepared.key]
		if isStaged && newer.prepared.err == nil && r.mergesKeys && !older.prepared.deletes {
			*older = change{prepared: prepared{unchanged: true}}
		}
		r.stagedAt[newer.prepared.key] = newer
	}
}

// compareWithStore identifies the batch, keeps one state of each key that the list has twice, and
// finds the changes that leave their stored entry unchanged.
func (r *storeReplacement) compareWithStore() {
	r.in.store.identifyAll(r.batch)
	storage := r.in.store.storage
	storage.writing.Lock()
	defer storage.writing.Unlock()
	for i := range r.batch {
		r.batch[i].prepared.place = storage.table.Seek(r.batch[i].prepared.key)
	}
	if r.mergesKeys {
		r.mergeBatch()
	}
	for i := range r.batch {
		c := &r.batch[i]
		if c.prepared.err != nil {
			continue
		}
		found := storage.table.Find(c.prepared.key, c.prepared.place)
		c.prepared.unchanged = r.mergesKeys && r.dropLater(c, found)
		if c.prepared.unchanged || !found.Exists && r.isVisible {
			continue
		}
		again := r.marks.MayBeConfirmed(found) // then it may be staged
		r.marks.Confirm(found)
		_, refused := storage.quarantine.entry(c.prepared.key)
		c.prepared.unchanged = !c.prepared.deletes && !again && !refused && r.isStored(c, found)
		if c.prepared.unchanged {
			delete(r.retained, c.prepared.key) // the list has the stored state after all
		}
	}
}

// isStored reports whether an entry has the state of a listed object. After a reset the version may
// belong to another state.
func (r *storeReplacement) isStored(c *change, found table.Slot) bool {
	if !c.prepared.origin.Same(found.Origin) {
		return false
	}
	if !r.versionsReset {
		return true
	}
	return r.in.transform == nil && reflect.DeepEqual(found.Object, c.prepared.object)
}

// mergeBatch keeps one state of each key in the batch, so that handlers receive one.
func (r *storeReplacement) mergeBatch() {
	// Equal keys have equal places, which are side by side here: each is compared with all others.
	places := make([]table.Place, 0, table.InPlace)
	kept := 0
	for i := range r.batch {
		c := &r.batch[i]
		if slices.Contains(places, c.prepared.place) && r.mergeInto(r.batch[:kept], c) {
			continue
		}
		places = append(places, c.prepared.place)
		if kept < i {
			r.batch[kept] = *c
		}
		kept++
	}
	clear(r.batch[kept:])
	r.batch = r.batch[:kept]
}

// mergeInto merges a change into the earlier one with its key, and reports whether there is one.
func (r *storeReplacement) mergeInto(batch []change, later *change) (isListed bool) {
	at := later.prepared.indexIn(batch)
	if at < 0 {
		return false
	}
	earlier := &batch[at]
	origin := later.prepared.origin
	if r.duplicates.resolve(later.prepared.key, earlier.prepared.origin, origin) {
		*earlier = *later
	}
	return true
}

// dropLater reports, and records, whether a change is dropped, because an earlier part of the list
// has a newer state of its key.
func (r *storeReplacement) dropLater(c *change, found table.Slot) bool {
	earlier, isListed := r.earlierState(c.prepared.key, found)
	return isListed && !r.duplicates.resolve(c.prepared.key, earlier, c.prepared.origin)
}

// earlierState returns the state of a key in the earlier parts of the list.
func (r *storeReplacement) earlierState(
	key table.Key, found table.Slot,
) (earlier table.Origin, isListed bool) {
	refused, isRetained := r.retained[key]
	if isRetained {
		return refused.origin, refused.origin != table.Origin{}
	}
	staged := r.stagedChange(key, found)
	if staged != nil {
		isDeleted := staged.prepared.deletes && !staged.prepared.dropped
		return staged.prepared.origin, !isDeleted
	}
	unwanted, isUnwanted := r.unwanted[key]
	if isUnwanted {
		return unwanted, true
	}
	displaced, isDisplaced := r.displaced[key]
	if isDisplaced {
		return displaced.Origin, true
	}
	return found.Origin, r.marks.Has(found)
}

// stagedChange returns the newest staged change of a listed key, or nil. Lists seldom have a key
// twice, so positions are recorded from the first one on.
func (r *storeReplacement) stagedChange(key table.Key, found table.Slot) *change {
	if r.isVisible || !r.marks.MayBeConfirmed(found) {
		return nil
	}
	if r.stagedAt == nil {
		r.stagedAt = make(map[table.Key]*change, r.staged.count)
		r.staged.each(func(c *change) { r.stagedAt[c.prepared.key] = c })
	}
	return r.stagedAt[key]
}

// takeDuplicates implements duplicateFinder.
func (r *storeReplacement) takeDuplicates() duplicates { return r.duplicates.take() }

// hasState reports whether an entry has the state of a listed object, because another writer has
// added it.
func (r *storeReplacement) hasState(c *change, at table.Slot) bool {
	if !c.prepared.origin.Same(at.Origin) || c.prepared.deletes || r.versionsReset {
		return false
	}
	_, isQuarantined := r.in.store.storage.quarantine.entry(c.prepared.key)
	return !isQuarantined
}

func (r *storeReplacement) retains(key table.Key) bool {
	_, isRetained := r.retained[key]
	return isRetained
}

// refuse keeps the stored state of a change that cannot be applied.
func (r *storeReplacement) refuse(c *change) {
	err := *c.prepared.err // quarantining it again must not change the caller's
	r.retained[c.prepared.key] = refusal{
		origin: c.prepared.origin,
		err:    &err,
		cause:  c.prepared.quarantineErr,
	}
	r.refused = append(r.refused, *c)
}

// refuseInWrite is refuse for a state that has failed for an index added after it was prepared. It
// returns false if the list has refused a later one before.
func (r *storeReplacement) refuseInWrite(c *change) (isNewest bool) {
	earlier, isRetained := r.retained[c.prepared.key]
	if isRetained {
		r.refused = append(r.refused, *c)
		return earlier.err == nil
	}
	r.refuse(c)
	refused := r.retained[c.prepared.key]
	refused.inWrite = true
	r.retained[c.prepared.key] = refused
	return true
}

// noteApplied is called before a write of the list changes a key. A state that the write has
// refused before is an earlier one.
func (r *storeReplacement) noteApplied(key table.Key) {
	if r.retained[key].inWrite {
		delete(r.retained, key)
	}
}

// restoreRefusals quarantines the refused objects that other writes have released since, unless
// they have stored the same state or a newer one. The last to commit decides, and the source has
// these objects.
func (r *storeReplacement) restoreRefusals() {
	storage := r.in.store.storage
	for key, refused := range r.retained {
		_, isQuarantined := storage.quarantine.entry(key)
		if isQuarantined || refused.err == nil {
			continue
		}
		stored := storage.table.Find(key, storage.table.Seek(key))
		isSuperseded := refused.origin.Same(stored.Origin) || refused.origin.OlderThan(stored.Origin)
		if isSuperseded && !r.versionsReset {
			continue // as the newest state, an older one would admit events older than the stored one
		}
		storage.quarantine.addInWrite(refused.err, refused.cause)
	}
}

// looksAtManyKeys reports whether Commit looks at more keys than it changes: at all that the list
// lacks, that are quarantined, or that the list has refused.
func (r *storeReplacement) looksAtManyKeys() bool {
	quarantine := r.in.store.storage.quarantine
	return r.marks.Missing() > 0 || quarantine.any() || len(r.retained) > 0
}

// Commit implements Replacement. Its error joins an *ObjectError for each object that fails for an
// index added meanwhile.
func (r *storeReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	handlers := r.in.publisher
	if handlers != nil {
		defer handlers.listed() // after endWrite
		if handlers.beginWrite(0) {
			defer handlers.endWrite()
		}
	}
	var failures []error
	for _, c := range r.publish(version) {
		failures = append(failures, c.prepared.err)
	}
	return errors.Join(failures...)
}

// publish applies the staged changes, deletes the entries that the list lacks, and sets the
// version, in one write. It returns the refused changes.
func (r *storeReplacement) publish(version string) (refused []change) {
	storage := r.in.store.storage
	scope := r.in.store.scope
	replaced := func(key table.Key) bool { return scope.hasKey(key) && !r.retains(key) }
	w := storeWrite{
		scope:       scope,
		version:     version,
		setsVersion: true,
		list:        r,
		feed:        r.in.publisher,
	}
	storage.lock(r.staged.parts...)
	for r.stageDisplaced() {
		storage.writing.Unlock()
		storage.lock(r.staged.parts...)
	}
	storage.open(&w, r.staged.parts...)
	r.staged.each(func(c *change) { _ = storage.apply(&w, c) })
	for key := range r.marks.Unconfirmed {
		if replaced(key) {
			missing := prepared{key: key, deletes: true, place: storage.table.Seek(key)}
			_ = storage.apply(&w, r.staged.addOne(change{prepared: missing}))
		}
	}
	if storage.quarantine.any() {
		storage.quarantine.supersedeIf(replaced)
	}
	r.restoreRefusals()
	r.end()
	scope.committed = true
	if w.feed != nil {
		w.feed.hasListed = true
	}
	storage.end(&w, r.staged.parts...)
	refused = r.refused
	*r = storeReplacement{over: true, changed: r.changed}
	return refused
}

// Abort drops the staged changes. Visible ones stay.
func (r *storeReplacement) Abort() {
	if r.over {
		return
	}
	r.leaveStorage()
	*r = storeReplacement{over: true} // releases the changes
}

// leaveStorage ends the list in the storage.
func (r *storeReplacement) leaveStorage() {
	storage := r.in.store.storage
	storage.writing.Lock()
	defer storage.writing.Unlock()
	r.end()
}

// recordChange is called before a write of the list. An object in the same state may be written
// again, for example because it has no version.
func (r *storeReplacement) recordChange(c *change, at table.Slot) {
	if r.changed {
		return
	}
	if c.prepared.deletes {
		r.changed = at.Exists
		return
	}
	r.changed = !at.Exists || at.Origin != c.prepared.origin
}

// foundChanges implements changeFinder.
func (r *storeReplacement) foundChanges() (found, isKnown bool) { return r.changed, true }

// noteWrite is called before a write changes or removes the entry of a key. The first state that
// another write displaces is the listed one.
func (r *storeReplacement) noteWrite(w *storeWrite, key table.Key, at table.Slot) {
	if w.list == r {
		delete(r.displaced, key)
		return
	}
	_, again := r.displaced[key]
	if !again && r.marks.Has(at) {
		r.displaced[key] = at
	}
}

// stageDisplaced stages the displaced states, unless the list has a later state of their keys, or
// another write has stored the same state again. They need index values then, if it returns true.
func (r *storeReplacement) stageDisplaced() bool {
	if len(r.displaced) == 0 {
		return false
	}
	r.staged.each(func(c *change) { delete(r.displaced, c.prepared.key) })
	for key := range r.retained {
		delete(r.displaced, key)
	}
	entries := r.in.store.storage.table
	isAny := false
	for key, listed := range r.displaced {
		c := change{prepared: prepared{
			key:     key,
			object:  listed.Object,
			origin:  listed.Origin,
			version: listed.Origin.Version(), // for errors
			set:     &indexerSet{},           // it has the values of no index
		}}
		at := entries.Find(key, entries.Seek(key))
		if r.hasState(&c, at) {
			r.marks.Confirm(at)
			continue
		}
		r.staged.addOne(c)
		isAny = true
	}
	clear(r.displaced)
	return isAny
}

// end ends the list in the storage. The caller holds writing.
func (r *storeReplacement) end() {
	r.marks.End()
	storage := r.in.store.storage
	isThis := func(open *storeReplacement) bool { return open == r }
	storage.lists = slices.DeleteFunc(storage.lists, isThis)
}
