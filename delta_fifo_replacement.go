package cache

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// queueReplacement is a list on its way into a queue.
type queueReplacement struct {
	queue *DeltaFIFO
	// visible is true for a first list, whose parts are queued as they come.
	visible bool
	over    bool
	// reset is ReplaceOptions.VersionsReset.
	reset bool

	// changes are those that are not queued yet; one without a key was taken
	// back. fresh is the place of the newest one of a key.
	changes []queued
	fresh   map[string]int
	// before are, beside changes, the place of the key's change before, or none.
	before []int
	// listed are the keys that stay: taken, unchanged, or present at the source
	// in a state that could not be taken.
	listed sets.Set[string]
	// withheld are those of the listed keys whose newest state could not be
	// taken, here or before it came here.
	withheld sets.Set[string]
	// lacksNothing is true if the consumer has nothing that was not listed. absent are, if
	// absentKnown, the keys of what may have to be deleted: nobody need look for others.
	lacksNothing bool
	absent       []string
	absentKnown  bool
	// unchecked is true for a list that may turn out to be too old: refused is what it has brought
	// and could not be queued, which is quarantined at Commit.
	unchecked bool
	refused   []arriving
}

// BeginReplace starts a replacement. See Replacer.
//
// The first one is queued part by part, and all of it is of the initial list. A
// later one, or one with Aside, is queued at Commit, in one piece with the version.
func (f *DeltaFIFO) BeginReplace(options ReplaceOptions) Replacement {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.newReplacement(!f.populated && !options.Aside)
	r.reset, r.unchecked = options.VersionsReset, options.Aside
	return r
}

func (f *DeltaFIFO) newReplacement(visible bool) *queueReplacement {
	return &queueReplacement{
		queue: f, visible: visible,
		fresh: map[string]int{}, listed: sets.Set[string]{}, withheld: sets.Set[string]{},
	}
}

// Replace makes list the whole content: each object of it comes out as Replaced,
// or Sync if the options do not ask for that, unless it is unchanged; whatever
// else is queued, handed out or known is deleted, as a tombstone.
//
// The error joins those of the objects that could not be taken: a KeyError or an
// *ObjectError each. They keep their previous state, all others were taken. An
// *ObjectError whose cause is a *StoreError is of an object that was deleted and that
// KnownObjects could not return: its tombstone is empty.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	r := f.newReplacement(false)
	var failures []error
	refusals, _ := r.takeItems(context.Background(), list)
	for _, refused := range refusals {
		failures = append(failures, refused.failure())
	}
	return errors.Join(append(failures, r.publish(resourceVersion)...)...)
}

// Part takes some of the listed objects. It waits only for the Store of a controller
// of this package.
func (r *queueReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	if r.over {
		return nil, errReplacementOver
	}
	if err := r.await(ctx); err != nil {
		return nil, err
	}
	refused, err := r.takeItems(ctx, part.Items)
	if err != nil {
		return nil, err
	}
	for _, obj := range part.Keep {
		if key, err := r.queue.keyOf(obj); err == nil {
			r.withhold(key)
		}
	}
	gone, unreadable := r.takeGone(part.Gone)
	var rejected []*ObjectError
	for _, refused := range slices.Concat(refused, unreadable) {
		rejected = append(rejected, refused.err)
	}
	if r.visible {
		rejected = append(rejected, r.show(gone)...)
	}
	return rejected, nil
}

func (r *queueReplacement) await(ctx context.Context) error {
	if r.visible {
		return r.queue.awaitRoom(ctx)
	}
	return ctx.Err()
}

// takeItems prepares the items and returns those that cannot be taken. It calls user
// code for each, and fails where ctx ends in between.
func (r *queueReplacement) takeItems(ctx context.Context, items []any) (refused []refusal, err error) {
	f := r.queue
	taken := make([]arriving, 0, len(items))
	for _, obj := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := arriving{queued: queued{Delta: Delta{f.listedType, obj}}}
		if err := f.identify(&a.queued); err != nil {
			refused = append(refused, refusal{obj, rejection(obj, err)})
			continue
		}
		a.keepText()
		taken = append(taken, a)
	}
	since := r.newestReceivedOf(taken)
	for i, a := range taken {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before, key := since[i], a.key.String()
		at, twice := r.fresh[key]
		if twice {
			before = lastReceived{origin: r.changes[at].from()}
		}
		if !before.deleted && (twice || !r.reset) && originOf(a.received).Same(before.origin) {
			r.list(key)
			continue
		}
		f.transform(&a)
		switch {
		case a.failure != nil:
			r.withhold(key)
			refused = append(refused, refusal{items[i], a.failure})
			r.quarantine(a)
		case a.unwanted:
			r.unlist(key)
			if r.visible {
				// Not left to the commit: what is visible is gone at once.
				r.prepare(key, queued{Delta: Delta{Type: Deleted}, key: a.key, received: a.received})
				delete(r.fresh, key)
			}
		default:
			r.list(key)
			r.prepare(key, a.queued)
		}
	}
	return refused, nil
}

// newestReceivedOf returns what was last received of each. For a first list, what
// known objects say counts only if it came through this queue: whoever consumes it
// has not been told of anything else.
func (r *queueReplacement) newestReceivedOf(arriving []arriving) []lastReceived {
	f := r.queue
	f.mu.Lock()
	defer f.mu.Unlock()
	since := make([]lastReceived, len(arriving))
	for i, a := range arriving {
		_, pending := f.newestLocked(a.key)
		if pending || f.populated || r.hasCome(a.key.String()) {
			since[i] = f.newestReceivedLocked(a.key)
		}
		if _, refused := f.refused(a.key); refused && originOf(a.received).Same(since[i].origin) {
			// The consumer has this state, perhaps with a Sync of it queued, and holds back
			// a newer one, which the source has undone: it is to hear of that.
			since[i] = lastReceived{}
		}
	}
	return since
}

// hasCome says whether something of a key has come before the end of the first list.
func (r *queueReplacement) hasCome(key string) bool {
	return r.queue.shown.Has(key) || r.listed.Has(key)
}

// quarantine quarantines what the list has brought, or will at Commit.
func (r *queueReplacement) quarantine(a arriving) {
	if r.unchecked {
		a.failure.repeated = r.queue.quarantine.knows(a.failure)
		r.refused = append(r.refused, a)
		return
	}
	r.queue.quarantine.add("", a.failure, a.kept)
}

// list notes that a key is listed and its newest state taken.
func (r *queueReplacement) list(key string) {
	r.listed.Insert(key)
	r.withheld.Delete(key)
}

// withhold notes that a key is listed and its newest state not taken. An earlier
// state that this list brought stays: it is newer than the one before the list.
func (r *queueReplacement) withhold(key string) {
	r.listed.Insert(key)
	r.withheld.Insert(key)
}

// unlist forgets that a key was listed, and what is not queued of it.
func (r *queueReplacement) unlist(key string) {
	r.listed.Delete(key)
	r.withheld.Delete(key)
	if _, fresh := r.fresh[key]; !fresh {
		return
	}
	for at := r.fresh[key]; at != none; at = r.before[at] {
		r.changes[at] = queued{}
	}
	delete(r.fresh, key)
}

// prepare keeps a change until it is queued.
func (r *queueReplacement) prepare(key string, c queued) {
	earlier, twice := r.fresh[key]
	if !twice {
		earlier = none
	}
	r.fresh[key] = len(r.changes)
	r.changes, r.before = append(r.changes, c), append(r.before, earlier)
}

// takeGone takes objects back. What is returned is only for a first list, where
// they may have been queued already.
func (r *queueReplacement) takeGone(gone []any) (deletions []arriving, unreadable []refusal) {
	f := r.queue
	for _, obj := range gone {
		a := arriving{queued: queued{Delta: Delta{Deleted, obj}}}
		if err := f.identify(&a.queued); err != nil {
			unreadable = append(unreadable, refusal{obj, rejection(obj, err)})
			continue
		}
		r.unlist(a.key.String())
		if !r.visible {
			continue
		}
		f.arriveDeleted(&a)
		deletions = append(deletions, a)
	}
	return deletions, unreadable
}

// show queues what there is, deletions last, as one part. It returns the errors
// of final states that could not be transformed.
func (r *queueReplacement) show(deletions []arriving) (failures []*ObjectError) {
	f := r.queue
	f.mu.Lock()
	defer f.unlock()
	f.listing = true
	before := f.log.end()
	r.queueLocked()
	for i := range deletions {
		a := &deletions[i]
		f.takeLocked(a)
		if a.failure != nil {
			failures = append(failures, a.failure)
		}
	}
	if f.log.end() > before {
		f.log.endPart()
	}
	return failures
}

// queueLocked queues what has been prepared. The caller holds the queue's mu.
func (r *queueReplacement) queueLocked() {
	f := r.queue
	for i := range r.changes {
		c := &r.changes[i]
		if c.key == (table.Key{}) {
			continue
		}
		if !r.withheld.Has(c.key.String()) { // which has been made: see takeItems
			f.releaseLocked(c)
		}
		f.addLocked(c)
	}
	r.changes, r.before = nil, nil
	clear(r.fresh)
}
