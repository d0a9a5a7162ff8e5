package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// An informer looks at what is there of an event's object before the user's index functions
// are called, which may change that. Fails if the event is written to the cell in which its
// object was then, which is another one's by now.
func TestAnEventIsWrittenToNoPlaceThatAnIndexFunctionHasGivenToAnother(t *testing.T) {
	meddle := func() {}
	inf := newFedInformer(t, SharedIndexInformerOptions{Indexers: Indexers{
		"meddler": func(any) ([]string, error) {
			now := meddle
			meddle = func() {}
			now()
			return nil, nil
		},
	}})
	inf.takeAll(eventOf(Added, "a", "2"), eventOf(Added, "b", "3"))
	meddle = func() {
		require.NoError(t, inf.store.Delete(podAt("a", "1", "2")))
		require.NoError(t, inf.store.Add(podAt("c", "1", "4")))
	}
	inf.takeAll(eventOf(Updated, "a", "5"), eventOf(Updated, "b", "6"))
	require.Equal(t, map[string]string{"a/1": "5", "b/1": "6", "c/1": "4"}, contents(inf.store))
}

// B15: an event is compared with what its object's state says of itself, unless the store has
// received nothing above its version, by whatever way. Fails if one of the ways does not count:
// then the store goes back, and nobody hears of it.
func TestAnEventFromBeforeIsNoticedByWhateverWayTheStoreGotWhatItHas(t *testing.T) {
	newest := podAt("a", "1", "50")
	for name, put := range map[string]func(*sharedIndexInformer, informerStore) error{
		"a first list": func(_ *sharedIndexInformer, feed informerStore) error {
			list := feed.BeginReplace(ReplaceOptions{})
			if _, err := list.Part(bg, ReplacementPart{Items: []any{newest}}); err != nil {
				return err
			}
			return list.Commit(bg, "5")
		},
		"a later list": func(_ *sharedIndexInformer, feed informerStore) error {
			for _, items := range [][]any{nil, {newest}} {
				list := feed.BeginReplace(ReplaceOptions{})
				if _, err := list.Part(bg, ReplacementPart{Items: items}); err != nil {
					return err
				}
				if err := list.Commit(bg, "5"); err != nil {
					return err
				}
			}
			return nil
		},
		"an event": func(_ *sharedIndexInformer, feed informerStore) error {
			_, _, err := feed.takeEvents(met(eventOf(Added, "a", "50")), nil)
			return err
		},
		"Add":     func(inf *sharedIndexInformer, _ informerStore) error { return inf.store.Add(newest) },
		"Replace": func(inf *sharedIndexInformer, _ informerStore) error { return inf.store.Replace([]any{newest}, "5") },
	} {
		for _, indexers := range []Indexers{nil, {NamespaceIndex: MetaNamespaceIndexFunc}} {
			t.Run(name, func(t *testing.T) {
				inf := newSharedIndexInformer(&scripted{}, &object{}, SharedIndexInformerOptions{Indexers: indexers})
				inf.ctx = bg
				feed := informerStore{inf.queue, inf}
				if name != "a first list" && name != "a later list" {
					require.NoError(t, feed.BeginReplace(ReplaceOptions{}).Commit(bg, "1"))
				}
				require.NoError(t, put(inf, feed))
				for _, batch := range [][]event{{eventOf(Updated, "a", "40")}, {eventOf(Updated, "a", "41"), eventOf(Added, "b", "42")}} {
					_, _, err := feed.takeEvents(met(batch...), nil)
					var regression *RegressionError
					require.ErrorAs(t, err, &regression)
					require.Equal(t, RegressionError{What: "event", Key: "a/1", Have: "50", Got: batch[0].version}, *regression)
				}
				_, _, err := feed.takeEvents(met(eventOf(Added, "b", "43"), eventOf(Updated, "a", "51")), nil)
				require.NoError(t, err, "what is below the highest version is not older for that")
				require.Equal(t, map[string]string{"a/1": "51", "b/1": "43"}, contents(inf.store))
			})
		}
	}
}

// In an order of all texts well-formed versions are as their numbers are. Fails if a longer one
// sorts first.
func TestWellFormedVersionsSortAsTheirNumbersDo(t *testing.T) {
	sorted := []string{"", "7", "9", "10", "99", "100", "18446744073709551616"}
	for i, a := range sorted {
		for j, b := range sorted {
			assert.Equal(t, i < j, sortsBefore(a, b), "%q, %q", a, b)
			assert.Equal(t, i > 0 && i < j, versionBefore(a, b), "%q, %q", a, b)
		}
	}
}

// secretive is an object that panics when it is asked for one thing.
type secretive struct {
	object
	uid, version bool
}

func (s *secretive) GetUID() types.UID {
	if s.uid {
		panic("no")
	}
	return s.object.GetUID()
}

func (s *secretive) GetResourceVersion() string {
	if s.version {
		panic("no")
	}
	return s.object.GetResourceVersion()
}

// Of objects that are read together one that panics says nothing, as it does alone. Fails if
// those after it say nothing either, or if something that it has said is kept.
func TestAnObjectThatPanicsKeepsNoOtherFromBeingReadWithIt(t *testing.T) {
	objects := []any{
		podAt("a", "1", "1"), &secretive{object: *podAt("a", "2", "2"), uid: true},
		&secretive{object: *podAt("a", "3", "3"), version: true}, nil, podAt("a", "5", "5"),
	}
	said, uids := make([]metadata, len(objects)), make([]types.UID, len(objects))
	of := func(i int) any { return objects[i] }
	readTogether(said, of)
	readUIDs(uids, of)
	assert.Equal(t, []metadata{
		{namespace: "a", name: "1", received: Received{"1", "1"}, readable: true}, {}, {}, {},
		{namespace: "a", name: "5", received: Received{"5", "5"}, readable: true},
	}, said)
	assert.Equal(t, []types.UID{"1", "", "3", "", "5"}, uids)
	for i, obj := range objects {
		alone, uid := make([]metadata, 1), make([]types.UID, 1)
		readTogether(alone, func(int) any { return obj })
		readUIDs(uid, func(int) any { return obj })
		assert.Equal(t, said[i], alone[0], "%d, alone", i)
		assert.Equal(t, uids[i], uid[0], "%d, alone", i)
	}
}

// What a reader has made of an object's UID says nothing of what was received: an event of it is
// an update. Fails if it is told as the end of one object and the beginning of another.
func TestAnEventIsAnUpdateAlsoWhereAReaderHasChangedTheUID(t *testing.T) {
	inf := newFedInformer(t, SharedIndexInformerOptions{})
	for _, e := range []event{eventOf(Added, "a", "2"), eventOf(Updated, "a", "3")} {
		if stored, exists, _ := inf.store.GetByKey("a/1"); exists {
			stored.(*object).UID = "changed"
		}
		inf.takeAll(e)
	}
	require.Equal(t, []string{"add a/1@2", "update a/1@3"}, inf.calls())
}

// What was received of an object whose transform takes away its UID is in a receipt: that of
// the next one under its name is compared with it. Fails if it is compared with what is stored,
// of which it could be a later state: then a new object is told as an update of the old one.
func TestAnObjectThatWasMadeAnewIsToldSoAlsoWhereATransformStripsTheUID(t *testing.T) {
	inf := newFedInformer(t, SharedIndexInformerOptions{Transform: func(obj any) (any, error) {
		stripped := obj.(*object).DeepCopy()
		stripped.UID = ""
		return stripped, nil
	}})
	another := withUID(podAt("a", "1", "4"), "another")
	for _, e := range []event{eventOf(Added, "a", "2"), eventOf(Updated, "a", "3"), eventWith(Updated, another)} {
		inf.takeAll(e)
	}
	require.Equal(t, []string{"add a/1@2", "update a/1@3", "tombstone a/1", "add a/1@4"}, inf.calls())
}
