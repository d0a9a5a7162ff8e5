package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// InformerSet runs informers together. It has one of each source and type, however many
// parts of a program want it:
//
//	var set cache.InformerSet
//	pods, release, err := cache.InformerOf(&set, source, cache.InformerConfig[*corev1.Pod]{})
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
//
// The zero value is ready, and must not be copied. All methods may be called
// concurrently.
type InformerSet struct {
	mu      sync.Mutex
	members []*setMember
	// running is nil unless Run runs.
	running *setRun
}

// setRun is one Run of a set.
type setRun struct {
	ctx        context.Context
	cancel     context.CancelFunc
	goroutines group
	// over is closed when the run has ended.
	over chan struct{}
}

// setMember is an informer of a set, and how many want it.
type setMember struct {
	source   ListerWatcher
	object   reflect.Type
	informer any // an *Informer of object
	shared   *sharedIndexInformer
	leases   int
	// cancel ends the informer's run, and stopped is closed when it has ended; both nil
	// until it begins.
	cancel  context.CancelFunc
	stopped chan struct{}
}

// InformerOf returns the set's informer for the objects of type T of a source. If there
// is none it makes one, as NewInformerFor does, and runs it if the set runs. If there is
// one, config counts only for its Indexes: those whose names are not there yet are added.
//
// The informer is stopped, and the set forgets it, when everybody who was given it has
// called release, which does not wait, and does nothing the second time. Handlers are not
// removed before that: whoever adds one removes it. Run of an informer of a set is the
// set's to call.
//
// It fails, and release is nil, if source cannot be compared with others (it is no
// pointer and contains a slice, map or function), or one of the Indexes cannot be added.
// It panics as NewInformerFor does.
func InformerOf[T Object](set *InformerSet, source ListerWatcher, config InformerConfig[T]) (informer *Informer[T], release func(), err error) {
	if source != nil && !reflect.ValueOf(source).Comparable() {
		return nil, nil, fmt.Errorf("source of type %T cannot be told from another: use a pointer", source)
	}
	// Made before the lock is taken, for the source is asked what it can do.
	made := NewInformerFor(source, config)
	m, existing := set.lease(&setMember{source: source, object: reflect.TypeFor[T](), informer: made, shared: made.shared})
	informer = m.informer.(*Informer[T])
	if existing {
		err = informer.addMissing(config.Indexes)
	}
	var once sync.Once
	release = func() { once.Do(func() { set.release(m) }) }
	if err != nil {
		release()
		return nil, nil, err
	}
	return informer, release, nil
}

// addMissing adds those of the indexes whose names are not there.
func (i *Informer[T]) addMissing(indexes TypedIndexers[T]) error {
	missing := TypedIndexers[T]{}
	have := i.shared.store.GetIndexers()
	for name, function := range indexes {
		if _, there := have[name]; !there {
			missing[name] = function
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return i.AddIndexes(missing)
}

// lease returns the member for what fresh is for, which is fresh if there is none, and
// counts one more who wants it.
func (s *InformerSet) lease(fresh *setMember) (m *setMember, existing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.members, func(m *setMember) bool { return m.source == fresh.source && m.object == fresh.object })
	if at >= 0 {
		s.members[at].leases++
		return s.members[at], true
	}
	fresh.leases = 1
	s.members = append(s.members, fresh)
	if s.running != nil {
		s.startLocked(fresh)
	}
	return fresh, false
}

// release counts one less who wants a member, and stops it if that was the last.
func (s *InformerSet) release(m *setMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.leases--; m.leases == 0 {
		s.dropLocked(m)
	}
}

// dropLocked has the set forget a member, and ends its run.
func (s *InformerSet) dropLocked(m *setMember) {
	s.members = slices.DeleteFunc(s.members, func(other *setMember) bool { return other == m })
	if m.cancel != nil {
		m.cancel()
	}
}

func (s *InformerSet) startLocked(m *setMember) {
	run := s.running
	ctx, cancel := context.WithCancel(run.ctx)
	stopped := make(chan struct{})
	m.cancel, m.stopped = cancel, stopped
	after := func() {
		cancel()
		if run.goroutines.hasPanicked() {
			run.cancel()
		}
		close(stopped)
	}
	run.goroutines.start(after, func() {
		if err := m.shared.run(ctx); err != nil {
			m.shared.reflector.tell(ctx, err) // somebody runs it already
		}
	})
}

// Run runs the informers of the set, those that are made while it runs too, until ctx
// ends or Shutdown is called. Then it waits until all have stopped, and returns nil; the
// set has forgotten them, and may be run again with new ones. A panic of a source or
// handler stops all, and comes out of it.
//
// A second call while it runs returns ErrAlreadyRan at once.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := s.begin(ctx, cancel)
	if err != nil {
		return err
	}
	defer close(run.over)
	defer run.goroutines.wait()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members, s.running = nil, nil
	return nil
}

func (s *InformerSet) begin(ctx context.Context, cancel context.CancelFunc) (*setRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil, fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.running = &setRun{ctx: ctx, cancel: cancel, over: make(chan struct{})}
	for _, m := range s.members {
		s.startLocked(m)
	}
	return s.running, nil
}

// Stop stops one informer, which is given as its Shared, whoever else wants it, and waits
// until it has stopped; the set forgets it, and InformerOf makes a new one. It fails with
// ErrOwnHandler, and stops nothing, if a handler of the informer calls it: release does
// not wait.
func (s *InformerSet) Stop(informer SharedIndexInformer) error {
	own, ok := informer.(*sharedIndexInformer)
	if !ok || own == nil {
		return fmt.Errorf("%T is no informer of a set", informer)
	}
	if own.isCalling() {
		return fmt.Errorf("informer %s was not stopped: %w", own.reflector.name, ErrOwnHandler)
	}
	stopped, err := s.drop(own)
	if err != nil || stopped == nil {
		return err
	}
	<-stopped
	return nil
}

func (s *InformerSet) drop(informer *sharedIndexInformer) (stopped <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m.shared == informer {
			s.dropLocked(m)
			return m.stopped, nil
		}
	}
	return nil, fmt.Errorf("informer %s is not, or not any more, in the set", informer.reflector.name)
}

// Shutdown ends Run and waits until it has returned; it does nothing if Run does not run.
// It must not be called by a handler of one of the informers, for which it would wait:
// end the context there.
func (s *InformerSet) Shutdown() {
	s.mu.Lock()
	run := s.running
	s.mu.Unlock()
	if run != nil {
		run.cancel()
		<-run.over
	}
}

// WaitSynced waits until all informers that the set has now have their first list in
// their stores. If ctx ends before, or one is stopped, the error says of each that has
// not synced what it was doing and what had failed last. A set without informers is
// ErrNothingToWaitFor.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	informers := s.informers()
	if len(informers) == 0 {
		return fmt.Errorf("informer set has no informers: %w", ErrNothingToWaitFor)
	}
	var failures []error
	for _, informer := range informers {
		if err := informer.waitSynced(ctx); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// Status says how each informer is, in the order in which they were made.
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
	var all []*sharedIndexInformer
	for _, m := range s.members {
		all = append(all, m.shared)
	}
	return all
}
