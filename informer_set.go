package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/tasks"
)

// Fresh is Informer.Fresh, for all informers.
func (s *InformerSet) Fresh(ctx context.Context) error {
	return callFeeds(ctx, "Fresh", (*feed).fresh, s.informers()...)
}

// Healthy is Informer.Healthy, for all informers.
func (s *InformerSet) Healthy(limit time.Duration) error { return healthy(limit, s.informers()...) }

// Verify is Informer.Verify, for all informers.
func (s *InformerSet) Verify(ctx context.Context) error {
	return callFeeds(ctx, "Verify", (*feed).verify, s.informers()...)
}

// InformerSet runs informers together. Do not call their Run. The zero value is ready to use. Do not copy it. All methods may
// be called concurrently.
//
//	err := set.Add(pods, nodes)
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu      sync.Mutex
	members []*sharedIndexInformer
	// ctx and goroutines belong to Run. ctx is nil before it.
	ctx        context.Context
	goroutines *tasks.Group
}

// anyInformer is an *Informer of any type.
type anyInformer interface{ untyped() *sharedIndexInformer }

// Add adds informers, each an *Informer of any type. If the set runs, it runs them. If one of them or the set has stopped,
// it fails and adds none.
func (s *InformerSet) Add(informers ...anyInformer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return fmt.Errorf("informer set: %w", ErrInformerStopped)
	}
	for _, one := range informers {
		if inf := one.untyped(); inf.IsStopped() {
			return fmt.Errorf("informer set: %s: %w", inf.title, ErrInformerStopped)
		}
	}
	for _, one := range informers {
		inf := one.untyped()
		if slices.Contains(s.liveLocked(), inf) {
			continue
		}
		s.members = append(s.members, inf)
		if s.ctx != nil {
			s.goroutines.Go(func() { inf.RunWithContext(s.ctx) })
		}
	}
	return nil
}

// liveLocked removes members that have stopped, and returns the others.
func (s *InformerSet) liveLocked() []*sharedIndexInformer {
	s.members = slices.DeleteFunc(s.members, (*sharedIndexInformer).IsStopped)
	return s.members
}

// Run runs the informers, including those added later, until ctx ends. It waits until all have stopped and returns nil.
// If a source or handler panics, all stop and Run panics. A second call returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.ctx != nil {
		s.mu.Unlock()
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.ctx, s.goroutines = ctx, &tasks.Group{Cancel: cancel, Wrap: panicError}
	for _, inf := range s.liveLocked() {
		s.goroutines.Go(func() { inf.RunWithContext(ctx) })
	}
	s.mu.Unlock()
	defer s.goroutines.Wait()
	<-ctx.Done()
	// Add starts no informer after this. The lock waits for an Add that is starting one.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// WaitSynced waits until all present informers have synced. If ctx ends or one stops first, the error has phase and
// last failure of those that have not.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	return waitSynced(ctx, s.informers()...)
}

// Status returns the status of each informer, oldest first.
func (s *InformerSet) Status() []Status {
	var all []Status
	for _, inf := range s.informers() {
		all = append(all, inf.Status())
	}
	return all
}

func (s *InformerSet) informers() []*sharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.liveLocked())
}
