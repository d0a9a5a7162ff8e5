package simulation

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// Writes to the source. The truth records a state before the source has it, so that no mirror can
// show an unrecorded one. Only the script's goroutine writes.

// write creates or updates the object of a key.
func (w *world) write(key, bad string, unwanted bool) {
	w.serial++
	object := newObject(key)
	setMark(object, serialMark, strconv.Itoa(w.serial))
	object.Labels = map[string]string{groupMark: w.someGroups()}
	switch {
	case bad == script.BadDecode && w.server != nil:
		object.Labels[decodeMark] = "garbled"
		w.damage.noteUndecodable()
	case bad == script.BadDecode:
		bad = script.BadTransform
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
		moment:      w.truth.tick(version),
		serial:      w.serial,
		version:     version,
		bad:         bad,
		unwanted:    unwanted,
		incarnation: incarnation,
		groups:      object.Labels[groupMark],
	})
	w.note("write %s@%d serial %d bad %q unwanted %v", key, version, w.serial, bad, unwanted)
	if err := w.source.Apply(object); err != nil {
		w.fail("the source does not take %s: %v", key, err)
	}
}

// someGroups draws zero to two values of the index.
func (w *world) someGroups() string {
	groups := []string{"", "x", "y", "z", "x.y", "y.z"}
	return groups[w.random.IntN(len(groups))]
}

// remove deletes the object of a key, if there is one. Watches do not receive hidden deletions.
func (w *world) remove(key string, hidden bool) {
	now := w.truth.now()[key]
	if !now.present() {
		return
	}
	if now.bad == script.BadKey {
		// The deletion of an unreadable object is applied only by the next list.
		w.write(key, "", false)
	}
	version := w.nextVersion()
	w.truth.add(key, state{moment: w.truth.tick(version), version: version})
	if hidden {
		w.truth.hide(key)
		w.silent.Store(true)
	}
	w.note("remove %s@%d hidden %v", key, version, hidden)
	namespace, name := script.SplitKey(key)
	remove := w.source.Delete
	if hidden {
		remove = w.source.DeleteSilently
	}
	if _, err := remove(namespace, name); err != nil {
		w.fail("the source does not delete %s: %v", key, err)
	}
}

// nextVersion returns the version of the next change. The first one after a restore is higher than
// all before, and no watch from an older one is accepted: otherwise a client could resume from a
// version of the lost history, which no client could notice.
func (w *world) nextVersion() uint64 {
	if w.restored {
		w.skipped = append(w.skipped, skip{w.source.Version(), w.newest + 1})
		w.source.AdvanceCompacted(w.newest + 1 - w.source.Version())
		if !w.script.Setup.RefuseFutureWatches {
			// Otherwise a watch of the lost history would continue with new writes.
			w.source.BreakWatches(w.failure("expired"))
			// The lost versions are expired from now on, so the outage may remain unnoticed.
			for _, c := range w.clients {
				for _, t := range c.taps {
					t.noticesOutage()
				}
			}
		}
		w.restored = false
	}
	w.newest = max(w.newest, w.source.Version()+1)
	return w.source.Version() + 1
}

// advance advances the source's version by 1 + more without a change.
func (w *world) advance(more int) {
	w.source.Advance(w.nextVersion() - w.source.Version() + uint64(more))
	w.newest = max(w.newest, w.source.Version())
}

// skip is a range of versions: those above one, up to another.
type skip struct{ above, upTo uint64 }

// restore reverts the source by some versions, like a server restored from a backup.
func (w *world) restore(versions int) {
	to := w.source.Version() - min(uint64(versions), w.source.Version()-1)
	for _, s := range slices.Backward(w.skipped) {
		if s.above < to && to <= s.upTo {
			to = s.above // versions in between were never issued
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
	// A server that was restored has its versions again.
	w.proxy.forget(0, 0)
	w.regressions.Add(1)
	w.everRestored.Store(true)
	moment := w.truth.tick(to)
	for key, now := range w.truth.now() {
		then := w.truth.at(key, at)
		if then.serial == now.serial {
			continue
		}
		if then.incarnation != now.incarnation {
			// A reader that sees both must see the deletion of the former.
			w.truth.add(key, state{moment: moment})
		}
		then.moment = moment
		w.truth.add(key, then)
	}
	w.note("restore to %d", to)
}

// damageLabel turns the value of a decodeMark into something that is none, of the same length.
func damageLabel(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(`"`+decodeMark+`":"garbled"`), []byte(`"`+decodeMark+`":[1234567]`))
}
