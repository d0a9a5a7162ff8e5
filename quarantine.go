package cache

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Quarantined is an object that is not shown as the source has it, because that
// state could not be taken. Where it cannot be known which object it is, its place
// stands for it until the next list.
type Quarantined struct {
	// Key, ResourceVersion, Stage as in ObjectError.
	Key             string
	ResourceVersion string
	Stage           Stage
	// Err is the cause. It does not hold the object.
	Err error
}

// quarantine remembers which keys are held back and for which version that was
// reported, so that it is reported once a version. Its owner guards it with its
// own lock. The zero value is ready.
type quarantine struct {
	held ebbing[Quarantined]
	// readers, if it is of a store, has the same for those who read that.
	readers quarantineReaders
}

// add holds a key back. The error is marked as repeated if the same version of
// the same key failed at the same stage before; an object without a version
// cannot be told from its predecessor and is reported each time.
func (q *quarantine) add(e *ObjectError) { q.addKept(e, withoutStack(e.Err)) }

// addKept is add for a cause that has been made fit to be kept, for which the error's own
// methods are asked: here they are not.
func (q *quarantine) addKept(e *ObjectError, kept error) { q.addUnder(e.Key, e, kept) }

// addUnder is addKept for an owner that tells objects apart otherwise than by their keys.
func (q *quarantine) addUnder(place string, e *ObjectError, kept error) {
	e.repeated = q.knowsAt(place, e)
	held := Quarantined{Key: e.Key, ResourceVersion: e.ResourceVersion, Stage: e.Stage, Err: kept}
	q.held.put(place, held)
	q.readers.put(place, cmp.Or(e.storeKey, e.Key), held)
}

// knows says whether this failure has been added before.
func (q *quarantine) knows(e *ObjectError) bool { return q.knowsAt(e.Key, e) }

func (q *quarantine) knowsAt(place string, e *ObjectError) bool {
	before, known := q.held.all[place]
	return known && e.ResourceVersion != "" && before.ResourceVersion == e.ResourceVersion && before.Stage == e.Stage
}

// put quarantines under a key what was quarantined under it before.
func (q *quarantine) put(key string, held Quarantined) {
	q.held.put(key, held)
	q.readers.put(key, held.Key, held)
}

// ebb gives back the memory of what was released.
func (q *quarantine) ebb() { q.held.ebb() }

// withoutStack makes an error fit to be kept, once for each of many objects: a
// panic in it keeps its value, not its stack, which has been reported.
func withoutStack(err error) error {
	var panicked *PanicError
	if !errors.As(err, &panicked) || panicked.Stack == nil {
		return err
	}
	return &functionPanic{text: err.Error(), PanicError: PanicError{Value: panicked.Value}}
}

// releaseFor forgets a key because a state of it was taken, unless that is an older
// one than what is held back: a resync may repeat it.
func (q *quarantine) releaseFor(key string, taken Received) {
	if held, ok := q.held.all[key]; ok && !versionBefore(taken.ResourceVersion, held.ResourceVersion) {
		q.release(key)
	}
}

// releaseRepeated forgets a key because the very state of it that was held back was taken
// when it was repeated.
func (q *quarantine) releaseRepeated(key string, taken Received) {
	if held, ok := q.held.all[key]; ok && held.ResourceVersion == taken.ResourceVersion {
		q.release(key)
	}
}

// holds says whether a key is held back.
func (q *quarantine) holds(key string) bool {
	_, held := q.held.all[key]
	return held
}

// holdsAny says whether any key is held back.
func (q *quarantine) holdsAny() bool { return len(q.held.all) > 0 }

// version is that of the state of a key that is held back, if one is.
func (q *quarantine) version(key string) (version string, held bool) {
	quarantined, held := q.held.all[key]
	return quarantined.ResourceVersion, held
}

// keys are the keys that are held back, in no order.
func (q *quarantine) keys() []string { return slices.Collect(maps.Keys(q.held.all)) }

// keysOf is keys for those that are part of something.
func (q *quarantine) keysOf(part func(key string) bool) (keys []string) {
	for key := range q.held.all {
		if part(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// release forgets a key: a later state was taken, or the object is gone.
func (q *quarantine) release(key string) {
	if len(q.held.all) > 0 {
		q.forget(key)
		q.ebb()
	}
}

// forget is release for who calls ebb himself.
func (q *quarantine) forget(key string) {
	if q.holds(key) {
		delete(q.held.all, key)
		q.readers.remove(key)
	}
}

// releaseIf forgets the keys for which gone is true.
func (q *quarantine) releaseIf(gone func(key string) bool) {
	q.forgetIf(gone)
	q.ebb()
}

// forgetIf is releaseIf for who calls ebb himself. It also removes from what readers know the
// places that a predecessor of this quarantine has left there.
func (q *quarantine) forgetIf(gone func(key string) bool) {
	for key := range q.held.all {
		if gone(key) {
			q.forget(key)
		}
	}
	q.readers.keepOnly(q.holds)
}

// list returns what is held back, by key.
func (q *quarantine) list() []Quarantined {
	return sortedByKey(q.copyOf(func(string) bool { return true }))
}

// copyOf is what is held back under the keys that are part of something, in no order: what
// is not is not copied. To sort it, which takes longer, its owner's lock is not needed.
func (q *quarantine) copyOf(part func(key string) bool) []Quarantined {
	out := []Quarantined{}
	for key, held := range q.held.all {
		if part(key) {
			out = append(out, held)
		}
	}
	return out
}

func sortedByKey(all []Quarantined) []Quarantined {
	slices.SortFunc(all, func(a, b Quarantined) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// heldIn says whether the store that could not take an object remembers it. Ours
// do so by key: an object without one is held, by its name, by whoever offered it.
func heldIn(store any, object *ObjectError) bool {
	_, remembers := store.(quarantiner)
	return remembers && object.Stage != StageKey && object.Stage != StageMetadata
}

// asObjectError finds the ObjectError in err, if there is one.
func asObjectError(err error) (*ObjectError, bool) {
	var object *ObjectError
	ok := errors.As(err, &object)
	return object, ok
}
