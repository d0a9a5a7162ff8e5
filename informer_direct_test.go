package cache

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An event of an object that is known costs a typed informer no memory, however many
// handlers it has. Fails if a key, a slice of index values or a notification is made for
// one.
func TestAnEventCostsATypedInformerNoAllocation(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates")
	}
	for _, handlers := range []int{0, 1, 5} {
		t.Run(fmt.Sprint(handlers), func(t *testing.T) {
			const objects, rounds = 100, 50
			inf := NewInformerFor(&ListWatch{}, InformerConfig[*metav1.PartialObjectMetadata]{}).shared
			inf.ctx = context.Background()
			feed := informerStore{inf.queue, inf}
			replacement := feed.BeginReplace(ReplaceOptions{})
			var part ReplacementPart
			for i := range objects {
				part.Items = append(part.Items, smallObject(i, i+1))
			}
			_, err := replacement.Part(inf.ctx, part)
			require.NoError(t, err)
			require.NoError(t, replacement.Commit(inf.ctx, itoa(objects)))
			var listeners []*listener
			for range handlers {
				_, err := addTypedHandler(inf, TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{}, nil)
				require.NoError(t, err)
			}
			listeners = inf.currentListeners()
			var batches [][]event
			for round := range rounds + 2 {
				var events []event
				for i := range directly {
					obj := smallObject(i, objects+round*objects+i)
					events = append(events, event{kind: Updated, obj: obj, version: obj.ResourceVersion})
				}
				batches = append(batches, met(events...))
			}
			told := 0
			per := testing.AllocsPerRun(rounds, func() {
				n, refused, err := feed.takeEvents(batches[0], nil)
				require.Equal(t, directly, n)
				require.Empty(t, refused)
				require.NoError(t, err)
				batches = batches[1:]
				for _, l := range listeners {
					told += tellAll(l)
				}
				inf.tidy()
			})
			assert.LessOrEqual(t, per/directly, 0.02)
			assert.Equal(t, handlers*directly*(rounds+1), told)
		})
	}
}

// The events of one batch may be of one object, and may be anything: what they do together
// is what they do one after the other. Fails if an event is compared with, or applied to,
// what was there before the batch.
func TestSeveralEventsOfOneObjectInOneBatchAreToldOneByOne(t *testing.T) {
	inf := newFedInformer(t, SharedIndexInformerOptions{})
	n, err := inf.take(eventOf(Added, "a", "2"), eventOf(Updated, "a", "3"), eventOf(Deleted, "a", "4"), eventOf(Added, "a", "5"),
		eventWith(Updated, withUID(podAt("a", "1", "6"), "another")),
		event{kind: Updated, obj: withUID(podAt("a", "1", "5"), "another"), version: "7"}, eventOf(Updated, "a", "8"))
	var regression *RegressionError
	require.ErrorAs(t, err, &regression)
	require.Equal(t, 5, n, "what goes back in time ends the batch before it")
	require.Equal(t, "6", inf.LastSyncResourceVersion())
	require.Equal(t, []string{"add a/1@2", "update a/1@3", "delete a/1", "add a/1@5", "tombstone a/1", "add a/1@6"}, inf.calls())
}

// An event is written to the cell in which its object was seen when the batch was prepared, if
// that is still its own. Fails if it is written there after another object has taken the place.
func TestAnEventIsWrittenToAPlaceOnlyWhileThatIsItsObjects(t *testing.T) {
	inf := newFedInformer(t, SharedIndexInformerOptions{})
	inf.takeAll(eventOf(Added, "a", "2"), eventOf(Added, "b", "3"))
	inf.takeAll(eventOf(Deleted, "a", "4"), eventOf(Added, "c", "5"), eventOf(Added, "a", "6"), eventOf(Updated, "b", "7"))
	require.Equal(t, map[string]string{"a/1": "6", "b/1": "7", "c/1": "5"}, contents(inf.store))
}

// G2, B15: what was held back when a batch began excuses an event that is older than what is
// stored only until another state of the object has come. Fails if it does for the whole
// batch: then the store goes back, and nobody hears of it.
func TestAnEventIsComparedWithWhatCameBeforeItInItsBatch(t *testing.T) {
	older, newer := eventOf(Updated, "a", "11"), eventOf(Updated, "a", "13")
	for name, batches := range map[string][][]event{
		"one by one": {{newer}, {older}}, "together": {{newer, older}},
	} {
		t.Run(name, func(t *testing.T) {
			inf := newFedInformer(t, SharedIndexInformerOptions{})
			inf.takeAll(eventOf(Updated, "a", "10"))
			inf.queue.passed("11", []directArrival{{byQueue: true, refused: &ObjectError{
				Key: "a/1", ResourceVersion: "11", Stage: StageTransform, Err: errBoom,
			}}}, true)
			var err error
			for _, events := range batches {
				_, err = inf.take(events...)
			}
			require.ErrorAs(t, err, new(*RegressionError))
			require.Equal(t, map[string]string{"a/1": "13"}, contents(inf.store))
		})
	}
}

// A transform may look up in the store what came before. Fails if it is called for a whole
// batch first.
func TestATransformSeesTheEventsBeforeItsOwn(t *testing.T) {
	var seen []string
	var inf *fedInformer
	inf = newFedInformer(t, SharedIndexInformerOptions{Transform: func(obj any) (any, error) {
		seen = append(seen, inf.LastSyncResourceVersion())
		return obj, nil
	}})
	for events := []event{eventOf(Updated, "a", "2"), eventOf(Updated, "b", "3"), eventOf(Updated, "c", "4")}; len(events) > 0; {
		n, err := inf.take(events...)
		require.NoError(t, err)
		events = events[n:]
	}
	require.Equal(t, []string{"1", "2", "3"}, seen)
}

// G8: an object with many values does not keep their room for ever. Fails if the slices that
// are used again keep the largest that they have had, or a value.
func TestRoomForManyIndexValuesIsNotKept(t *testing.T) {
	many := make([]string, 1_000)
	for i := range many {
		many[i] = itoa(i)
	}
	inf := newFedInformer(t, SharedIndexInformerOptions{
		Indexers: Indexers{
			"many": func(any) ([]string, error) { return many, nil },
			"few":  func(any) ([]string, error) { return many[:2], nil },
		},
	})
	inf.takeAll(eventOf(Added, "a", "2"))
	rooms := inf.direct.values
	require.Len(t, rooms, 1)
	require.Positive(t, cap(rooms[0]), "what is used again is kept")
	for _, values := range rooms[0][:cap(rooms[0])] {
		require.LessOrEqual(t, cap(values), fewValues)
		for _, value := range values[:cap(values)] {
			require.Empty(t, value, "a value of an earlier event is kept")
		}
	}
}

// A handler that is removed while it is told of something reads nothing afterwards, and until
// then nothing is cleared that it may read. Fails if it is off the list a moment before.
func TestNothingIsClearedUnderAHandlerThatIsBeingRemoved(t *testing.T) {
	inf := newFedInformer(t, SharedIndexInformerOptions{})
	inf.takeAll(eventOf(Added, "a", "2"))
	l := inf.currentListeners()[0]
	l.mu.Lock() // as it does while it reads
	removed := make(chan error)
	go func() { removed <- inf.RemoveEventHandler(l) }()
	for len(inf.currentListeners()) > 0 {
		runtime.Gosched()
	}
	if inf.log.mu.TryLock() {
		inf.log.mu.Unlock()
		t.Error("somebody else may clear what it is about to read")
	}
	_, there := l.backlog.take()
	require.True(t, there)
	l.mu.Unlock()
	require.NoError(t, <-removed)
	_, there = l.take()
	require.False(t, there)
}
