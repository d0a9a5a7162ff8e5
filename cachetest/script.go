package cachetest

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Forever, as a number of requests, means until Heal.
const Forever = -1

// faults are the scripted faults of a source. The caller holds the source's lock.
type faults struct {
	list, watch requestFaults
	errors      script[error]             // for both verbs, after the verb's own
	namespaces  map[string]*script[error] // of one namespace, before the verb's own

	oldLists   script[*snapshot]
	streamEnds script[streamEnd]
	withheld   script[struct{}]

	eventDelay time.Duration
	mangleList setting[listChange]

	doubleBookmarks bool
	silent          bool

	// held has a channel for each request that hangs or is delayed. The request makes it, so that
	// it belongs to the request's bubble.
	held map[chan struct{}]struct{}
}

// requestFaults are the faults for the requests of one verb, in the order in which they apply.
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

// setting is a fault that applies until it is replaced.
type setting[T any] struct {
	value T
	plan  *plan
}

// set replaces the value. A nil plan withdraws the fault, which then need not fire any more.
func (s *setting[T]) set(value T, p *plan) {
	if p == nil {
		s.plan.fire()
	}
	*s = setting[T]{value, p}
}

// take returns the value for a request to which the fault applies.
func (s setting[T]) take() T {
	s.plan.fire()
	return s.value
}

// hang is the fault of a request that blocks.
type hang struct{ ignoresContext bool }

// streamEnd ends a watch after some events, with an error, or cleanly if err is nil.
type streamEnd struct {
	after int
	err   error
	plan  *plan
}

// script is a queue of faults, each for a number of requests.
type script[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	left  int // negative: without end
	value T
	plan  *plan
}

// add appends an entry. Its plan, which may be nil, fires when the entry is first used.
func (s *script[T]) add(n int, value T, p *plan) {
	if n != 0 {
		s.entries = append(s.entries, entry[T]{left: n, value: value, plan: p})
	}
}

// take returns the fault for one request and uses it up.
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

// releaseLocked releases every request that hangs or is delayed.
func (f *faults) releaseLocked() {
	for released := range f.held {
		close(released)
	}
	f.held = nil
}

// holdLocked registers a request that must wait. The returned channel is closed when the request
// may continue.
func (f *faults) holdLocked() chan struct{} {
	released := make(chan struct{})
	if f.held == nil {
		f.held = map[chan struct{}]struct{}{}
	}
	f.held[released] = struct{}{}
	return released
}

// admitList applies the script to a list. It returns the change to make to the result.
func (s *Source) admitList(
	ctx context.Context, namespace string, opts metav1.ListOptions,
) (listChange, error) {
	if err := s.admit(ctx, namespace, opts, &s.faults.list); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.mangleList.take(), nil
}

// admitWatch applies the script to a Watch call.
func (s *Source) admitWatch(ctx context.Context, namespace string, opts metav1.ListOptions) error {
	return s.admit(ctx, namespace, opts, &s.faults.watch)
}

// admit applies the faults to a request. Each is read when the request reaches it, so that no fault
// outlasts Heal.
func (s *Source) admit(
	ctx context.Context, namespace string, opts metav1.ListOptions, f *requestFaults,
) error {
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
	scripts := []*script[error]{&f.errors, &s.faults.errors}
	if own := s.faults.namespaces[namespace]; own != nil {
		scripts = append([]*script[error]{own}, scripts...)
	}
	for _, errors := range scripts {
		if failure, fails := errors.take(); fails {
			s.mu.Unlock()
			return failure
		}
	}
	s.mu.Unlock()
	// As a transport does for a request that was canceled meanwhile.
	return ctx.Err()
}

// hang blocks a request if the script says so. Taking the fault and registering the request happen
// under one lock, so that ReleaseHanging and Heal never miss a request.
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

// delay blocks a request for the scripted time, with the same locking as hang.
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

// await waits until a held request is released (Close does it too), its time has elapsed or its
// context ends.
func (s *Source) await(
	ctx context.Context, released chan struct{}, elapsed <-chan time.Time,
) error {
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
