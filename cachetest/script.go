package cachetest

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Forever, as a number of requests, means until Heal.
const Forever = -1

// faults are the scripted faults of the source. The caller holds the
// source's lock.
type faults struct {
	list, watch requestFaults
	errors      script[error] // of requests of either verb, after those of their own

	oldLists   script[*snapshot]
	streamEnds script[streamEnd]
	withheld   script[struct{}]

	eventDelay time.Duration
	mangleList setting[listChange]

	doubleBookmarks bool
	silent          bool

	// held are the requests that hang or are delayed. Each has a channel of its
	// own, made by the request, so that it belongs to the request's bubble.
	held map[chan struct{}]struct{}
}

// requestFaults is what awaits the requests of one verb, in this order.
type requestFaults struct {
	hangs  script[hang]
	delay  setting[time.Duration]
	hook   setting[requestHook]
	errors script[error]
}

type (
	requestHook = func(metav1.ListOptions) error
	listChange  = func(runtime.Object) runtime.Object
)

// setting is a fault that holds until it is replaced.
type setting[T any] struct {
	value T
	plan  *plan
}

// set replaces the value. Without a plan the fault is withdrawn, and need not fire any more.
func (s *setting[T]) set(value T, p *plan) {
	if p == nil {
		s.plan.fire()
	}
	*s = setting[T]{value, p}
}

// take is for a request that is about to meet the fault.
func (s setting[T]) take() T {
	s.plan.fire()
	return s.value
}

// hang is a request that is not answered.
type hang struct{ ignoresContext bool }

// streamEnd is how a watch ends after it has delivered some events: with an
// error, or cleanly if err is nil.
type streamEnd struct {
	after int
	err   error
	plan  *plan
}

// script says for how many requests a fault holds, one entry after the other.
type script[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	left  int // below zero: for ever
	value T
	plan  *plan
}

// add puts an entry behind the others. Its plan, which may be nil, fires as soon as the
// entry is first used.
func (s *script[T]) add(n int, value T, p *plan) {
	if n != 0 {
		s.entries = append(s.entries, entry[T]{left: n, value: value, plan: p})
	}
}

// take uses up one request's worth of the script.
func (s *script[T]) take() (T, bool) {
	if len(s.entries) == 0 {
		var none T
		return none, false
	}
	first := &s.entries[0]
	value := first.value
	first.plan.fire()
	if first.left > 0 {
		first.left--
		if first.left == 0 {
			s.entries = s.entries[1:]
		}
	}
	return value, true
}

// releaseLocked lets go of every request that hangs or is delayed.
func (f *faults) releaseLocked() {
	for released := range f.held {
		close(released)
	}
	f.held = nil
}

// holdLocked registers a request that is to wait. The channel it returns is closed
// when the request may go on.
func (f *faults) holdLocked() chan struct{} {
	released := make(chan struct{})
	if f.held == nil {
		f.held = map[chan struct{}]struct{}{}
	}
	f.held[released] = struct{}{}
	return released
}

// admitList takes a list through the script. It returns the changes to make to
// the answer.
func (s *Source) admitList(ctx context.Context, opts metav1.ListOptions) (listChange, error) {
	if err := s.admit(ctx, opts, &s.faults.list); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.mangleList.take(), nil
}

// admitWatch takes the opening of a watch through the script.
func (s *Source) admitWatch(ctx context.Context, opts metav1.ListOptions) error {
	return s.admit(ctx, opts, &s.faults.watch)
}

// admit takes a request through its faults, each as the script has it when the
// request gets there, so that nothing outlasts Heal.
func (s *Source) admit(ctx context.Context, opts metav1.ListOptions, f *requestFaults) error {
	if err := s.hang(ctx, f); err != nil {
		return err
	}
	if err := s.delay(ctx, f); err != nil {
		return err
	}
	s.mu.Lock()
	hook := f.hook.take()
	s.mu.Unlock()
	if hook != nil {
		if err := hook(*opts.DeepCopy()); err != nil {
			return err
		}
	}
	s.mu.Lock()
	failure, fails := f.errors.take()
	if !fails {
		failure, fails = s.faults.errors.take()
	}
	s.mu.Unlock()
	if fails {
		return failure
	}
	// As a transport does for a request that was given up meanwhile.
	return ctx.Err()
}

// hang keeps a request waiting if the script says so. A caller that changes the script
// sees either a hang that nobody took or a request among the held, never neither:
// else a request could miss its release.
func (s *Source) hang(ctx context.Context, f *requestFaults) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	hang, hangs := f.hangs.take()
	if !hangs {
		s.mu.Unlock()
		return nil
	}
	released := s.faults.holdLocked()
	s.mu.Unlock()
	if hang.ignoresContext {
		ctx = context.Background()
	}
	return s.await(ctx, released, nil)
}

// delay keeps a request waiting as long as the script says, by the rule of hang.
func (s *Source) delay(ctx context.Context, f *requestFaults) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	d := f.delay.take()
	if d <= 0 {
		s.mu.Unlock()
		return nil
	}
	released := s.faults.holdLocked()
	s.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	return s.await(ctx, released, timer.C)
}

// await waits until a held request is released (as it is by Close), its time has
// elapsed or its context ends.
func (s *Source) await(ctx context.Context, released chan struct{}, elapsed <-chan time.Time) error {
	var err error
	select {
	case <-released:
	case <-elapsed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults.held, released)
	if s.closed {
		return ErrClosed
	}
	return err
}
