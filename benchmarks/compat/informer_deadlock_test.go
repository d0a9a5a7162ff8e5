package compat

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Where client-go deadlocks there is no virtual time: what waits for a lock counts as
// moving. So these tests run in real time, and what is stuck stays so until the process
// ends.

// inTime is how long something that ends is given, and stuckFor after how long something
// counts as stuck.
const (
	inTime   = 30 * time.Second
	stuckFor = 200 * time.Millisecond
)

// endsIn says whether done is closed in time.
func endsIn(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// runsAwaitingHandlers counts client-go's informers that hold their lock and wait for their handlers to end, which only a
// stack shows.
func runsAwaitingHandlers() (n int) {
	stacks := make([]byte, 1<<20)
	for goroutine := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(goroutine, "cache.(*sharedProcessor).run(") && strings.Contains(goroutine, "sync.(*WaitGroup).Wait(") {
			n++
		}
	}
	return n
}

// insideCall runs an informer whose handler, the first time that it is called, stops the
// run if it is asked to, and then makes a call. It says whether call and run came to an
// end within the limit, and what the call returned.
func insideCall(t *testing.T, side informerSide, limit time.Duration, stops bool, call func(informer, registration) error) (ended bool, err error) {
	t.Helper()
	from, before := thingSource(t), runsAwaitingHandlers()
	inf := side.newInformer(from, informerOptions{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var r registration
	calling, returned, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	self := &onFirst{do: func() error {
		if stops {
			stop()
			for !inf.IsStopped() {
				time.Sleep(time.Millisecond)
			}
			for waiting := side.name == theirInformers.name; waiting; time.Sleep(time.Millisecond) {
				waiting = runsAwaitingHandlers() <= before
			}
		}
		close(calling)
		defer close(returned)
		return call(inf, r)
	}}
	r, err = inf.add(self)
	require.NoError(t, err)
	var run sync.WaitGroup
	run.Go(func() { inf.RunWithContext(ctx); close(done) })

	require.True(t, endsIn(calling, inTime), "the handler is called")
	if !endsIn(returned, limit) {
		return false, nil
	}
	stop()
	require.True(t, endsIn(done, inTime), "the run ends")
	from.Close()
	return true, self.err
}

func TestB10AHandlerThatRemovesItselfWhileItsInformerStopsIsStuckInClientGoAndNotHere(t *testing.T) {
	remove := func(inf informer, r registration) error { return inf.remove(r) }
	ended, err := insideCall(t, ourInformers, inTime, true, remove)
	require.True(t, ended, "ours")
	require.NoError(t, err)
	ended, _ = insideCall(t, theirInformers, stuckFor, true, remove)
	require.False(t, ended, "client-go")
}

func TestB10AHandlerThatShutsItselfDownIsStuckInClientGoAndGetsAnErrorHere(t *testing.T) {
	shutDown := func(inf informer, r registration) error { return inf.shutDown(r) }
	synctest.Test(t, func(t *testing.T) {
		ended, err := insideCall(t, ourInformers, 2*inTime, false, shutDown)
		require.True(t, ended, "ours")
		require.ErrorContains(t, err, "still running")
	})
	ended, _ := insideCall(t, theirInformers, stuckFor, false, shutDown)
	require.False(t, ended, "client-go")
}
