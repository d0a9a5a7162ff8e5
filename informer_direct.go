package cache

import (
	"context"

	"github.com/watchmirror/cache/internal/table"
)

// Events on the short way from a watch into an informer's store: past the queue, in which
// nothing waits, since all that comes is applied before the call returns that brought it.
// What an event does is what it would do by way of the queue. What is not ordinary goes
// that way: see directWrite.takes.

// directly is how many events are applied in one write: as many as a table changes where
// they stand. More would be prepared aside, which costs a copy of all that they touch.
const directly = 32

// directWrite is some events on their way. What it needs is used again for the next ones:
// an event costs no memory but what is kept of it.
type directWrite struct {
	*sharedIndexInformer
	// The slices have room for one event, or for as many as there may be: see makeRoom.
	arrivals []directArrival
	staged   []*staged
	// values are the slices for the index values of each, from one batch to the next.
	values [][][]string
	// ahead is what was there of them when they were looked at.
	ahead directAhead
	// alone is how many events in a row have come alone.
	alone int
	// stands is true if what was seen is what there is but for what the write itself changes,
	// which cells notes: a bit for each, of which some may have the same.
	stands bool
	cells  [2]uint64
	// version is the last one that an event brought, and advance moves the store's there.
	version string
	advance func()
}

func newDirectWrite(inf *sharedIndexInformer) *directWrite {
	d := &directWrite{sharedIndexInformer: inf}
	inf.store.storage.highest.kept = true
	d.advance = func() {
		inf.store.scope.advance(d.version)
		inf.store.storage.writes++
	}
	return d
}

// quietFor is after how many events that came alone the room for many, some 20 kB, is given
// back: most informers of a program have little to do. After a flood it is at once.
const quietFor = 256

// makeRoom makes room for so many events.
func (d *directWrite) makeRoom(events int) {
	if d.alone++; events > 1 {
		d.alone = 0
	}
	places := 1
	if events > 1 {
		places = directly
	}
	if places == len(d.arrivals) || places < len(d.arrivals) && d.alone < quietFor {
		return
	}
	d.arrivals, d.staged, d.values = make([]directArrival, places), make([]*staged, places), make([][][]string, places)
	d.ahead = newDirectAhead(places)
	for i := range d.arrivals {
		d.staged[i] = &d.arrivals[i].staged
	}
}

// giveBack gives the room back.
func (d *directWrite) giveBack() {
	d.arrivals, d.staged, d.values, d.ahead = nil, nil, nil, directAhead{}
}

// takeEvents takes some events from the front, in one write, and says of how many the
// versions count, and which of them were refused. It takes none if ctx has ended, or if
// the first one is not for it; the error is that of the one after those.
func (d *directWrite) takeEvents(ctx context.Context, events []event, refused []refusedEvent) (int, []refusedEvent, error) {
	known, holds := d.queue.isQuiet()
	if !known {
		return 0, refused, nil
	}
	events = events[:min(len(events), directly)]
	if d.queue.transformer != nil {
		// It may look up what came before, and take its time: each event is applied, and
		// told, before the next one is transformed.
		events = events[:1]
	}
	d.makeRoom(len(events))
	n := d.prepare(ctx, events, holds)
	defer d.clear(len(events))
	if err := ctx.Err(); n == 0 || err != nil {
		return 0, refused, err
	}
	began := d.meters.begin(d.clock, n)
	n, err := d.write(events[:n])
	d.queue.passed(d.version, d.arrivals[:n], holds)
	d.tellOf(n)
	d.meters.applied(d.clock, began)
	return n, d.refusals(n, refused), err
}

// prepare does what needs user code, for as many events as are for it.
func (d *directWrite) prepare(ctx context.Context, events []event, holds bool) int {
	d.ahead.look(&d.store.keyedStore, events)
	for i := range events {
		if ctx.Err() != nil || !d.takes(&events[i]) {
			return i
		}
		a := &d.arrivals[i]
		d.arrive(a, &events[i], i)
		if holds && a.refused == nil || holds && a.byQueue {
			a.heldVersion, a.isHeld = d.queue.heldVersionOf(a.key.String())
		}
	}
	return len(events)
}

// write writes what was prepared, up to the first that goes back in time, whose error it
// returns. It says how many that were.
func (d *directWrite) write(events []event) (written int, err error) {
	d.version = ""
	w := d.store.storage.begin(0, d.staged[:len(events)]...)
	if len(events) > 1 {
		w.table.Warm(d.ahead.there[:len(events)])
	}
	d.stands, d.cells = !w.aside && w.table.Follows(d.ahead.changes), [2]uint64{}
	before := stagedBefore{staged: d.staged[:len(events)]}
	for i := range events {
		a := &d.arrivals[i]
		if err = d.put(w, a, &before, i); err != nil {
			break
		}
		if written++; events[i].version != "" {
			d.version = events[i].version
		}
	}
	w.commit(d.advance)
	return written, err
}

// put writes one, the one at a place of all. It calls no user code.
func (d *directWrite) put(w storeWrite, a *directArrival, all *stagedBefore, at int) error {
	if a.refused != nil && !a.byQueue {
		return nil
	}
	was, existed, err := d.before(w, a, all, at)
	if err != nil {
		return err
	}
	if a.isHeld {
		a.supersede(d.arrivals[at+1 : len(all.staged)])
	}
	if a.refused != nil {
		return nil
	}
	if a.kind == Deleted && !existed {
		w.release(a.key)
		return nil
	}
	old, existed, taken := w.take(&a.staged)
	o := &a.outcome
	o.old, o.existed, o.was = old.Object, existed, was
	switch {
	case !taken:
		o.err = a.err
	case a.kind == Deleted:
		if o.obj = a.final; o.obj == nil {
			o.obj = DeletedFinalStateUnknown{Key: a.key.String(), Obj: o.old}
		}
	default:
		o.obj = a.obj
	}
	a.written = true
	return nil
}

// before is what was received of what is stored under the key of an event. The event must not be
// older than that or, if a state with a version is quarantined, than that one.
func (d *directWrite) before(w storeWrite, a *directArrival, all *stagedBefore, at int) (was Received, existed bool, err error) {
	first := a.seen.exists && d.isFirst(a.seen.Number)
	if a.regression != nil {
		return was, true, a.regression
	}
	if first && a.follows && d.stands && !a.isHeld {
		a.staged.found, a.staged.cell = true, a.seen.Number
		return a.seen.received, true, nil
	}
	found, existed := d.find(w, a)
	if existed {
		known := a.follows && a.seen.of(found)
		if was = a.seen.received; !known {
			was, known = w.before(found, &a.seen, all, at)
		}
		if !known {
			was = d.store.receivedByNow()
		}
	}
	have := was.ResourceVersion
	if held, _ := w.heldVersion(a.key); held != "" {
		have = held
	}
	if a.isHeld && a.heldVersion != "" {
		have = a.heldVersion
	}
	if versionBefore(a.received.ResourceVersion, have) {
		return was, existed, &RegressionError{What: "event", Key: a.key.String(), Have: have, Got: a.received.ResourceVersion}
	}
	return was, existed, nil
}

// find finds what is under the key of an event: most often, where it was seen.
func (d *directWrite) find(w storeWrite, a *directArrival) (found table.Found, exists bool) {
	if a.seen.exists {
		if found, exists = w.table.FindAt(a.seen.Number, a.key); exists {
			a.staged.found, a.staged.cell = true, found.Number
			return found, true
		}
	}
	return w.table.Find(a.key)
}

// isFirst says whether the write under way has certainly not changed a cell yet, and notes that
// it does.
func (d *directWrite) isFirst(number uint32) bool {
	word, bit := &d.cells[number>>6&1], uint64(1)<<(number&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// tellOf publishes what was written, and then reports what could not be.
func (d *directWrite) tellOf(n int) {
	var c change
	for i := range n {
		a := &d.arrivals[i]
		if !a.written {
			continue
		}
		c.Type, c.Object, c.key, c.received = a.kind, a.outcome.obj, a.key, a.received
		d.note(&c, &a.outcome, false)
		d.watch(&c, &a.outcome)
	}
	d.publish(d.store.storage.writes)
	for i := range n {
		d.reportOutcome(&d.arrivals[i].outcome)
	}
	d.reportMutations()
}

// refusals are what the caller is to report.
func (d *directWrite) refusals(n int, refused []refusedEvent) []refusedEvent {
	for i := range n {
		if a := &d.arrivals[i]; a.refused != nil {
			refused = append(refused, refusedEvent{i, a.refused})
		}
	}
	return refused
}

// clear forgets everything, and keeps the slices for index values, emptied.
func (d *directWrite) clear(n int) {
	d.ahead.clear(n)
	for i := range n {
		if values := d.arrivals[i].values; values != nil {
			d.values[i] = emptied(values)
		}
	}
	clear(d.arrivals[:n])
}

// isQuiet says whether nothing is in the queue, and a first list has been there: who knows
// what the consumer holds knows then how things stand. holds says whether it holds back
// anything itself.
func (f *DeltaFIFO) isQuiet() (quiet, holds bool) {
	f.mu.Lock()
	quiet, holds = f.isSynced && f.log.pending == 0 && !f.turn, f.held.holdsAny()
	f.mu.Unlock()
	return quiet, holds
}

func (f *DeltaFIFO) heldVersionOf(key string) (version string, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held.version(key)
}

// passed notes what has passed the queue by: a version, and objects, which it has held back
// before or holds back now.
func (f *DeltaFIFO) passed(version string, arrivals []directArrival, holds bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version != "" {
		f.log.version, f.log.holds, f.told = version, version, version
	}
	for i := range arrivals {
		a := &arrivals[i]
		switch {
		case a.byQueue:
			f.held.add(a.refused)
			holds = true
		case holds && a.refused == nil:
			f.held.release(a.key.String())
		}
	}
}
