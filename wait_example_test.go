package cache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmirror/cache"
)

// step is a DoneChecker that can end in vain.
type step struct {
	name string
	done chan struct{}
	err  error
}

func (s *step) Name() string          { return s.name }
func (s *step) Done() <-chan struct{} { return s.done }

func (s *step) Err() error {
	if !cache.IsDone(s) {
		return nil
	}
	return s.err
}

// The error names what is not done, and why. A wait ends as soon as it is in vain.
func ExampleWaitForDone() {
	over := make(chan struct{})
	close(over)
	pods := &step{name: "pods", done: over}
	nodes := &step{name: "nodes", done: make(chan struct{})}
	handler := &step{name: "handler of pods", done: over, err: cache.ErrHandlerRemoved}

	fmt.Println(cache.WaitForDone(context.Background(), pods))

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := cache.WaitForDone(ctx, pods, nodes)
	fmt.Println(err, errors.Is(err, context.DeadlineExceeded))

	err = cache.WaitForDone(context.Background(), pods, handler)
	fmt.Println(err, errors.Is(err, cache.ErrHandlerRemoved))
	// Output:
	// <nil>
	// not done: "nodes" (context deadline exceeded) true
	// not done: "handler of pods" (handler was removed before it had handled the first list) true
}
