// A set of informers that run and are waited for together. When has the whole set synced, and what
// happens to one that stops before the others?

package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/tasks"
)

// InformerSet runs informers together. Do not call their Run. The zero value is ready to use. Do
// not copy it. All methods may be called concurrently.
//
// An informer that stops before the set stays in it, so that Healthy, Fresh and Verify fail, and
// also WaitSynced if it had not synced. Remove is for informers that are no longer needed.
//
//	err := set.Add(pods, nodes)
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu sync.Mutex
	// members are all informers of the set, also those that have stopped.
	members []*sharedIndexInformer
	// ctx and goroutines belong to Run. ctx is nil before it.
	ctx        context.Context
	goroutines *tasks.Group
}

// AnyInformer is an *Informer of any type. No other type implements it.
type AnyInformer interface{ untyped() *sharedIndexInformer }

// Add adds informers, each an *Informer of any type. If the set runs, it runs them. If one of them
// or the set has stopped, it fails and adds none.
func (s *InformerSet) Add(informers ...AnyInformer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasStoppedLocked() {
		return errSetStopped
	}
	for _, one := range informers {
		inf := one.untyped()
		if inf.IsStopped() {
			return fmt.Errorf("informer set: %s: %w", inf.title, ErrInformerStopped)
		}
	}
	for _, one := range informers {
		inf := one.untyped()
		if slices.Contains(s.members, inf) {
			continue
		}
		s.members = append(s.members, inf)
		if s.ctx != nil {
			s.goroutines.Go(func() { inf.RunWithContext(s.ctx) })
		}
	}
	return nil
}

// Remove stops informers, as Informer.Stop does, and removes them from the set.
func (s *InformerSet) Remove(informers ...AnyInformer) {
	for _, one := range informers {
		removed := one.untyped()
		removed.stop()
		s.remove(removed)
	}
}

func (s *InformerSet) remove(removed *sharedIndexInformer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(inf *sharedIndexInformer) bool {
		return inf == removed
	})
}

// errSetStopped is the error of a set after its run.
var errSetStopped = fmt.Errorf("informer set: %w", ErrInformerStopped)

func (s *InformerSet) hasStoppedLocked() bool { return s.ctx != nil && s.ctx.Err() != nil }

// Run runs the informers, including those added later, until ctx ends. It waits until all have
// stopped and returns nil. If a source or handler panics, all stop and Run panics. A second call
// returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.begin(ctx, cancel)
	if err != nil {
		return err
	}
	defer s.goroutines.Wait()
	<-ctx.Done()
	// Add starts no informer after this. The lock waits for an Add that is starting one.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// begin makes ctx that of the run and starts the members.
func (s *InformerSet) begin(ctx context.Context, cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil {
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.ctx = ctx
	s.goroutines = &tasks.Group{Cancel: cancel, Wrap: panicError}
	for _, inf := range s.members {
		if !inf.IsStopped() {
			s.goroutines.Go(func() { inf.RunWithContext(ctx) })
		}
	}
	return nil
}

// WaitSynced waits until all present informers have synced. If ctx ends or one stops first, the
// error has phase and last failure of those that have not. After the run of the set it fails.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	return s.call(func(members []*sharedIndexInformer) error {
		return waitSynced(ctx, members...)
	})
}

// Fresh is Informer.Fresh, for all informers. After the run of the set it fails.
func (s *InformerSet) Fresh(ctx context.Context) error {
	return s.call(func(members []*sharedIndexInformer) error {
		return callFeeds(ctx, "Fresh", (*feed).fresh, members...)
	})
}

// Healthy is Informer.Healthy, for all informers. After the run of the set it fails.
func (s *InformerSet) Healthy(limit time.Duration) error {
	return s.call(func(members []*sharedIndexInformer) error {
		return healthy(limit, members...)
	})
}

// Verify is Informer.Verify, for all informers. After the run of the set it fails.
func (s *InformerSet) Verify(ctx context.Context) error {
	return s.call(func(members []*sharedIndexInformer) error {
		return callFeeds(ctx, "Verify", (*feed).verify, members...)
	})
}

// Status returns the status of each informer that has not stopped, oldest first.
func (s *InformerSet) Status() []Status {
	var all []Status
	for _, inf := range s.informers() {
		if !inf.IsStopped() {
			all = append(all, inf.Status())
		}
	}
	return all
}

// call calls f with all members, or fails if the set has stopped.
func (s *InformerSet) call(f func(members []*sharedIndexInformer) error) error {
	s.mu.Lock()
	stopped := s.hasStoppedLocked()
	s.mu.Unlock()
	if stopped {
		return errSetStopped
	}
	return f(s.informers())
}

func (s *InformerSet) informers() []*sharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members)
}
