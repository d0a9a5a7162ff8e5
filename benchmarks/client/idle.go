package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
	"github.com/watchmirror/cache/internal/bubble"
)

// idleObjects is how many objects an idle informer has: they are all the same ones, so that it
// costs what the informer makes for them, and they are not counted.
const idleObjects = 3

// idle runs as many informers as the task has items, each with one handler, until they have nothing
// to do any more, and says what they have.
func (t Task) idle(ctx context.Context) (Result, error) {
	source := idleSource()
	// Objects made once in a process are no cost of an informer.
	first := newFleet(ctx, t)
	first.runIdle(source, 1)
	first.stop()
	if first.err != nil {
		return nil, fmt.Errorf("warming up: %w", first.err)
	}

	goroutines, memory := footprint()
	many := newFleet(ctx, t)
	defer many.stop()
	many.runIdle(source, t.Items)
	moreGoroutines, moreMemory := footprint()
	return Result{
		"goroutines/informer":       float64(moreGoroutines-goroutines) / float64(t.Items),
		"KiB heap + stack/informer": float64(moreMemory-memory) / float64(t.Items) / 1024,
	}, many.err
}

// idleSource lists the same objects to every informer.
func idleSource() *local.Source {
	var objects []*local.Object
	for i := range idleObjects {
		objects = append(objects, local.NewObject(i, uint64(i+1)))
	}
	return local.NewQuiet(objects...)
}

// runIdle runs informers and waits until each has delivered all objects to its handler. They live
// as long as they run: nothing else holds on to them.
func (f *fleet) runIdle(source *local.Source, informers int) {
	all := newCounter(informers * idleObjects)
	for range informers {
		f.run(source, sides.Handler{Add: all.note, Update: ignore})
	}
	f.wait("the first list", all.done)
}

// footprint returns the goroutines of the process, and the bytes of its heap and stacks. It
// collects until stacks have the size that waiting needs: a collection halves one that is used to
// less than a quarter.
func footprint() (goroutines int, memory int64) {
	settle()
	const collections = 6 // from 128 KiB, more than any has grown to, to 2
	for range collections {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), int64(stats.HeapAlloc + stats.StackInuse)
}

// settle waits until the number of goroutines stays the same: those of a source's calls end after
// the objects are delivered.
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

const (
	// idleStart is until informers have nothing to do but what they repeat.
	idleStart = time.Minute
	idleFor   = 10 * time.Minute
)

func (t Task) idleInBubble() (Result, error) {
	many := newFleet(context.Background(), t)
	defer many.stop()
	many.runIdle(idleSource(), t.Items)
	time.Sleep(idleStart)
	runtime.GC()
	before := cpuTime()
	time.Sleep(idleFor)
	spent := cpuTime() - before
	return Result{"CPU us/s": microseconds(spent) / idleFor.Seconds()}, many.err
}
