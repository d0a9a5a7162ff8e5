package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestMutationOfAStoredObjectIsReportedOncePerState(t *testing.T) {
	detector, heard := newDetector()
	first := newMachine("m")
	detector.stored("ns/m", first, detector.report)
	detector.check()
	require.Empty(t, heard.take(), "nothing was changed yet")

	first.Labels["app"] = "changed"
	detector.check()
	detector.check()
	require.Equal(t, []string{`object "ns/m" at version 7 was changed in the store, where it is shared: metadata.labels["app"] changed`}, heard.take())

	first.Labels["app"] = "again"
	detector.stored("ns/m", first, detector.report)
	first.Labels["app"] = "and again"
	detector.check()
	require.Empty(t, heard.take(), "the same pointer is the same state, which was reported")

	second := newMachine("m")
	second.ResourceVersion = "8"
	detector.stored("ns/m", second, detector.report)
	detector.check()
	require.Empty(t, heard.take(), "the new state is as it was stored")
	second.Labels["app"] = "changed"
	detector.check()
	require.Equal(t, "8", heard.one(t).ResourceVersion)
}

func TestTheVersionReportedIsThatOfTheStateThatWasChanged(t *testing.T) {
	detector, heard := newDetector()
	object := newMachine("m")
	detector.stored("ns/m", object, detector.report)
	object.ResourceVersion = "forged"
	detector.check()
	mutated := heard.one(t)
	require.Equal(t, "7", mutated.ResourceVersion)
	require.Equal(t, []FieldChange{{"metadata.resourceVersion", FieldChanged}}, mutated.Changes)
}

func TestWhatLeavesTheStoreIsComparedALastTime(t *testing.T) {
	for how, leave := range map[string]func(d *mutationDetector){
		"replaced":              func(d *mutationDetector) { d.stored("ns/m", newMachine("m"), d.report) },
		"replaced by no object": func(d *mutationDetector) { d.stored("ns/m", (*machine)(nil), d.report) },
		"gone":                  func(d *mutationDetector) { d.gone("ns/m", d.report) },
	} {
		t.Run(how, func(t *testing.T) {
			detector, heard := newDetector()
			object := newMachine("m")
			detector.stored("ns/m", object, detector.report)
			object.Spec.Parts[1].Image = "other"
			leave(detector)
			require.Equal(t, []FieldChange{{"spec.parts[1].image", FieldChanged}}, heard.one(t).Changes)

			object.Spec.Parts[0].Image = "other"
			detector.check()
			leave(detector)
			require.Empty(t, heard.take(), "it is forgotten")
		})
	}
}

func TestTheSamePointerStoredAgainIsComparedWithTheFirstCopy(t *testing.T) {
	detector, heard := newDetector()
	object := newMachine("m")
	detector.stored("ns/m", object, detector.report)
	object.Labels["app"] = "changed"
	detector.stored("ns/m", object, detector.report)
	require.Equal(t, []FieldChange{{`metadata.labels["app"]`, FieldChanged}}, heard.one(t).Changes)
}

func TestGoneObjectsAreNotKept(t *testing.T) {
	detector, _ := newDetector()
	for i := range 100 {
		detector.stored(fmt.Sprint(i), newMachine("m"), detector.report)
	}
	for i := range 100 {
		detector.gone(fmt.Sprint(i), detector.report)
	}
	requireNothingWatched(t, detector)
}

func requireNothingWatched(t *testing.T, d *mutationDetector) {
	t.Helper()
	d.watched.Range(func(key, _ any) bool {
		t.Errorf("%v is still watched", key)
		return true
	})
}

func TestDetectionRunsEveryPeriodAndALastTimeAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		began := time.Now()
		detector := newMutationDetector(MutationDetection{SampleEvery: 1, Period: 10 * time.Second}, func(error) {
			told = append(told, time.Since(began))
		})
		objects := []*machine{newMachine("0"), newMachine("1"), newMachine("2")}
		for _, object := range objects {
			detector.stored(object.Name, object, detector.report)
		}
		broken := func(m *machine) { m.Spec.Replicas = nil }
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { detector.run(ctx, clock.RealClock{}) })

		time.Sleep(12 * time.Second)
		mutate(detector, objects[0], broken)
		time.Sleep(time.Second)
		mutate(detector, objects[1], broken)
		time.Sleep(10 * time.Second)
		mutate(detector, objects[2], broken)
		time.Sleep(time.Second)
		cancel()
		running.Wait()
		require.Equal(t, []time.Duration{20 * time.Second, 20 * time.Second, 24 * time.Second}, told)
		detector.clear()
		requireNothingWatched(t, detector)
	})
}

func TestDetectionRunsEverySecondByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		detector, heard := newDetector()
		object := newMachine("m")
		detector.stored("m", object, detector.report)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { detector.run(ctx, clock.RealClock{}) })

		mutate(detector, object, func(m *machine) { m.Labels["app"] = "changed" })
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, heard.take())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, heard.take(), 1)
		cancel()
		running.Wait()
	})
}

func TestOneObjectInSoManyIsWatchedAlwaysTheSame(t *testing.T) {
	const objects, every = 10_000, 10
	sampled := func(d *mutationDetector) (keys []string) {
		for i := range objects {
			if key := fmt.Sprintf("ns/%d", i); d.samples(key) {
				keys = append(keys, key)
			}
		}
		return keys
	}
	options := MutationDetection{SampleEvery: every}
	one, other := newMutationDetector(options, func(error) {}), newMutationDetector(options, func(error) {})
	keys := sampled(one)
	// Six standard deviations: sqrt(10,000 x 0.1 x 0.9) is 30.
	require.InDelta(t, objects/every, len(keys), 180)
	require.Equal(t, keys, sampled(one))
	require.NotEqual(t, keys, sampled(other), "each detector chooses anew")

	copied := 0
	for i := range objects {
		one.stored(fmt.Sprintf("ns/%d", i), &countingCopies{copies: &copied}, one.report)
	}
	require.Len(t, keys, copied, "only those chosen are copied")
}

// countingCopies counts its deep copies.
type countingCopies struct {
	bare
	copies *int
}

func (c *countingCopies) DeepCopyObject() apiruntime.Object {
	*c.copies++
	return &countingCopies{copies: c.copies}
}

// bare has no metadata at all.
type bare struct{}

func (bare) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func TestDetectionIsOffByDefault(t *testing.T) {
	detector := newMutationDetector(MutationDetection{Period: time.Minute}, nil)
	require.Nil(t, detector)
	detector.stored("ns/m", newMachine("m"), nil)
	detector.check()
	detector.gone("ns/m", nil)
	detector.run(t.Context(), nil)
}

func TestDetectionWithImpossibleOptionsPanics(t *testing.T) {
	report := func(error) {}
	require.PanicsWithValue(t, "cache: MutationDetection.SampleEvery is negative", func() {
		newMutationDetector(MutationDetection{SampleEvery: -1}, report)
	})
	require.PanicsWithValue(t, "cache: MutationDetection.Period is negative", func() {
		newMutationDetector(MutationDetection{Period: -1}, report)
	})
	require.PanicsWithValue(t, "cache: a mutation detector needs a report function", func() {
		newMutationDetector(MutationDetection{SampleEvery: 1}, nil)
	})
}

func TestDetectionHoldsNoLockWhileItCallsTheUser(t *testing.T) {
	var detector *mutationDetector
	calls := 0
	reenter := func() {
		calls++
		detector.stored("inner", newMachine("inner"), detector.report)
		detector.check()
		detector.gone("inner", detector.report)
	}
	detector = newMutationDetector(MutationDetection{SampleEvery: 1}, func(error) { reenter() })
	object := &copying{Name: "n"}
	object.copy = func() apiruntime.Object {
		reenter()
		return &copying{Name: "n"}
	}
	detector.stored("k", object, detector.report)
	object.Name = "changed"
	detector.check()
	require.Equal(t, 2, calls, "in DeepCopyObject and in report")
}

func TestDetectionWhileTheStoreChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		detector, heard := newDetector()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { detector.run(ctx, clock.RealClock{}) })
		running.Go(func() {
			for range 50 {
				detector.check()
			}
		})
		// A state may be changed until it is stored, as a transform does.
		for i := range 500 {
			key := fmt.Sprint(i % 7)
			object := newMachine(key)
			object.Labels["i"] = fmt.Sprint(i)
			detector.stored(key, object, detector.report)
			if i%10 == 0 {
				detector.gone(key, detector.report)
			}
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		cancel()
		running.Wait()
		require.Empty(t, heard.take())
	})
}

func TestOneStateIsReportedByOneOfManyCheckers(t *testing.T) {
	detector, heard := newDetector()
	for i := range 20 {
		object := newMachine("m")
		detector.stored(fmt.Sprint(i), object, detector.report)
		object.Labels["app"] = "changed"
	}
	var checking sync.WaitGroup
	for range 8 {
		checking.Go(detector.check)
	}
	checking.Wait()
	require.Len(t, heard.take(), 20)
}

func TestAnErrorNamesFiveChangesAndCountsTheRest(t *testing.T) {
	detector, heard := newDetector()
	object := newMachine("m")
	detector.stored("ns/m", object, detector.report)
	for _, key := range strings.Split("zgfedcba", "") {
		object.Labels[key] = "secret"
	}
	delete(object.Labels, "app")
	detector.check()
	require.Equal(t, []string{`object "ns/m" at version 7 was changed in the store, where it is shared: ` +
		`metadata.labels["a"] added, metadata.labels["app"] removed, metadata.labels["b"] added, ` +
		`metadata.labels["c"] added, metadata.labels["d"] added, and 4 more`}, heard.take())
}

func TestAnObjectThatCannotBeReadAnyMoreWasChanged(t *testing.T) {
	detector, heard := newDetector()
	object := &copying{Name: "n", copy: func() apiruntime.Object { return &copying{Name: "n"} }}
	detector.stored("k", object, detector.report)
	// What a reader may see of a string that is being written: the length before
	// the bytes.
	*(*[2]uintptr)(unsafe.Pointer(&object.Name)) = [2]uintptr{0, 1}
	detector.check()
	object.Name = "n"
	detector.check()
	require.Equal(t, []string{`object "k" was changed in the store, where it is shared: it was being changed while it was compared`}, heard.take())
}
