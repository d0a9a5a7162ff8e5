package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
	"github.com/watchmirror/cache/internal/bubble"
)

// idleObjects is how many objects an idle informer has: they are all the same ones, so
// that it costs what the informer makes for them, and they are not counted.
const idleObjects = 3

// idle runs as many informers as the task has items, each with one handler, until they
// have nothing to do any more, and says what they cost.
func (t Task) idle(ctx context.Context) (Result, error) {
	source := idleSource()
	// Objects made once in a process are no cost of an informer.
	first := newFleet(ctx)
	err := t.idleFleet(first, source, 1)
	first.stop()
	if err != nil {
		return Result{}, fmt.Errorf("warming up: %w", err)
	}

	before := footprintNow()
	many := newFleet(ctx)
	defer many.stop()
	if err := t.idleFleet(many, source, t.Items); err != nil {
		return Result{}, err
	}
	cost := footprintNow().minus(before)
	return Result{Items: t.Items, Goroutines: cost.goroutines, Heap: cost.heap, Stack: cost.stack}, nil
}

// idleSource lists the same objects to every informer.
func idleSource() *local.Source {
	var objects []*local.Object
	for i := range idleObjects {
		objects = append(objects, local.NewObject(i, uint64(i+1)))
	}
	return local.NewQuiet(objects...)
}

const (
	// idleStart is until informers have nothing to do but what they repeat.
	idleStart = time.Minute
	idleFor   = 10 * time.Minute
)

var errBubble = errors.New("the test of the virtual time failed")

// idleCPU runs as many informers as the task has items in virtual time, in which only their timers
// cost CPU. It may be called once in a process.
func (t Task) idleCPU(context.Context) (result Result, err error) {
	stdout := os.Stdout
	os.Stdout = os.Stderr // the testing package prints PASS
	defer func() { os.Stdout = stdout }()
	code := bubble.InTest(func(test *testing.T) {
		synctest.Test(test, func(*testing.T) { result, err = t.idleInBubble() })
	})
	if code != 0 {
		err = errors.Join(err, errBubble)
	}
	return result, err
}

func (t Task) idleInBubble() (Result, error) {
	many := newFleet(context.Background())
	defer many.stop()
	if err := t.idleFleet(many, idleSource(), t.Items); err != nil {
		return Result{}, err
	}
	time.Sleep(idleStart)
	runtime.GC()
	before, err := cpuTime()
	if err != nil {
		return Result{}, err
	}
	time.Sleep(idleFor)
	after, err := cpuTime()
	cost := Cost{Seconds: idleFor.Seconds(), CPU: (after - before).Seconds()}
	return Result{Items: t.Items, Cost: cost}, err
}

// idleFleet starts informers and waits until each has delivered all objects to its handler.
// They live as long as they run: nothing else holds on to them.
func (t Task) idleFleet(f *fleet, source *local.Source, informers int) error {
	var delivered atomic.Int64
	all := int64(informers * idleObjects)
	everything := make(chan struct{})
	handler := sides.Handler{Add: func(*local.Object) {
		if delivered.Add(1) == all {
			close(everything)
		}
	}}
	for range informers {
		if _, err := f.add(t, source, handler); err != nil {
			return err
		}
	}
	return f.wait(everything, "the first list")
}

// footprint is what a process has.
type footprint struct{ goroutines, heap, stack int64 }

// footprintNow collects until stacks have the size that waiting needs: a collection
// halves one that is used to less than a quarter.
func footprintNow() footprint {
	settle()
	const collections = 6 // from 128 KiB, more than any has grown to, to 2
	for range collections {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return footprint{int64(runtime.NumGoroutine()), int64(stats.HeapAlloc), int64(stats.StackInuse)}
}

// settle waits until the number of goroutines stays the same: those of a source's calls end
// after the objects are delivered.
func settle() {
	const looks = 50
	same := 0
	before := 0
	for same < looks {
		now := runtime.NumGoroutine()
		same++
		if now != before {
			same = 0
			before = now
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (f footprint) minus(other footprint) footprint {
	return footprint{f.goroutines - other.goroutines, f.heap - other.heap, f.stack - other.stack}
}
