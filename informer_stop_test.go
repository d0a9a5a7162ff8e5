package cache

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/assert"
)

// 10,000 informers that are started and stopped, with handlers that stay, are removed or
// never hear anything, leave no goroutine and nothing in memory, though the source, the
// handler and the handles' checkers are still there.
func TestTenThousandStartsAndStopsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 10_000
		source := newBulk(3)
		told := &tally{}
		before := goroutines()
		var stores []weak.Pointer[cache]
		var informers []weak.Pointer[sharedIndexInformer]
		for i := range runs {
			inf := NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle}})
			stores = append(stores, weak.Make(inf.shared.store))
			informers = append(informers, weak.Make(inf.shared))
			oneLife(t, inf, told, i)
		}
		assert.LessOrEqual(t, goroutines(), before)
		assert.Positive(t, told.count(counts{}).adds)
		runtime.GC()
		runtime.GC()
		alive := 0
		for i := range stores {
			if stores[i].Value() != nil || informers[i].Value() != nil {
				alive++
			}
		}
		// The last one may be on a stack still.
		assert.LessOrEqual(t, alive, 1)
		runtime.KeepAlive(source)
	})
}

func oneLife(t *testing.T, inf *Informer[*object], told ResourceEventHandler, i int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := inf.Shared().AddEventHandler(told)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	if i%3 > 0 { // or it is stopped before anything
		must(t, inf.WaitSynced(ctx))
		<-first.HasSyncedChecker().Done()
		second, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{})
		must(t, err)
		if i%3 == 1 {
			must(t, inf.RemoveHandler(first), inf.ShutDownHandler(second))
		}
	}
	cancel()
	must(t, <-done)
}
