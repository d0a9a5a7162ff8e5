package cachetest

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Forever, as a number of requests, means until Heal.
const Forever = -1

// faults is what the source has been told to do wrong. The caller holds the
// source's lock.
type faults struct {
	listErrors  script[error]
	watchErrors script[error]
	listHangs   script[hang]
	watchHangs  script[hang]
	oldLists    script[*snapshot]
	streamEnds  script[streamEnd]
	withheld    script[struct{}]

	listDelay, watchDelay, eventDelay time.Duration

	onList, onWatch func(metav1.ListOptions) error
	mangleList      func(runtime.Object) runtime.Object

	doubleBookmarks bool
	silent          bool

	// held are the requests that hang or are delayed. Each has a channel of its
	// own, made by the request, so that it belongs to the request's bubble.
	held map[chan struct{}]struct{}
}

// hang is a request that is not answered.
type hang struct{ ignoresContext bool }

// streamEnd is how a watch ends after it has delivered some events: with an
// error, or cleanly if err is nil.
type streamEnd struct {
	after int
	err   error
}

// script says for how many requests a fault holds, one entry after the other.
type script[T any] struct{ entries []entry[T] }

type entry[T any] struct {
	left  int // below zero: for ever
	value T
}

func (s *script[T]) add(n int, value T) {
	if n != 0 {
		s.entries = append(s.entries, entry[T]{left: n, value: value})
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

// admitList takes a list through the script. It returns what is to be done to
// the answer.
func (s *Source) admitList(ctx context.Context, opts metav1.ListOptions) (func(runtime.Object) runtime.Object, error) {
	err := s.admit(ctx, opts, func(f *faults) stages {
		hang, hangs := f.listHangs.take()
		return stages{hang: hang, hangs: hangs, delay: f.listDelay, hook: f.onList, errors: &f.listErrors}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.mangleList, err
}

// admitWatch takes the opening of a watch through the script.
func (s *Source) admitWatch(ctx context.Context, opts metav1.ListOptions) error {
	return s.admit(ctx, opts, func(f *faults) stages {
		hang, hangs := f.watchHangs.take()
		return stages{hang: hang, hangs: hangs, delay: f.watchDelay, hook: f.onWatch, errors: &f.watchErrors}
	})
}

// stages is what awaits one request, in this order.
type stages struct {
	hang   hang
	hangs  bool
	delay  time.Duration
	hook   func(metav1.ListOptions) error
	errors *script[error]
}

func (s *Source) admit(ctx context.Context, opts metav1.ListOptions, plan func(*faults) stages) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	next := plan(&s.faults)
	s.mu.Unlock()
	if next.hangs {
		wait := ctx
		if next.hang.ignoresContext {
			wait = context.Background()
		}
		if err := s.hold(wait, 0); err != nil {
			return err
		}
	}
	if next.delay > 0 {
		if err := s.hold(ctx, next.delay); err != nil {
			return err
		}
	}
	if next.hook != nil {
		if err := next.hook(*opts.DeepCopy()); err != nil {
			return err
		}
	}
	s.mu.Lock()
	failure, fails := next.errors.take()
	s.mu.Unlock()
	if fails {
		return failure
	}
	// As a transport does for a request that was given up meanwhile.
	return ctx.Err()
}

// hold keeps a request waiting until it is released, its context ends, the
// source is closed or, if d is not zero, d has passed.
func (s *Source) hold(ctx context.Context, d time.Duration) error {
	released := make(chan struct{})
	var elapsed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	if s.faults.held == nil {
		s.faults.held = map[chan struct{}]struct{}{}
	}
	s.faults.held[released] = struct{}{}
	s.mu.Unlock()

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
