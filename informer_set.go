package cache

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/tasks"
)

// InformerSet runs informers together, one for each source and type of objects, however many parts of a program ask for
// it. The zero value is ready and must not be copied. All methods may be called concurrently.
//
//	pods, release, err := cache.InformerOf(&set, source, cache.InformerConfig[*corev1.Pod]{})
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu      sync.Mutex
	members []*setMember
	// ctx and goroutines are those of Run; ctx is nil before.
	ctx        context.Context
	goroutines *tasks.Group
}

// setMember is an informer of a set.
type setMember struct {
	// sources are by namespace, or one.
	sources map[string]ListerWatcher
	// object is T, and expected the type, with the group/version/kind of an unstructured
	// example, of what the source sends.
	object   reflect.Type
	expected string
	informer any // an *Informer of object
	shared   *sharedIndexInformer
	// leases counts the callers that have not released it.
	leases int
	// cancel ends the informer's run; nil until it begins.
	cancel context.CancelFunc
}

// InformerOf returns the set's informer of a source, object type and set of Namespaces. If there is none it makes one
// as NewTypedInformer does, and runs it if the set runs. If there is one, it only adds config's new Indexes. Sources
// are compared with ==.
//
// The informer stops once every caller has called release, which does not wait. Remove your handlers before that, and
// do not call Run on it. It fails if source is not comparable, or the set has stopped.
func InformerOf[T Object](set *InformerSet, source ListerWatcher, config InformerConfig[T]) (informer *Informer[T], release func(), err error) {
	sources := maps.Clone(config.Namespaces)
	if len(sources) == 0 {
		sources = map[string]ListerWatcher{"": source}
	}
	for _, one := range sources {
		if one != nil && !reflect.ValueOf(one).Comparable() {
			return nil, nil, fmt.Errorf("source of type %T cannot be compared with others: use a pointer", one)
		}
	}
	// Made before the lock is acquired: it calls the source.
	made := NewTypedInformer(source, config)
	m, err := set.lease(&setMember{
		sources: sources, object: reflect.TypeFor[T](), expected: typeDescription(made.example, gvkOf(made.example)),
		informer: made, shared: made.shared,
	})
	if err != nil {
		return nil, nil, err
	}
	var once sync.Once
	release = func() { once.Do(func() { set.release(m) }) }
	informer = m.informer.(*Informer[T])
	if err := informer.addMissing(config.Indexes); err != nil {
		release()
		return nil, nil, err
	}
	return informer, release, nil
}

// addMissing adds those of the indexes whose names are not there, also if another caller adds them meanwhile.
func (i *Informer[T]) addMissing(indexes TypedIndexers[T]) error {
	for name, function := range indexes {
		exists := func() bool { return i.shared.store.GetIndexers()[name] != nil }
		if exists() {
			continue
		}
		if err := i.AddIndexes(TypedIndexers[T]{name: function}); err != nil && !exists() {
			return err
		}
	}
	return nil
}

// lease returns the member for the objects of fresh, which is fresh if there is none, and counts one lease more.
func (s *InformerSet) lease(fresh *setMember) (*setMember, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return nil, fmt.Errorf("informer set: %w", ErrInformerStopped)
	}
	s.forgetStoppedLocked()
	for _, m := range s.members {
		if maps.Equal(m.sources, fresh.sources) && m.object == fresh.object && m.expected == fresh.expected {
			m.leases++
			return m, nil
		}
	}
	fresh.leases = 1
	s.members = append(s.members, fresh)
	if s.ctx != nil {
		s.startLocked(fresh)
	}
	return fresh, nil
}

// release counts one lease less. The last ends the member's run, which an informer that has not run begins for that.
func (s *InformerSet) release(m *setMember) {
	s.mu.Lock()
	m.leases--
	last, begun := m.leases == 0, m.cancel != nil
	if last {
		s.members = slices.DeleteFunc(s.members, func(other *setMember) bool { return other == m })
	}
	s.mu.Unlock()
	switch {
	case last && begun:
		m.cancel()
	case last:
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.shared.run(ended) // it fails only if it has run
	}
}

// forgetStoppedLocked has the set forget the members that have ended by themselves.
func (s *InformerSet) forgetStoppedLocked() {
	s.members = slices.DeleteFunc(s.members, func(m *setMember) bool { return m.shared.IsStopped() })
}

func (s *InformerSet) startLocked(m *setMember) {
	ctx, cancel := context.WithCancel(s.ctx)
	m.cancel = cancel
	s.goroutines.Go(func() {
		defer cancel()
		m.shared.RunWithContext(ctx)
	})
}

// Run runs the informers, also those made meanwhile, until ctx ends, waits until all have stopped, and returns nil. A
// panic of a source or handler stops all and comes out of Run. A second call returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.start(ctx, tasks.New(clock.RealClock{}, cancel, panicError)) {
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	defer s.goroutines.Wait()
	<-ctx.Done()
	// No informer is started after this, and one that is being started has started when the lock is acquired.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// start starts the members; false if the set has run.
func (s *InformerSet) start(ctx context.Context, goroutines *tasks.Group) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil {
		return false
	}
	s.ctx, s.goroutines = ctx, goroutines
	for _, m := range s.members {
		s.startLocked(m)
	}
	return true
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
	for _, informer := range s.informers() {
		all = append(all, informer.Status())
	}
	return all
}

func (s *InformerSet) informers() []*sharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetStoppedLocked()
	var all []*sharedIndexInformer
	for _, m := range s.members {
		all = append(all, m.shared)
	}
	return all
}
