package sharding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Selector has the ranges of one replica, for any number of reflectors. NewSelector returns one.
// All methods may be called concurrently.
type Selector struct {
	current atomic.Pointer[state]

	mu sync.Mutex
	// filters are those of the running reflectors.
	filters map[*Filter]bool
	// progress is closed when a filter has applied its ranges, or has ended.
	progress chan struct{}
}

// state is the state of a selector between two changes. It is immutable.
type state struct {
	ranges     Ranges
	generation uint64
	// selector is the shardSelector of requests.
	selector string
	// changed is closed when another state has replaced this one.
	changed chan struct{}
}

// selectNothing is the shardSelector of a replica without ranges: an empty one would request
// everything.
var selectNothing = Ranges{{0, 0}}.String()

// NewSelector returns a selector. Without ranges the replica has no objects.
func NewSelector(ranges ...Range) *Selector {
	s := &Selector{filters: map[*Filter]bool{}, progress: make(chan struct{})}
	s.current.Store(newState(ranges, 1))
	return s
}

func newState(ranges []Range, generation uint64) *state {
	s := &state{
		ranges:     Union(ranges...),
		generation: generation,
		selector:   selectNothing,
		changed:    make(chan struct{}),
	}
	if len(s.ranges) > 0 {
		s.selector = s.ranges.String()
	}
	return s
}

// Ranges returns the current ranges, which must not be changed.
func (s *Selector) Ranges() Ranges { return s.current.Load().ranges }

// Includes reports whether an object currently belongs to this replica. A store may still have
// objects that left with the last change.
func (s *Selector) Includes(obj metav1.Object) bool { return s.Ranges().Includes(obj) }

// Set changes the ranges and does not wait. Each reflector lists as soon as a watch is open.
func (s *Selector) Set(ranges Ranges) { s.set(ranges) }

// set returns the generation of the state with the ranges.
func (s *Selector) set(ranges Ranges) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	next := newState(ranges, old.generation+1)
	if slices.Equal(old.ranges, next.ranges) {
		return old.generation
	}
	s.current.Store(next)
	close(old.changed)
	return next.generation
}

// Apply calls Set, and waits until the store of each running reflector has only objects of these
// ranges, or of later ones. If ctx ends first, it returns an error and the change continues.
func (s *Selector) Apply(ctx context.Context, ranges Ranges) error {
	return s.wait(ctx, s.set(ranges))
}

// Wait waits like Apply, but for the current ranges, and changes nothing. Use Set and Wait instead
// of Apply if several goroutines change the ranges and must not wait for each other.
func (s *Selector) Wait(ctx context.Context) error {
	return s.wait(ctx, s.current.Load().generation)
}

// wait waits until each filter has applied a state of at least this generation.
func (s *Selector) wait(ctx context.Context, generation uint64) error {
	for {
		behind, progress := s.behind(generation)
		if behind == 0 {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf(
				"%d reflectors have not applied the ranges: %w", behind, context.Cause(ctx))
		}
	}
}

// behind returns the number of filters that have not applied the generation yet.
func (s *Selector) behind(generation uint64) (behind int, progress <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.filters {
		applied := f.applied.Load()
		if applied == nil || applied.generation < generation {
			behind++
		}
	}
	return behind, s.progress
}

// FilteredBy says where objects of other replicas are dropped.
type FilteredBy string

// Values of Status.FilteredBy.
const (
	// Unknown: some lists of API servers do not say whether they were filtered.
	Unknown FilteredBy = ""
	// Server: the last list says so, and no object of another replica has arrived since.
	Server FilteredBy = "server"
	// Client: the source has sent objects of other replicas.
	Client FilteredBy = "client"
)

// Status is the status of a reflector's share.
type Status struct {
	// Selector is that of the last applied list, empty before.
	Selector string `json:"selector"`
	// Pending is true from a change of the ranges until a list with them is applied.
	Pending    bool       `json:"pending"`
	FilteredBy FilteredBy `json:"filteredBy"`
}

// Filter applies a selector to the objects that one reflector receives. Programs do not need it. A
// nil Filter includes everything; do not call Begin, Listed and Applied on it. One goroutine at a
// time calls these three; the other methods may be called concurrently.
type Filter struct {
	selector *Selector
	// adopted is the state for the last list that was begun.
	adopted atomic.Pointer[state]
	// applied is the state for the last list that is in the store, nil before.
	applied    atomic.Pointer[state]
	filteredBy atomic.Pointer[FilteredBy]
	// unfiltered is set once the source has sent an object of another replica since the last list
	// was begun.
	unfiltered atomic.Bool
	// withoutUID is set once the source has sent an object without a UID since then.
	withoutUID atomic.Bool
}

// Filter returns a filter; nil for a nil Selector.
func (s *Selector) Filter() *Filter {
	if s == nil {
		return nil
	}
	f := &Filter{selector: s}
	f.adopted.Store(s.current.Load())
	f.filteredBy.Store(new(Unknown))
	return f
}

// Run registers the filter, so that Apply waits for it, and calls relist after each change of the
// ranges. relist makes the reflector list, and returns afterwards. end stops this and waits for a
// running relist.
func (f *Filter) Run(ctx context.Context, relist func(ctx context.Context) error) (end func()) {
	if f == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	f.selector.register(f)
	wg.Go(func() { f.relistOnChange(ctx, relist) })
	return func() {
		cancel()
		wg.Wait()
		f.selector.unregister(f)
	}
}

// relistOnChange calls relist after each change of the ranges, until it fails or ctx ends.
func (f *Filter) relistOnChange(ctx context.Context, relist func(ctx context.Context) error) {
	for {
		select {
		case <-f.changed():
			if err := relist(ctx); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *Selector) register(f *Filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filters[f] = true
	s.notifyProgressLocked()
}

func (s *Selector) unregister(f *Filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.filters, f)
	s.notifyProgressLocked()
}

func (s *Selector) notifyProgressLocked() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// Begin adopts the current ranges, for a list and all events until the next list.
func (f *Filter) Begin() {
	f.adopted.Store(f.selector.current.Load())
	f.unfiltered.Store(false)
	f.withoutUID.Store(false)
}

// Selector returns the shardSelector of requests.
func (f *Filter) Selector() string {
	if f == nil {
		return ""
	}
	return f.adopted.Load().selector
}

// Includes reports whether an object belongs to the adopted ranges.
func (f *Filter) Includes(uid types.UID, namespace, name string) bool {
	if f == nil {
		return true
	}
	if uid == "" && !f.withoutUID.Load() {
		f.withoutUID.Store(true)
	}
	included := f.adopted.Load().ranges.Contains(hashOf(uid, namespace, name))
	if !included && !f.unfiltered.Load() {
		f.unfiltered.Store(true)
		f.filteredBy.Store(new(Client))
	}
	return included
}

// Listed records the shard in the metadata of a list or a page. It returns an error if the objects
// cannot be used.
func (f *Filter) Listed(info *metav1.ShardInfo) error {
	filteredBy := Unknown
	if info != nil {
		if info.Selector != f.Selector() {
			return fmt.Errorf(
				"the server sent the shard %.200q instead of %.200q", info.Selector, f.Selector())
		}
		if f.withoutUID.Load() {
			return errors.New("the server filters by UID, but some objects have none")
		}
		filteredBy = Server
	}
	if !f.unfiltered.Load() { // otherwise it is Client
		f.filteredBy.Store(&filteredBy)
	}
	return nil
}

// Applied records that the store has the list that was begun last.
func (f *Filter) Applied() {
	f.applied.Store(f.adopted.Load())
	f.selector.mu.Lock()
	defer f.selector.mu.Unlock()
	f.selector.notifyProgressLocked()
}

// changed returns a channel that is closed once the selector has other ranges than the adopted
// ones.
func (f *Filter) changed() <-chan struct{} { return f.adopted.Load().changed }

// Settled returns a number for the ranges that are both adopted and applied, or 0 if these differ.
func (f *Filter) Settled() uint64 {
	if f == nil {
		return 1
	}
	applied := f.applied.Load()
	if applied == nil || f.adopted.Load() != applied {
		return 0
	}
	return applied.generation
}

// Status returns the filter's status, nil for a nil Filter.
func (f *Filter) Status() *Status {
	if f == nil {
		return nil
	}
	status := &Status{Pending: true, FilteredBy: *f.filteredBy.Load()}
	if applied := f.applied.Load(); applied != nil {
		status.Selector = applied.selector
		status.Pending = applied != f.selector.current.Load()
	}
	return status
}

// InfoOf returns the shard in the metadata of a list, or nil.
func InfoOf(list any) *metav1.ShardInfo {
	switch l := list.(type) {
	case metav1.ShardedListInterface:
		return l.GetShardInfo()
	case *unstructured.UnstructuredList:
		selector, found, err := unstructured.NestedString(
			l.Object, "metadata", "shardInfo", "selector")
		if found && err == nil {
			return &metav1.ShardInfo{Selector: selector}
		}
	}
	return nil
}
