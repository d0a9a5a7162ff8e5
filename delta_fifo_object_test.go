package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The classic methods name what has no key as client-go's do, and nothing of the
// queue changes.
func TestAnObjectWithoutAKeyIsAKeyError(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: func(obj any) (string, error) {
		if obj == "panics" {
			panic(errBoom)
		}
		return MetaNamespaceKeyFunc(obj)
	}})
	for _, method := range []func(any) error{f.Add, f.Update, f.Delete} {
		for obj, cause := range map[any]error{nil: ErrNilObject, (*object)(nil): ErrNilObject, pod("", ""): ErrEmptyKey, "panics": errBoom} {
			var failed KeyError
			require.ErrorAs(t, method(obj), &failed)
			assert.Equal(t, obj, failed.Obj)
			assert.ErrorIs(t, failed, cause)
		}
		var failed KeyError
		require.ErrorAs(t, method(Deltas{}), &failed)
		assert.Equal(t, ErrZeroLengthDeltasObject, failed.Err, "wrapped once")
	}
	assert.Empty(t, drained(t, f))
	assert.False(t, f.HasSynced(), "nothing came")
	assert.Empty(t, f.quarantined(), "nothing is kept of what has no key")
}

func TestAnEventWithoutAKeyIsRejectedAndItsVersionCounts(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: func(any) (string, error) { return "", errBoom }})
	err := takeOne(f, event{kind: Added, obj: podAt("a", "1", "5"), version: "5"})
	object, ok := asObjectError(err)
	require.True(t, ok)
	assert.Equal(t, StageKey, object.Stage)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, "5", object.ResourceVersion)
	assert.Equal(t, errBoom, object.Err)
	err = takeOne(f, event{kind: Added, obj: nil, version: ""})
	object, ok = asObjectError(err)
	require.True(t, ok)
	assert.Equal(t, ObjectError{Stage: StageMetadata, Err: ErrNilObject}, *object)
	f.Close()
	_, err = f.Pop(func(any, bool) error { return nil })
	assert.ErrorIs(t, err, ErrFIFOClosed)
	assert.Equal(t, "5", f.processedVersion())
}

// transforming is a transform that answers by label and counts its calls.
type transforming struct{ calls map[string]int }

func (c *transforming) transform(obj any) (any, error) {
	o := obj.(*object)
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[nameOf(o)+"@"+o.ResourceVersion]++
	switch o.Labels["v"] {
	case "bad":
		return nil, errBoom
	case "panics":
		panic(errBoom)
	case "nil":
		return nil, nil
	case "renamed":
		return podAt("a", "other", o.ResourceVersion), nil
	case "nameless":
		return pod("", ""), nil
	}
	return labelled(o, "!"), nil
}

// ways are the ways of an object into a queue that has nothing else.
var ways = map[string]func(f *DeltaFIFO, obj any) error{
	"Add":     func(f *DeltaFIFO, obj any) error { return f.Add(obj) },
	"Update":  func(f *DeltaFIFO, obj any) error { return f.Update(obj) },
	"Replace": func(f *DeltaFIFO, obj any) error { return f.Replace([]any{obj}, "9") },
	"an event": func(f *DeltaFIFO, obj any) error {
		return takeOne(f, event{kind: Updated, obj: obj, version: "9"})
	},
	"a list in parts": func(f *DeltaFIFO, obj any) error {
		r := f.BeginReplace(ReplaceOptions{})
		rejected, err := r.Part(bg, ReplacementPart{Items: []any{obj}})
		for _, object := range rejected {
			err = errors.Join(err, object)
		}
		return errors.Join(err, r.Commit(bg, "9"))
	},
}

// B7, G14 for the queue: on every way in, a transform that fails leaves the state
// before and holds the key back, one that returns nil makes it absent, and it runs
// once. Fails if one of the ways transforms by itself, twice, or not at all.
func TestATransformHasOneOutcomeOnEveryWayIn(t *testing.T) {
	for way, put := range ways {
		for label, want := range map[string]string{
			"": "@2!", "bad": "@1", "panics": "@1", "renamed": "@1", "nameless": "@1", "nil": "tombstone a/1 @1",
		} {
			for _, before := range []string{"known", "queued", "in flight"} {
				t.Run(way+" "+label+" "+before, func(t *testing.T) {
					var tr transforming
					options := DeltaFIFOOptions{Transformer: tr.transform}
					if before == "known" {
						options.KnownObjects = knowing(podAt("a", "1", "1"))
					}
					f := NewDeltaFIFOWithOptions(options)
					obj := podAt("a", "1", "2")
					if label != "" {
						obj = labelled(obj, label)
					}
					var err error
					if before != "known" {
						f.transformer = nil
						must(t, f.Add(podAt("a", "1", "1")))
						f.transformer = tr.transform
					}
					if before == "in flight" {
						_, popErr := f.Pop(func(any, bool) error { err = put(f, obj); return nil })
						must(t, popErr)
					} else {
						err = put(f, obj)
					}
					assert.Equal(t, map[string]int{"a/1@2": 1}, tr.calls)
					outcomeOfTransform(t, f, label, want, before, err)
				})
			}
		}
	}
}

func outcomeOfTransform(t *testing.T, f *DeltaFIFO, label, want, before string, err error) {
	t.Helper()
	taken := drained(t, f)
	switch label {
	case "", "nil":
		require.NoError(t, err)
		require.NotEmpty(t, taken)
		assert.Contains(t, taken[len(taken)-1], want)
		assert.Empty(t, f.quarantined())
		return
	}
	object, ok := asObjectError(err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, "2", object.ResourceVersion)
	assert.Equal(t, StageTransform, object.Stage)
	if before == "queued" {
		assert.Equal(t, []string{"Added a/1@1"}, taken)
	} else {
		assert.Empty(t, taken, "nothing but the state before")
	}
	require.Len(t, f.quarantined(), 1)
	assert.Equal(t, "a/1", f.quarantined()[0].Key)
}

func TestWhatATransformMadeMustHaveTheSameKey(t *testing.T) {
	var tr transforming
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform})
	assert.ErrorContains(t, f.Add(labelled(podAt("a", "1", "1"), "renamed")), `changed the key from "a/1" to "a/other"`)
	assert.ErrorIs(t, f.Add(labelled(podAt("a", "1", "1"), "nameless")), ErrEmptyKey)
}

func TestAnUnwantedObjectThatIsNotThereIsNothing(t *testing.T) {
	for way, put := range ways {
		t.Run(way, func(t *testing.T) {
			var tr transforming
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: knowing()})
			must(t, put(f, labelled(podAt("a", "1", "2"), "nil")))
			assert.Empty(t, drained(t, f))
		})
	}
}

// A deletion happens whatever becomes of its final state.
func TestADeletionIsTakenThoughItsFinalStateCannotBeTransformed(t *testing.T) {
	for label, want := range map[string]string{
		"good": "Deleted a/1@2!", "bad": "Deleted tombstone a/1 @1", "panics": "Deleted tombstone a/1 @1", "nil": "Deleted tombstone a/1 @1",
	} {
		t.Run(label, func(t *testing.T) {
			var tr transforming
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: knowing(podAt("a", "1", "1"))})
			changes := changesOf(event{kind: Deleted, obj: labelled(podAt("a", "1", "2"), label), version: "2"})
			_, err := f.takeChanges(bg, changes)
			must(t, err)
			if failed := changes[0].finalErr; failed != nil {
				assert.Equal(t, StageTransform, failed.Stage)
			}
			assert.Equal(t, label == "bad" || label == "panics", changes[0].finalErr != nil)
			assert.Empty(t, f.quarantined())
			assert.Equal(t, []string{want}, drained(t, f))
			assert.Equal(t, "2", f.processedVersion())
		})
	}
	var tr transforming
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: knowing()})
	must(t, takeOne(f, event{kind: Deleted, obj: podAt("a", "1", "2"), version: "2"}))
	assert.Empty(t, tr.calls, "nobody gets to see it")
}

// G6 for the queue. Fails if an object that is held back is not let go of, or is
// new at each relist.
func TestWhatIsHeldBackIsListedUntilALaterStateIsTaken(t *testing.T) {
	var tr transforming
	newHolding := func(t *testing.T) *DeltaFIFO {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: newTagStore()})
		err := f.Replace([]any{labelled(podAt("a", "1", "1"), "bad"), podAt("a", "2", "2")}, "2")
		object, _ := asObjectError(err)
		require.False(t, object.repeated)
		assert.Equal(t, []string{"Sync a/2@2!"}, drained(t, f))
		assert.True(t, f.HasSynced(), "one bad object does not make synced wait")
		assert.Equal(t, []string{"a/1"}, heldKeys(f))
		return f
	}
	for name, let := range map[string]func(f *DeltaFIFO) error{
		"a good state": func(f *DeltaFIFO) error { return f.Update(podAt("a", "1", "3")) },
		"a deletion":   func(f *DeltaFIFO) error { return f.Delete(podAt("a", "1", "3")) },
		"unwanted":     func(f *DeltaFIFO) error { return f.Update(labelled(podAt("a", "1", "3"), "nil")) },
		"not listed":   func(f *DeltaFIFO) error { return f.Replace(nil, "3") },
		"good in a list": func(f *DeltaFIFO) error {
			return f.Replace([]any{podAt("a", "1", "3")}, "3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHolding(t)
			must(t, let(f))
			assert.Empty(t, f.quarantined())
		})
	}
	f := newHolding(t)
	object, _ := asObjectError(f.Replace([]any{labelled(podAt("a", "1", "1"), "bad")}, "3"))
	assert.True(t, object.repeated, "the same version again")
	object, _ = asObjectError(f.Update(labelled(podAt("a", "1", "4"), "bad")))
	assert.False(t, object.repeated)
	assert.Equal(t, []string{"a/1"}, heldKeys(f))
}

// B6 for Replace: the good ones are there, the bad ones keep their state.
func TestAListWithBadObjectsIsTakenWithoutThem(t *testing.T) {
	var tr transforming
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: knowing(podAt("a", "bad", "1"), podAt("a", "gone", "2"))})
	err := f.Replace([]any{
		podAt("a", "1", "3"), nil, labelled(podAt("a", "bad", "4"), "bad"), pod("", ""), podAt("a", "2", "5"),
	}, "5")
	assert.Equal(t, []string{"Sync a/1@3!", "Sync a/2@5!", "Deleted tombstone a/gone @2"}, drained(t, f))
	assert.Equal(t, "5", f.processedVersion())
	assert.True(t, f.HasSynced())
	var key KeyError
	assert.ErrorAs(t, err, &key)
	assert.ErrorIs(t, err, ErrEmptyKey)
	assert.ErrorIs(t, err, ErrNilObject)
	assert.ErrorIs(t, err, errBoom)
	objects, other := splitObjectErrors(err)
	assert.Len(t, objects, 3)
	assert.NoError(t, other)
}

// B15 for the queue: only events are looked at, and only against their own key,
// queued, in flight or known. Fails if takeEvent does not ask newestReceived.
func TestAnEventOlderThanItsKeyIsNotTaken(t *testing.T) {
	store := newTagStore()
	must(t, store.Add(podAt("a", "known", "5")))
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: store})
	older := func(name, have string) {
		t.Helper()
		for _, kind := range []DeltaType{Added, Updated, Deleted} {
			var regression *RegressionError
			require.ErrorAs(t, takeOne(f, event{kind: kind, obj: podAt("a", name, "4"), version: "4"}), &regression)
			assert.Equal(t, RegressionError{What: "event", Key: "a/" + name, Have: have, Got: "4"}, *regression)
		}
	}
	older("known", "5")
	must(t, takeOne(f, event{kind: Added, obj: podAt("a", "queued", "6"), version: "6"}))
	older("queued", "6")
	must(t, takeOne(f, event{kind: Deleted, obj: podAt("a", "known", "7"), version: "7"}))
	_, err := f.Pop(func(any, bool) error {
		older("queued", "6")
		return nil
	})
	must(t, err)
	assert.Equal(t, "6", f.processedVersion())

	// Equal is none, nor is what cannot be compared, another key, a way in other
	// than an event, or what comes after a deletion: then the key starts anew.
	must(t, takeOne(f, event{kind: Added, obj: podAt("a", "known", "6"), version: "6"}))
	must(t, takeOne(f, event{kind: Updated, obj: podAt("a", "known", "7"), version: ""}), takeOne(f, event{kind: Updated, obj: podAt("a", "known", "x"), version: ""}),
		takeOne(f, event{kind: Updated, obj: podAt("a", "new", "1"), version: ""}), f.Update(podAt("a", "new", "0")), f.Add(podAt("a", "known", "1")),
		f.Replace([]any{podAt("a", "new", "1")}, "2"))
}
