package world

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// Writes to the source. The truth records a state before the source has it, so that no mirror can
// show an unrecorded one. Only the script's goroutine writes.

// Write creates or updates the object of a key.
func (w *World) Write(key, bad string, unwanted bool) {
	w.serial++
	object := newObject(key)
	SetMark(object, serialMark, strconv.Itoa(w.serial))
	object.Labels = map[string]string{GroupMark: w.someGroups()}
	switch {
	case bad == script.BadDecode && w.server != nil:
		object.Labels[decodeMark] = "garbled"
		w.Damage.noteUndecodable()
	case bad == script.BadDecode:
		bad = script.BadTransform
		SetMark(object, BadMark, bad)
	case bad != "":
		SetMark(object, BadMark, bad)
	}
	if unwanted {
		SetMark(object, UnwantedMark, "true")
	}
	version := w.nextVersion()
	incarnation := w.Truth.Now()[key].incarnation
	if incarnation == 0 {
		w.incarnations++
		incarnation = w.incarnations
	}
	w.Truth.add(key, State{
		Moment:      w.Truth.tick(version),
		Serial:      w.serial,
		Version:     version,
		Bad:         bad,
		Unwanted:    unwanted,
		incarnation: incarnation,
		Groups:      object.Labels[GroupMark],
	})
	w.Note("write %s@%d serial %d bad %q unwanted %v", key, version, w.serial, bad, unwanted)
	if err := w.Source.Apply(object); err != nil {
		w.Fail("the source does not take %s: %v", key, err)
	}
}

// someGroups draws zero to two values of the index.
func (w *World) someGroups() string {
	groups := []string{"", "x", "y", "z", "x.y", "y.z"}
	return groups[w.random.IntN(len(groups))]
}

// Remove deletes the object of a key, if there is one. Watches do not receive hidden deletions.
func (w *World) Remove(key string, hidden bool) {
	now := w.Truth.Now()[key]
	if !now.Present() {
		return
	}
	if now.Bad == script.BadKey {
		// The deletion of an unreadable object is applied only by the next list.
		w.Write(key, "", false)
	}
	version := w.nextVersion()
	w.Truth.add(key, State{Moment: w.Truth.tick(version), Version: version})
	if hidden {
		w.Truth.hide(key)
		w.silent.Store(true)
	}
	w.Note("remove %s@%d hidden %v", key, version, hidden)
	namespace, name := script.SplitKey(key)
	remove := w.Source.Delete
	if hidden {
		remove = w.Source.DeleteSilently
	}
	if _, err := remove(namespace, name); err != nil {
		w.Fail("the source does not delete %s: %v", key, err)
	}
}

// nextVersion returns the version of the next change. The first one after a restore is higher than
// all before, and no watch from an older one is accepted: otherwise a client could resume from a
// version of the lost history, which no client could notice.
func (w *World) nextVersion() uint64 {
	if w.restored {
		w.skipped = append(w.skipped, skip{w.Source.Version(), w.newest + 1})
		w.Source.AdvanceCompacted(w.newest + 1 - w.Source.Version())
		if !w.script.Setup.RefuseFutureWatches {
			// Otherwise a watch of the lost history would continue with new writes.
			w.Source.BreakWatches(w.failure("expired"))
			// The lost versions are expired from now on, so the outage may remain unnoticed.
			for _, c := range w.clients {
				for _, t := range c.taps {
					t.noticesOutage()
				}
			}
		}
		w.restored = false
	}
	w.newest = max(w.newest, w.Source.Version()+1)
	return w.Source.Version() + 1
}

// advance advances the source's version by 1 + more without a change.
func (w *World) advance(more int) {
	w.Source.Advance(w.nextVersion() - w.Source.Version() + uint64(more))
	w.newest = max(w.newest, w.Source.Version())
}

// skip is a range of versions: those above one, up to another.
type skip struct{ above, upTo uint64 }

// Restore reverts the source by some versions, like a server restored from a backup.
func (w *World) Restore(versions int) {
	to := w.Source.Version() - min(uint64(versions), w.Source.Version()-1)
	for _, s := range slices.Backward(w.skipped) {
		if s.above < to && to <= s.upTo {
			to = s.above // versions in between were never issued
		}
	}
	at := w.Truth.Latest(to)
	if !w.script.Setup.RefuseFutureWatches {
		w.outages.Add(1)
	}
	if err := w.Source.Rollback(to); err != nil {
		if !w.script.Setup.RefuseFutureWatches {
			w.outages.Add(-1)
		}
		return // compacted meanwhile
	}
	w.restored = true
	// A server that was restored has its versions again.
	w.Proxy.forget(0, 0)
	w.regressions.Add(1)
	w.everRestored.Store(true)
	moment := w.Truth.tick(to)
	for key, now := range w.Truth.Now() {
		then := w.Truth.at(key, at)
		if then.Serial == now.Serial {
			continue
		}
		if then.incarnation != now.incarnation {
			// A reader that sees both must see the deletion of the former.
			w.Truth.add(key, State{Moment: moment})
		}
		then.Moment = moment
		w.Truth.add(key, then)
	}
	w.Note("restore to %d", to)
}

// damageLabel turns the value of a decodeMark into something that is none, of the same length.
func damageLabel(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(`"`+decodeMark+`":"garbled"`), []byte(`"`+decodeMark+`":[1234567]`))
}
