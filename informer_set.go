package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/tasks"
)

// InformerSet runs informers together. The zero value is ready and must not be copied. All methods may be called
// concurrently.
//
//	err := set.Add(pods, nodes)
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu      sync.Mutex
	members []*sharedIndexInformer
	// ctx and goroutines are those of Run; ctx is nil before.
	ctx        context.Context
	goroutines *tasks.Group
}

// anyInformer is an *Informer of any type.
type anyInformer interface{ untyped() *sharedIndexInformer }

// Add adds informers, each an *Informer[T], and runs them if the set runs; do not call their Run. The set forgets
// informers that have stopped. It fails with ErrInformerStopped if the set has stopped, or one of the informers.
func (s *InformerSet) Add(informers ...anyInformer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return fmt.Errorf("informer set: %w", ErrInformerStopped)
	}
	s.forgetStoppedLocked()
	for _, one := range informers {
		inf := one.untyped()
		if inf.IsStopped() {
			return fmt.Errorf("informer set: %s: %w", inf.title(), ErrInformerStopped)
		}
		if slices.Contains(s.members, inf) {
			continue
		}
		s.members = append(s.members, inf)
		if s.ctx != nil {
			s.startLocked(inf)
		}
	}
	return nil
}

func (s *InformerSet) forgetStoppedLocked() {
	s.members = slices.DeleteFunc(s.members, (*sharedIndexInformer).IsStopped)
}

func (s *InformerSet) startLocked(inf *sharedIndexInformer) {
	s.goroutines.Go(func() { inf.RunWithContext(s.ctx) })
}

// Run runs the informers, also those added meanwhile, until ctx ends, waits until all have stopped, and returns nil. A
// panic of a source or handler stops all and comes out of Run. A second call returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.ctx != nil {
		s.mu.Unlock()
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.ctx, s.goroutines = ctx, tasks.New(clock.RealClock{}, cancel, panicError)
	s.forgetStoppedLocked()
	for _, inf := range s.members {
		s.startLocked(inf)
	}
	s.mu.Unlock()
	defer s.goroutines.Wait()
	<-ctx.Done()
	// No informer is started after this, and one that is being started has started when the lock is acquired.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// WaitSynced waits until all present informers have synced. If ctx ends first, or one is stopped, the error has each
// one's phase and last failure.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	informers := s.informers()
	if len(informers) == 0 {
		return fmt.Errorf("informer set has no informers: %w", errNothingToWaitFor)
	}
	return waitSynced(ctx, informers...)
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
	s.forgetStoppedLocked()
	return slices.Clone(s.members)
}
