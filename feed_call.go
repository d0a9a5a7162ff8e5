// Calls of a source for a caller of an informer, such as Fresh and Verify. They run on goroutines
// of the informer. What does the caller learn if one fails, or does not return?

package cache

import (
	"context"
	"errors"
	"fmt"
)

var errNotStarted = errors.New("informer has not been started")

// feedCall is a call of a feed's source for a caller, such as Fresh.
type feedCall func(*feed, context.Context) error

// callFeeds makes a call for each feed of the informers concurrently, and joins the errors. It
// returns when ctx or the run of the informers ends, even if a source ignores its context. op is
// for reports.
func callFeeds(
	ctx context.Context, op string, call feedCall, informers ...*sharedIndexInformer,
) error {
	waits := map[*feed]func() error{}
	for _, f := range feedsOf(informers) {
		waits[f] = f.startCall(ctx, op, call)
	}
	return eachFeed(informers, func(f *feed) error { return waits[f]() })
}

// feedsOf returns the feeds of the informers.
func feedsOf(informers []*sharedIndexInformer) (feeds []*feed) {
	for _, inf := range informers {
		feeds = append(feeds, inf.feeds...)
	}
	return feeds
}

// eachFeed calls check with each feed of the informers, and joins the errors.
func eachFeed(informers []*sharedIndexInformer, check func(*feed) error) error {
	var failures []error
	for _, f := range feedsOf(informers) {
		failures = append(failures, check(f))
	}
	return errors.Join(failures...)
}

// runningCall is a call on a goroutine of an informer.
type runningCall struct {
	call asyncCall
	err  error // set before done is closed
}

// startCall starts a call on a goroutine of the informer, unless its run has ended. The context of
// the call ends with ctx and with the run. The returned function waits for the result.
func (f *feed) startCall(ctx context.Context, op string, call feedCall) (wait func() error) {
	inf := f.informer
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx == nil {
		return func() error { return fmt.Errorf("%s: %w", inf.title, errNotStarted) }
	}
	running := &runningCall{
		call: asyncCall{done: make(chan struct{})},
		err:  errSourceExited, // until it has returned
	}
	if inf.ctx.Err() == nil {
		callCtx, cancel := context.WithCancel(ctx)
		inf.goroutines.Go(func() {
			defer close(running.call.done)
			defer cancel()
			stop := context.AfterFunc(inf.ctx, cancel)
			defer stop()
			running.err = f.callSynced(callCtx, call)
		})
		inf.goroutines.Go(func() {
			<-callCtx.Done()
			f.reflector.reportSlow(inf.ctx, op, &running.call)
		})
	}
	return func() error { return f.waitForCall(ctx, running) }
}

// callSynced makes a call once the feed has its first list.
func (f *feed) callSynced(ctx context.Context, call feedCall) error {
	if err := WaitForDone(ctx, f.synced); err != nil {
		return err
	}
	return call(f, ctx)
}

// waitForCall waits until the call returns, or until ctx or the run ends, which explain its error
// then.
func (f *feed) waitForCall(ctx context.Context, running *runningCall) error {
	var err error
	stopped := f.informer.ctx
	select {
	case <-running.call.done:
		err = running.err
	case <-stopped.Done():
		err = ErrInformerStopped
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if isClosed(running.call.done) { // before ctx ended, perhaps: calls are waited for in turn
		err = running.err
	}
	hasName := errors.As(err, new(*DivergenceError))
	if err == nil || hasName {
		return err
	}
	if stopped.Err() != nil {
		err = ErrInformerStopped
	} else if ctx.Err() != nil {
		err = f.explain(err)
	}
	return fmt.Errorf("%s: %w", f.title(), err)
}

// title returns the informer's name, with the feed's namespace, for errors.
func (f *feed) title() string {
	return informerTitle(f.reflector.name, f.reflector.typeDescription)
}

// explain appends the feed's activity, how long it has lasted, and the last failure.
func (f *feed) explain(err error) error {
	status := f.status()
	activity := status.Activity()
	lasted := roundForPeople(status.Time.Sub(status.activeSince()))
	last := status.LastFailure
	if status.Phase == PhaseIdle {
		return fmt.Errorf("%w; Run was not called", err)
	}
	if last == nil || last.Cause == causeDivergence { // Verify's own
		return fmt.Errorf("%w; %s for %v", err, activity, lasted)
	}
	if status.ConsecutiveFailures > 0 {
		return fmt.Errorf("%w; %s for %v: %w", err, activity, lasted, last.Err)
	}
	return fmt.Errorf("%w; %s for %v, last failure: %w", err, activity, lasted, last.Err)
}
