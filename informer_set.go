package cache

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/tasks"
)

// InformerSet runs informers together. It has one of each source and type of objects,
// however many parts of a program want it:
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
	goroutines *tasks.Group
	// over is closed when all that was started has ended.
	over chan struct{}
	// live are the members that run, those that the set has forgotten included.
	live sets.Set[*setMember]
}

// ending says whether nothing is started any more.
func (run *setRun) ending() bool { return run.ctx.Err() != nil }

// setMember is an informer of a set, and how many want it.
type setMember struct {
	// sources are by namespace, or one.
	sources map[string]ListerWatcher
	// object is T, and expected the type, with the group/version/kind of an unstructured
	// example, of what the source sends.
	object   reflect.Type
	expected string
	informer any // an *Informer of object
	shared   *sharedIndexInformer
	leases   int
	// cancel ends the informer's run, and stopped is closed when it has ended; both nil
	// until it begins.
	cancel  context.CancelFunc
	stopped chan struct{}
}

// InformerOf returns the set's informer for the objects of type T, and of config's
// ObjectType, of a source or of the config's Namespaces. If there is none it makes one, as NewInformerFor does, and runs
// it if the set runs. If there is one, config counts only for its Indexes: those whose
// names are not there yet are added. Sources are the same if they are equal: two pointers
// to ListWatches of one resource are two sources.
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
	made := NewInformerFor(source, config)
	m, existing := set.lease(&setMember{
		sources: sources, object: reflect.TypeFor[T](), expected: typeDescription(made.example, gvkOf(made.example)),
		informer: made, shared: made.shared,
	})
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

// addMissing adds those of the indexes whose names are not there. Somebody else may add
// one of them meanwhile; then it is tried again with the others.
func (i *Informer[T]) addMissing(indexes TypedIndexers[T]) error {
	before := len(indexes) + 1
	for {
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
		err := i.AddIndexes(missing)
		if err == nil || len(missing) == before {
			return err
		}
		before = len(missing)
	}
}

// begun says whether its run has begun.
func (m *setMember) begun() bool { return m.cancel != nil }

// isLike says whether two members are of the same objects.
func (m *setMember) isLike(other *setMember) bool {
	return maps.Equal(m.sources, other.sources) && m.object == other.object && m.expected == other.expected
}

// lease returns the member for what fresh is for, which is fresh if there is none, and
// counts one more who wants it.
func (s *InformerSet) lease(fresh *setMember) (m *setMember, existing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ending := s.running != nil && s.running.ending()
	s.forgetStoppedLocked()
	for _, m := range s.members {
		if m.isLike(fresh) && !(ending && m.begun()) {
			m.leases++
			return m, true
		}
	}
	fresh.leases = 1
	s.members = append(s.members, fresh)
	if s.running != nil && !ending {
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
	s.forgetLocked(m)
	if m.begun() {
		m.cancel()
		return
	}
	m.shared.abandon()
}

func (s *InformerSet) forgetLocked(m *setMember) {
	s.members = slices.DeleteFunc(s.members, func(other *setMember) bool { return other == m })
}

// forgetStoppedLocked has the set forget the members that have ended without it: somebody
// else may have run one.
func (s *InformerSet) forgetStoppedLocked() {
	s.members = slices.DeleteFunc(s.members, func(m *setMember) bool { return m.shared.IsStopped() })
}

func (s *InformerSet) startLocked(m *setMember) {
	run := s.running
	ctx, cancel := context.WithCancel(run.ctx)
	stopped := make(chan struct{})
	m.cancel, m.stopped = cancel, stopped
	run.live.Insert(m)
	after := func() {
		cancel()
		s.mu.Lock()
		s.forgetLocked(m) // it may have ended by itself
		run.live.Delete(m)
		s.mu.Unlock()
		close(stopped)
	}
	run.goroutines.Go(func() {
		defer after()
		if err := m.shared.run(ctx); err != nil {
			m.shared.tell(m.shared.withLogger(ctx), "", err) // somebody else runs it
		}
	})
}

// Run runs the informers of the set, those that are made while it runs too, until ctx
// ends or Shutdown is called. Then it waits until all have stopped, and returns nil; the
// set has forgotten them, and may be run again with new ones. A panic of a source or
// handler stops all, and comes out of it, or ends the process where something hangs.
//
// A second call before the first has returned returns ErrAlreadyRan at once.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := s.begin(ctx, cancel)
	if err != nil {
		return err
	}
	defer s.end(run)
	defer run.goroutines.Wait()
	<-ctx.Done()
	// No informer is started after this, and one that is being started has started when the lock is acquired.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

func (s *InformerSet) begin(ctx context.Context, cancel context.CancelFunc) (*setRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil, fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.running = &setRun{
		ctx: ctx, cancel: cancel, over: make(chan struct{}), live: sets.Set[*setMember]{},
		goroutines: tasks.New(clock.RealClock{}, cancel, panicError),
	}
	for _, m := range s.members {
		s.startLocked(m)
	}
	return s.running, nil
}

// end leaves the members that were made since the run began to end to the next one.
func (s *InformerSet) end(run *setRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, (*setMember).begun)
	s.running = nil
	close(run.over)
}

// Stop stops one informer, which is given as its Shared, whoever else wants it, and waits
// until it has stopped, or until ctx has ended, whose error it returns then; the set has
// forgotten it, and InformerOf makes a new one. Called from inside a handler, or another function
// that the informer calls, it waits until ctx ends: use release there, which does not wait.
func (s *InformerSet) Stop(ctx context.Context, informer SharedIndexInformer) error {
	own, ok := informer.(*sharedIndexInformer)
	if !ok || own == nil {
		return fmt.Errorf("%T is no informer of a set: give it what its Shared returns", informer)
	}
	stopped, err := s.drop(own)
	if err != nil || stopped == nil {
		return err
	}
	return awaitEnd(ctx, stopped)
}

// awaitEnd waits until something has ended.
func awaitEnd(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
	if s.running != nil {
		for m := range s.running.live {
			if m.shared == informer {
				return m.stopped, nil // somebody has stopped it, and it still ends
			}
		}
	}
	return nil, fmt.Errorf("informer %s is not, or not any more, in the set", informer.name)
}

// Shutdown ends Run and waits until all informers have stopped and Run is about to
// return, or until ctx has ended, whose error it returns then. It does nothing if Run
// does not run. Called from inside a handler, or another function that one of the
// informers calls, it waits until ctx ends.
func (s *InformerSet) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	run := s.running
	s.mu.Unlock()
	if run == nil {
		return nil
	}
	run.cancel()
	return awaitEnd(ctx, run.over)
}

// WaitSynced waits until all informers that the set has now have their first list in
// their stores. If ctx ends before, or one is stopped, the error says of each that has
// not synced what it was doing and what had failed last. It is an error for a set
// without informers.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	informers := s.informers()
	if len(informers) == 0 {
		return fmt.Errorf("informer set has no informers: %w", errNothingToWaitFor)
	}
	return waitSynced(ctx, informers...)
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
	s.forgetStoppedLocked()
	var all []*sharedIndexInformer
	for _, m := range s.members {
		all = append(all, m.shared)
	}
	return all
}
