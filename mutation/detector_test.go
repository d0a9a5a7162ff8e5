package mutation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// rig is a detector with a watched store, in virtual time.
type rig struct {
	*detector
	store cache.Store

	mu       sync.Mutex
	reported []string
}

func (r *rig) report(key string, err error) {
	var found *cache.MutatedObjectError
	if !errors.As(err, &found) || found.Key != key {
		panic(fmt.Sprintf("%s: %v", key, err))
	}
	text := fmt.Sprintf("%s: %d %v", key, found.Total, found.Changes)
	if found.Err != nil {
		text = fmt.Sprintf("%s: %v", key, found.Err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported = append(r.reported, text)
}

// take returns the reports since its last call.
func (r *rig) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.reported = nil }()
	return r.reported
}

// put stores an object like an informer.
func (r *rig) put(t *testing.T, obj metav1.Object) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	require.NoError(t, err)
	r.Watch(key, obj)
	require.NoError(t, r.store.Update(obj))
}

// change changes an object like a reader, visibly for a comparison: the detector locks before it
// compares.
func (r *rig) change(f func()) {
	r.detector.mu.Lock()
	defer r.detector.mu.Unlock()
	f()
}

func (r *rig) len() int {
	r.detector.mu.Lock()
	defer r.detector.mu.Unlock()
	return len(r.watched)
}

// run calls f with a running detector.
func run(t *testing.T, o Options, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{detector: o.New().(*detector), store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx, r.store, r.report) })
		f(t, r)
		cancel()
		running.Wait()
		require.Zero(t, r.len(), "the copies are released")
	})
}

func TestAChangeIsReportedOncePerState(t *testing.T) {
	run(t, Options{}, func(t *testing.T, r *rig) {
		first := newMachine("m")
		r.put(t, first)
		time.Sleep(time.Minute)
		require.Empty(t, r.take(), "nothing was changed yet")
		r.change(func() { first.Labels["app"], first.ResourceVersion = "changed", "forged" })
		time.Sleep(time.Minute)
		require.Equal(
			t, []string{"ns/m: 2 [metadata.labels.app changed metadata.resourceVersion changed]"},
			r.take())
		r.change(func() { first.Labels["app"] = "again" })
		r.put(t, first)
		time.Sleep(time.Minute)
		require.Empty(t, r.take(), "the same pointer is the same state, which was reported")
		second := newMachine("m")
		r.put(t, second)
		r.change(func() { second.Labels["app"] = "changed" })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"ns/m: 1 [metadata.labels.app changed]"}, r.take())
	})
}

func TestAReportNamesFiveChangesAndCountsTheRestAndHasTheVersionOfTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Options{}.New()
		object := newMachine("m")
		d.Watch("k", object)
		object.ResourceVersion = "forged"
		for _, key := range []string{"z", "g", "f", "e", "d", "c", "b", "a"} {
			object.Labels[key] = "secret"
		}
		var found *cache.MutatedObjectError
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // everything is compared for the last time
		d.Run(
			ctx, cache.NewStore(cache.MetaNamespaceKeyFunc),
			func(_ string, err error) { require.ErrorAs(t, err, &found) })
		require.Len(t, found.Changes, 5)
		require.Equal(t, 9, found.Total)
		require.Equal(t, "metadata.labels.a added", found.Changes[0])
		require.Equal(t, "7", found.ResourceVersion)
	})
}

func TestAReplacedObjectIsComparedAtOnce(t *testing.T) {
	run(t, Options{Period: time.Hour}, func(t *testing.T, r *rig) {
		object := newMachine("m")
		r.put(t, object)
		r.change(func() { object.Spec.Parts[1].Image = "other" })
		r.put(t, newMachine("m"))
		require.Equal(t, []string{"ns/m: 1 [spec.parts[1].image changed]"}, r.take())
		require.Equal(t, 1, r.len())
	})
}

func TestARemovedObjectIsComparedAndForgottenOnceItIsAbsentTwice(t *testing.T) {
	run(t, Options{Period: time.Hour}, func(t *testing.T, r *rig) {
		object := newMachine("m")
		r.Watch("ns/m", object) // the write has not ended yet
		time.Sleep(90 * time.Minute)
		require.NoError(t, r.store.Add(object))
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		require.Equal(t, 1, r.len())
		require.NoError(t, r.store.Delete(object))
		r.change(func() { object.Spec.Parts[1].Image = "other" })
		time.Sleep(time.Hour)
		require.Equal(t, []string{"ns/m: 1 [spec.parts[1].image changed]"}, r.take())
		require.Equal(t, 1, r.len())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, r.len())
	})
}

func TestComparisonsAreAPeriodApartAndOneIsAtTheEnd(t *testing.T) {
	var r *rig
	run(t, Options{}, func(t *testing.T, is *rig) {
		r = is
		var objects []*machine
		for i := range 3 {
			objects = append(objects, newMachine(fmt.Sprint(i)))
			r.put(t, objects[i])
		}
		r.change(func() { objects[0].Spec.Replicas = nil })
		time.Sleep(time.Second - time.Nanosecond)
		require.Empty(t, r.take())
		time.Sleep(time.Nanosecond)
		require.Len(t, r.take(), 1)
		r.change(func() { objects[1].Spec.Replicas = nil })
		time.Sleep(time.Second - time.Nanosecond)
		require.Empty(t, r.take())
		time.Sleep(time.Nanosecond)
		require.Len(t, r.take(), 1)
		r.change(func() { objects[2].Spec.Replicas = nil })
	})
	require.Equal(t, []string{"ns/2: 1 [spec.replicas removed]"}, r.reported)
}

func TestOneKeyInSoManyIsWatchedAndEachDetectorChoosesAnew(t *testing.T) {
	const keys, every = 10_000, 10
	sampled := func(d *detector) map[string]bool {
		all := map[string]bool{}
		for i := range keys {
			d.Watch(fmt.Sprintf("ns/%d", i), &named{})
		}
		for key := range d.watched {
			all[key] = true
		}
		return all
	}
	d := Options{SampleEvery: every}.New().(*detector)
	all := sampled(d)
	require.InDelta(
		t, keys/every, len(all), 180, "six standard deviations of sqrt(10,000 x 0.1 x 0.9)")
	require.Equal(t, all, sampled(d))
	require.NotEqual(t, all, sampled(Options{SampleEvery: every}.New().(*detector)))
}

func TestNoLockIsHeldWhileUserCodeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Options{}.New()
		calls := 0
		reenter := func() {
			calls++
			d.Watch("inner", newMachine("inner"))
		}
		object := &named{Name: "n"}
		object.Size.read = reenter
		d.Watch("k", object)
		object.Name = "changed"
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d.Run(ctx, cache.NewStore(cache.MetaNamespaceKeyFunc), func(string, error) { reenter() })
		require.Equal(t, 3, calls, "in two conversions and in report")
	})
}

func TestManyWritersAreWatchedAtOnce(t *testing.T) {
	run(t, Options{Period: time.Millisecond}, func(t *testing.T, r *rig) {
		for i := range 20 {
			object := newMachine(fmt.Sprint(i))
			r.put(t, object)
			r.change(func() { object.Labels["app"] = "changed" })
		}
		var writing sync.WaitGroup
		for n := range 4 {
			writing.Go(func() {
				for i := range 200 {
					r.Watch(fmt.Sprint("other ", n, i%7), newMachine("m"))
					time.Sleep(time.Millisecond)
				}
			})
		}
		writing.Wait()
		require.Len(t, r.take(), 20)
	})
}

func TestAnObjectThatCannotBeReadWasChanged(t *testing.T) {
	run(t, Options{}, func(t *testing.T, r *rig) {
		object := &named{Name: "n"}
		r.Watch("k", object)
		// A reader may see half of a write.
		r.change(func() { object.Size.read = func() { _ = *(*byte)(nil) } })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"k: 0 []"}, r.take())
	})
}

// named calls read while it is converted to JSON.
type named struct {
	Name string `json:"name"`
	Size size   `json:"size"`
}

type size struct{ read func() }

func (s size) MarshalJSON() ([]byte, error) {
	if s.read != nil {
		s.read()
	}
	return []byte("1"), nil
}

func TestATypeThatCannotBeReadIsReportedOnceAndNotWatched(t *testing.T) {
	for name, test := range map[string]struct {
		object any
		cause  string
	}{
		"a channel": {&struct{ C chan int }{make(chan int)}, "json: unsupported type: chan int"},
		"panics":    {&named{Size: size{func() { panic("no") }}}, "MarshalJSON: panic: no"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, Options{}, func(t *testing.T, r *rig) {
				before := newMachine("m")
				r.Watch("k", before)
				r.change(func() { before.Labels["app"] = "changed" })
				r.Watch("k", test.object)
				r.Watch("other", test.object)
				got := r.take()
				require.Len(t, got, 2)
				require.True(
					t,
					strings.HasPrefix(got[0], "k: ") &&
						strings.HasSuffix(got[0], "cannot be compared: "+test.cause),
					got[0],
				)
				require.Equal(t, "k: 1 [metadata.labels.app changed]", got[1])
				require.Zero(t, r.len())
			})
		})
	}
}

func TestNegativeOptionsPanic(t *testing.T) {
	require.Panics(t, func() { Options{SampleEvery: -1}.New() })
	require.Panics(t, func() { Options{Period: -1}.New() })
}
