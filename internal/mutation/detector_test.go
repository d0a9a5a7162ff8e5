package mutation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// reports are those that a detector has made.
type reports struct {
	mu  sync.Mutex
	all []Report
}

func (r *reports) add(one Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// take returns the reports since the last call as "key: changes" or "key: cause".
func (r *reports) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := []string{}
	for _, one := range r.all {
		if one.Err != nil {
			texts = append(texts, fmt.Sprintf("%s: %v", one.Key, one.Err))
		} else {
			texts = append(texts, fmt.Sprintf("%s: %d %v", one.Key, one.Total, one.Changes))
		}
	}
	r.all = nil
	return texts
}

func newDetector(every int) *Detector {
	return New(every, time.Second, func(what string, f func()) (err error) {
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("%s panicked: %v", what, value)
			}
		}()
		f()
		return nil
	})
}

// check compares all watched objects once, as the end of a run does.
func (d *Detector) check(report func(Report)) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d.Run(ctx, clock.RealClock{}, report)
}

func (d *Detector) len() (n int) {
	d.watched.Range(func(any, any) bool { n++; return true })
	return n
}

func TestAChangeIsReportedOncePerState(t *testing.T) {
	d, said := newDetector(1), &reports{}
	first := newMachine("m")
	d.Stored(d.Copy("k", first, said.add), said.add)
	d.check(said.add)
	require.Empty(t, said.take(), "nothing was changed yet")
	first.Labels["app"], first.ResourceVersion = "changed", "forged"
	d.check(said.add)
	require.Equal(t, "7", said.all[0].Object.(metav1.Object).GetResourceVersion(), "the copy has the version of the state")
	d.check(said.add)
	require.Equal(t, []string{`k: 2 [metadata.labels.app changed metadata.resourceVersion changed]`}, said.take())
	first.Labels["app"] = "again"
	d.Stored(d.Copy("k", first, said.add), said.add)
	d.check(said.add)
	require.Empty(t, said.take(), "the same pointer is the same state, which was reported")
	second := newMachine("m")
	d.Stored(d.Copy("k", second, said.add), said.add)
	second.Labels["app"] = "changed"
	d.check(said.add)
	require.Equal(t, []string{`k: 1 [metadata.labels.app changed]`}, said.take())
}

func TestAReportNamesFiveChangesAndCountsTheRest(t *testing.T) {
	d, said := newDetector(1), &reports{}
	object := newMachine("m")
	d.Stored(d.Copy("k", object, said.add), said.add)
	for _, key := range []string{"z", "g", "f", "e", "d", "c", "b", "a"} {
		object.Labels[key] = "secret"
	}
	d.Stored(d.Copy("k", nil, said.add), said.add)
	require.Len(t, said.all[0].Changes, 5)
	require.Equal(t, 8, said.all[0].Total)
	require.Equal(t, Change{`metadata.labels.a`, Added}, said.all[0].Changes[0])
}

func TestAnObjectThatLeavesTheStoreIsComparedALastTime(t *testing.T) {
	for how, leave := range map[string]func(d *Detector, report func(Report)){
		"replaced":              func(d *Detector, report func(Report)) { d.Stored(d.Copy("k", newMachine("m"), report), report) },
		"replaced by no object": func(d *Detector, report func(Report)) { d.Stored(d.Copy("k", (*machine)(nil), report), report) },
		"replaced by itself":    func(d *Detector, report func(Report)) { d.check(report); d.Stored(d.Copy("k", nil, report), report) },
		"removed":               func(d *Detector, report func(Report)) { d.Stored(d.Copy("k", nil, report), report) },
	} {
		t.Run(how, func(t *testing.T) {
			d, said := newDetector(1), &reports{}
			object := newMachine("m")
			d.Stored(d.Copy("k", object, said.add), said.add)
			object.Spec.Parts[1].Image = "other"
			leave(d, said.add)
			require.Equal(t, []string{"k: 1 [spec.parts[1].image changed]"}, said.take())
			d.Stored(d.Copy("k", nil, said.add), said.add)
			require.Zero(t, d.len())
			require.Empty(t, said.take())
		})
	}
}

func TestComparisonsAreAPeriodApartAndOneIsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		d := newDetector(1)
		report := func(Report) { at = append(at, time.Since(began)) }
		var objects []*machine
		change := func(i int) {
			synctest.Wait() // for the comparisons so far
			objects[i].Spec.Replicas = nil
			held, _ := d.watched.Load(fmt.Sprint(i))
			held.(*Copy).reported.Store(false) // orders the change before the comparison
		}
		for i := range 3 {
			objects = append(objects, newMachine("m"))
			d.Stored(d.Copy(fmt.Sprint(i), objects[i], report), report)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx, clock.RealClock{}, report) })
		time.Sleep(1200 * time.Millisecond)
		change(0)
		change(1)
		time.Sleep(time.Second)
		change(2)
		time.Sleep(200 * time.Millisecond)
		cancel()
		running.Wait()
		require.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second, 2400 * time.Millisecond}, at)
		d.Clear()
		require.Zero(t, d.len())
	})
}

func TestOneKeyInSoManyIsWatchedAndEachDetectorChoosesAnew(t *testing.T) {
	const keys, every = 10_000, 10
	sampled := func(d *Detector) (all []string) {
		for i := range keys {
			key := fmt.Sprintf("ns/%d", i)
			d.Stored(d.Copy(key, &named{}, nil), nil)
			if _, watched := d.watched.Load(key); watched {
				all = append(all, key)
			}
		}
		return all
	}
	d := newDetector(every)
	all := sampled(d)
	require.InDelta(t, keys/every, len(all), 180, "six standard deviations of sqrt(10,000 x 0.1 x 0.9)")
	require.Equal(t, all, sampled(d))
	require.NotEqual(t, all, sampled(newDetector(every)))
}

func TestNoLockIsHeldWhileUserCodeRuns(t *testing.T) {
	d, calls := newDetector(1), 0
	reenter := func(Report) {
		calls++
		d.Stored(d.Copy("inner", newMachine("inner"), nil), nil)
		d.Stored(d.Copy("inner", nil, nil), nil)
	}
	object := &named{Name: "n"}
	object.Size.read = func() { reenter(Report{}) }
	d.Stored(d.Copy("k", object, reenter), reenter)
	object.Name = "changed"
	d.Stored(d.Copy("k", nil, reenter), reenter)
	require.Equal(t, 3, calls, "in two conversions and in report")
}

func TestManyCheckersReportAStateOnceWhileTheStoreChanges(t *testing.T) {
	d, said := newDetector(1), &reports{}
	for i := range 20 {
		object := newMachine("m")
		d.Stored(d.Copy(fmt.Sprint(i), object, said.add), said.add)
		object.Labels["app"] = "changed"
	}
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { d.check(said.add) })
	}
	for i := range 200 {
		d.Stored(d.Copy(fmt.Sprint("other ", i%7), newMachine("m"), said.add), said.add)
		if i%10 == 0 {
			d.Stored(d.Copy(fmt.Sprint("other ", i%7), nil, said.add), said.add)
		}
	}
	running.Wait()
	require.Len(t, said.take(), 20)
}

func TestAnObjectThatCannotBeReadWasChanged(t *testing.T) {
	d, said := newDetector(1), &reports{}
	object := &named{Name: "n"}
	d.Stored(d.Copy("k", object, said.add), said.add)
	// A reader may see half of a write.
	object.Size.read = func() { _ = *(*byte)(nil) }
	d.Stored(d.Copy("k", nil, said.add), said.add)
	require.Equal(t, []string{"k: 0 []"}, said.take())
}

// named calls read while it is converted.
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
		"panics":    {&named{Size: size{func() { panic("no") }}}, "MarshalJSON panicked: no"},
	} {
		t.Run(name, func(t *testing.T) {
			d, said := newDetector(1), &reports{}
			before := newMachine("m")
			d.Stored(d.Copy("k", before, said.add), said.add)
			before.Labels["app"] = "changed"
			d.Stored(d.Copy("k", test.object, said.add), said.add)
			d.Stored(d.Copy("other", test.object, said.add), said.add)
			d.check(said.add)
			require.Equal(t, []string{"k: " + test.cause, "k: 1 [metadata.labels.app changed]"}, said.take())
			require.Zero(t, d.len())
		})
	}
}
