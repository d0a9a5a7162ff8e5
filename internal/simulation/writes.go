package simulation

import (
	"bytes"
	"slices"
	"strconv"
)

// What a step of the script writes to the source. The truth has it before the source, so
// that nobody can see a state of which nothing is known. Only the goroutine of the
// script writes.

// write makes a new state under a key: created, or the next one.
func (w *world) write(key, bad string, unwanted bool) {
	w.serial++
	object := newObject(key)
	setMark(object, serialMark, strconv.Itoa(w.serial))
	object.Labels = map[string]string{groupMark: w.someGroups()}
	switch {
	case bad == badDecode && w.server != nil:
		object.Labels[decodeMark] = "garbled"
		w.damage.note()
	case bad == badDecode:
		bad = badTransform
		setMark(object, badMark, bad)
	case bad != "":
		setMark(object, badMark, bad)
	}
	if unwanted {
		setMark(object, unwantedMark, "true")
	}
	version := w.nextVersion()
	incarnation := w.truth.now()[key].incarnation
	if incarnation == 0 {
		w.incarnations++
		incarnation = w.incarnations
	}
	w.truth.add(key, state{
		moment: w.truth.tick(version), serial: w.serial, version: version, bad: bad, unwanted: unwanted, incarnation: incarnation,
	})
	w.note("write %s@%d serial %d bad %q unwanted %v", key, version, w.serial, bad, unwanted)
	if err := w.source.Apply(object); err != nil {
		w.fail("the source does not take %s: %v", key, err)
	}
}

// someGroups are none, one or two of a few values of the index.
func (w *world) someGroups() string {
	groups := []string{"", "x", "y", "z", "x.y", "y.z"}
	return groups[w.random.IntN(len(groups))]
}

// remove deletes the object under a key, if there is one; hidden deletions are not seen by
// any watch.
func (w *world) remove(key string, hidden bool) {
	now := w.truth.now()[key]
	if !now.present() {
		return
	}
	if now.bad == badKey {
		// A deletion of which nobody can say what it deletes stays until the next list.
		w.write(key, "", false)
	}
	version := w.nextVersion()
	w.truth.add(key, state{moment: w.truth.tick(version), version: version})
	if hidden {
		w.truth.hide(key)
		w.silent.Store(true)
	}
	w.note("remove %s@%d hidden %v", key, version, hidden)
	namespace, name := splitKey(key)
	remove := w.source.Delete
	if hidden {
		remove = w.source.DeleteSilently
	}
	if _, err := remove(namespace, name); err != nil {
		w.fail("the source does not delete %s: %v", key, err)
	}
}

// nextVersion is the version that the next change gets. The first one after the source
// was restored is higher than all before, and no watch from an older one is accepted: a client
// that has slept since must not find its version again, as one of another past. No client
// could tell those apart.
func (w *world) nextVersion() uint64 {
	if w.restored {
		w.skipped = append(w.skipped, skip{w.source.Version(), w.newest + 1})
		w.source.AdvanceCompacted(w.newest + 1 - w.source.Version())
		if !w.script.Setup.RefuseFutureWatches {
			// Else a watch from the lost past would continue with the new writes.
			w.source.BreakWatches(w.failure("expired"))
			// From now on the version that was lost is expired: nobody need have met the outage.
			for _, m := range w.mirrors {
				for _, t := range m.taps {
					t.meetsOutage()
				}
			}
		}
		w.restored = false
	}
	w.newest = max(w.newest, w.source.Version()+1)
	return w.source.Version() + 1
}

// advance takes the source on to its next version, and so many more, without a change.
func (w *world) advance(more int) {
	w.source.Advance(w.nextVersion() - w.source.Version() + uint64(more))
	w.newest = max(w.newest, w.source.Version())
}

// skip is a range of versions: those above one, up to another.
type skip struct{ above, upTo uint64 }

// restore takes the source back to what it was some versions ago, as a server that comes
// back from a backup.
func (w *world) restore(versions int) {
	to := w.source.Version() - min(uint64(versions), w.source.Version()-1)
	for _, s := range slices.Backward(w.skipped) {
		if s.above < to && to <= s.upTo {
			to = s.above // a version in between is one of another past as well
		}
	}
	at := w.truth.latest(to)
	if !w.script.Setup.RefuseFutureWatches {
		w.outages.Add(1)
	}
	if err := w.source.Rollback(to); err != nil {
		if !w.script.Setup.RefuseFutureWatches {
			w.outages.Add(-1)
		}
		return // compacted meanwhile
	}
	w.restored = true
	w.turns.Add(1)
	w.everRestored.Store(true)
	moment := w.truth.tick(to)
	for key, now := range w.truth.now() {
		then := w.truth.at(key, at)
		if then.serial == now.serial {
			continue
		}
		if then.incarnation != now.incarnation {
			// A reader that sees one after the other sees that the former was deleted.
			w.truth.add(key, state{moment: moment})
		}
		then.moment = moment
		w.truth.add(key, then)
	}
	w.note("restore to %d", to)
}

// garble turns the value of a decodeMark into something that is none, of the same length.
func garble(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(`"`+decodeMark+`":"garbled"`), []byte(`"`+decodeMark+`":[1234567]`))
}
