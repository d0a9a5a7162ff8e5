package cache

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// partSize is how many objects go into the store at a time. Before a transform has
// stripped it, a decoded object may take some 60 KiB of memory, and a part is alive on
// the source's side while another goes into the store: at 100 that is some MiB
// altogether, whatever the size of the list or of its pages.
const partSize = 100

// listTaker takes the objects of one list, from pages or from a stream, sorts out
// those that do not fit, and passes the rest on to a replacement in parts.
type listTaker struct {
	*run
	// replacement is begun with the first part, or at the end.
	replacement Replacement
	streamed    bool
	part        ReplacementPart
	// first is the number of the part's first object.
	first int
	// met are the objects that this list has brought and the reflector holds back, for
	// the store does not, by their places.
	met   map[string]bool
	items int

	// undecoded are the items that could not be decoded, and of which no later state has come.
	undecoded undecodedItems

	// fits is true once one object was of the expected type. Until then the list may turn
	// out to have failed, and wrong are its objects, which have not been reported, each once:
	// wrongAt is where in it a key is.
	fits    bool
	wrong   []*ObjectError
	wrongAt map[string]int
	// shown is progress.shown as it was before this list.
	shown string

	// unchecked is true as long as the list may turn out to be too old to be taken.
	// What it brings does not show then, and untold are the objects of it that are to
	// be held back: there is nothing wrong with one that is newer by now.
	unchecked bool
	untold    []untold
}

// untold is an object that is to be held back, as in a reflector's quarantined.
type untold struct {
	bad     *ObjectError
	inStore bool
}

func (m *run) newListTaker(streamed bool) *listTaker {
	return &listTaker{run: m, first: 1, met: map[string]bool{}, shown: m.progress.shown, streamed: streamed}
}

// begin begins the replacement, if that has not been done.
func (in *listTaker) begin() {
	if in.replacement != nil {
		return
	}
	if replacer, ok := in.store.(Replacer); ok && !embedsQueue(in.store) {
		// Of a source that has gone back, or may have, the same version may be another state.
		reset := in.progress.anyVersion || in.steppedBack || in.progress.unknown && in.unchecked
		in.replacement = replacer.BeginReplace(ReplaceOptions{Aside: in.unchecked, VersionsReset: reset})
	} else {
		in.replacement = &wholeReplacement{store: in.store, streamed: in.streamed}
	}
}

// add takes one listed object.
func (in *listTaker) add(obj runtime.Object) error { return in.addExamined(obj, in.misfit(obj, true)) }

// addExamined is add for an object of which it is known what is wrong with it.
func (in *listTaker) addExamined(obj runtime.Object, bad *ObjectError) error {
	in.items++
	wrong := bad != nil && in.isOfOtherType(obj, bad)
	if !wrong && !in.fits {
		in.fits = true
		in.holdWrong()
	}
	if bad != nil {
		if bad.Stage == StageDecode {
			if in.undecoded == nil {
				in.undecoded = undecodedItems{}
			}
			in.undecoded[bad.Key] = bad.ResourceVersion
		}
		if bad.Key == "" {
			bad.Key = fmt.Sprintf("item %d of the list", in.items)
		} else {
			in.part.Keep = append(in.part.Keep, obj)
		}
		if in.fits {
			in.hold(bad, false)
		} else {
			in.addWrong(bad)
		}
	} else {
		in.forget(obj)
		if in.part.Items == nil {
			in.part.Items = make([]any, 0, partSize)
		}
		in.part.Items = append(in.part.Items, obj)
	}
	if len(in.part.Items)+len(in.part.Keep) >= partSize {
		return in.flush()
	}
	return nil
}

// addWrong notes an object of another type, in its newest state if it comes again.
func (in *listTaker) addWrong(bad *ObjectError) {
	in.met[bad.Key] = true
	at, again := in.wrongAt[bad.Key]
	switch {
	case !again:
		if in.wrongAt == nil {
			in.wrongAt = map[string]int{}
		}
		in.wrongAt[bad.Key] = len(in.wrong)
		in.wrong = append(in.wrong, bad)
	case !versionBefore(bad.ResourceVersion, in.wrong[at].ResourceVersion):
		in.wrong[at] = bad
	}
}

// pageAgain forgets what has been collected of a page that is asked for again, after so many
// items of the pages before it.
func (in *listTaker) pageAgain(items int) {
	in.items, in.first, in.part = items, items+1, ReplacementPart{}
}

// holdWrong quarantines the objects of another type of a list that has not failed for them.
func (in *listTaker) holdWrong() {
	wrong := in.wrong
	in.wrong, in.wrongAt = nil, nil
	for _, bad := range wrong {
		known := in.met[bad.Key]
		in.hold(bad, false)
		if !known {
			delete(in.met, bad.Key) // a stream has deleted it since
		}
	}
}

// failsByType says whether the list has objects, so far, and none of the expected type.
func (in *listTaker) failsByType() bool {
	return !in.fits && slices.ContainsFunc(in.wrong, func(bad *ObjectError) bool { return in.met[bad.Key] })
}

// forgetWrong says whether this list has brought an object of another type under a key, whose
// deletion has come now: it does not count any more.
func (in *listTaker) forgetWrong(key string) bool {
	if _, brought := in.wrongAt[key]; !brought {
		return false
	}
	delete(in.met, key)
	return true
}

// gone removes an object that a stream has deleted since it sent it. A deletion that the
// store refuses is reported, and quarantined where a state from before it may be there: of
// another namespace there is none, and a final state that cannot be transformed is deleted.
func (in *listTaker) gone(obj runtime.Object) error {
	if err := in.flush(); err != nil {
		return err
	}
	in.forget(obj)
	rejected, err := in.pass(ReplacementPart{Gone: []any{obj}})
	for _, bad := range rejected {
		switch {
		case bad.Stage != StageTransform && !errors.Is(bad.Err, ErrOtherNamespace):
			in.hold(placed(bad), false)
		case !bad.repeated:
			in.tell(in.ctx, placed(bad))
		}
	}
	return err
}

// forget lets go of an object that this list has brought and that was held back: it
// brings a later state now.
func (in *listTaker) forget(obj runtime.Object) {
	if len(in.met) == 0 {
		return
	}
	for _, place := range in.placesOf(obj) {
		delete(in.met, place)
		delete(in.undecoded, place)
	}
}

// flush passes on what has been collected.
func (in *listTaker) flush() error {
	part, first := in.part, in.first
	in.part, in.first = ReplacementPart{}, in.items+1
	if len(part.Items)+len(part.Keep)+len(part.Gone) == 0 {
		return nil
	}
	rejected, err := in.pass(part)
	for i, bad := range rejected {
		if bad.Key == "" {
			// The store says which object it is not; it has no name, either.
			bad.Key = fmt.Sprintf("one of items %d to %d of the list (%d)", first, in.items, i+1)
		}
		in.hold(bad, heldIn(in.store, bad))
	}
	if in.streamed {
		in.forgetSuperseded(part, rejected)
	}
	return err
}

// forgetSuperseded lets go of what was rejected of a part that has a later state of the
// same name, or its deletion, as a stream's may. What the store holds back itself, it lets
// go of itself. What is later than the newest rejection of a name was taken.
func (in *listTaker) forgetSuperseded(part ReplacementPart, rejected []*ObjectError) {
	newest := map[string]string{}
	for _, bad := range rejected {
		if !heldIn(in.store, bad) {
			place := in.placeOf(bad)
			newest[place] = newerOf(newest[place], bad.ResourceVersion)
		}
	}
	if len(newest) == 0 {
		return
	}
	for _, obj := range part.Keep {
		for _, place := range in.placesOf(obj) {
			if version, known := newest[place]; known {
				newest[place] = newerOf(version, receivedOf(obj).ResourceVersion)
			}
		}
	}
	for _, objects := range [][]any{part.Items, part.Gone} {
		for _, obj := range objects {
			for _, place := range in.placesOf(obj) {
				if version := newest[place]; version != "" && versionBefore(version, receivedOf(obj).ResourceVersion) {
					delete(in.met, place)
				}
			}
		}
	}
}

// pass passes on a part. Its objects' errors are those in rejected.
func (in *listTaker) pass(part ReplacementPart) (rejected []*ObjectError, err error) {
	in.begin()
	rejected, err = in.replacement.Part(in.ctx, part)
	if err != nil && in.ctx.Err() == nil {
		err = storeError("Replace", nil, err)
	}
	return rejected, err
}

// hold reports an object that is held back, unless that is known.
func (in *listTaker) hold(bad *ObjectError, inStore bool) {
	if !inStore {
		in.met[in.placeOf(bad)] = true
	}
	if in.unchecked {
		in.untold = append(in.untold, untold{bad, inStore})
		return
	}
	in.quarantined(in.ctx, bad, inStore)
}

// checked notes that the list is not too old.
func (in *listTaker) checked() {
	in.unchecked = false
	for _, held := range in.untold {
		in.quarantined(in.ctx, held.bad, held.inStore)
	}
	in.untold = nil
}

// commit ends the list, unless none of its objects is of the expected type.
func (in *listTaker) commit(version string) error {
	if in.failsByType() {
		first := in.wrong[0]
		return &ListTypeError{Objects: in.items, Key: first.Key, Err: first.Err}
	}
	in.holdWrong()
	in.tellStepBack()
	if err := in.flush(); err != nil {
		return err
	}
	in.begin()
	if err := in.replacement.Commit(in.ctx, version); err != nil {
		objects, other := splitObjectErrors(err)
		for _, bad := range objects {
			in.hold(bad, heldIn(in.store, bad))
		}
		if other != nil {
			return storeError("Replace", nil, other)
		}
	}
	in.mu.Lock()
	in.Reflector.report.held.releaseIf(func(place string) bool { return !in.met[place] })
	in.mu.Unlock()
	return nil
}

// abort gives up; after a commit it does nothing.
func (in *listTaker) abort() {
	if in.replacement == nil {
		return
	}
	if ours, ok := in.replacement.(disowner); ok && in.unchecked {
		ours.disown()
	}
	in.replacement.Abort()
}

// disowner is implemented by our replacements. disown lets go of the objects that one
// holds back that is not visible: nobody has been told of them. Abort follows.
type disowner interface{ disown() }
