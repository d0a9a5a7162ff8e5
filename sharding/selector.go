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

// Selector has the ranges of one replica, for any number of reflectors. NewSelector returns one. All methods may be
// called concurrently.
type Selector struct {
	now atomic.Pointer[view]

	mu sync.Mutex
	// filters are those of the running reflectors.
	filters map[*Filter]bool
	// moved is closed when a filter has applied its ranges, or has ended.
	moved chan struct{}
}

// view is one state of a selector.
type view struct {
	ranges Ranges
	number uint64
	// text is the shardSelector of requests.
	text string
	// changed is closed when another view has replaced this one.
	changed chan struct{}
}

// nothing is the shardSelector of a replica without ranges: an empty one would request everything.
var nothing = Ranges{{0, 0}}.String()

// NewSelector returns a selector. Without ranges the replica has no objects.
func NewSelector(ranges ...Range) *Selector {
	s := &Selector{filters: map[*Filter]bool{}, moved: make(chan struct{})}
	s.now.Store(newView(ranges, 1))
	return s
}

func newView(ranges []Range, number uint64) *view {
	v := &view{ranges: Union(ranges...), number: number, text: nothing, changed: make(chan struct{})}
	if len(v.ranges) > 0 {
		v.text = v.ranges.String()
	}
	return v
}

// Ranges returns the current ranges, which must not be changed.
func (s *Selector) Ranges() Ranges { return s.now.Load().ranges }

// Includes reports whether an object currently belongs to this replica. A store may still have objects that left with
// the last change.
func (s *Selector) Includes(obj metav1.Object) bool { return s.Ranges().Includes(obj) }

// Set changes the ranges and does not wait. Each reflector lists as soon as a watch is open.
func (s *Selector) Set(ranges Ranges) { s.set(ranges) }

// set returns the number of the view with the ranges.
func (s *Selector) set(ranges Ranges) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, next := s.now.Load(), newView(ranges, 0)
	if slices.Equal(old.ranges, next.ranges) {
		return old.number
	}
	next.number = old.number + 1
	s.now.Store(next)
	close(old.changed)
	return next.number
}

// Apply calls Set, and waits until the store of each running reflector has only objects of these ranges, or of later
// ones. If ctx ends first, it returns an error and the change continues.
func (s *Selector) Apply(ctx context.Context, ranges Ranges) error {
	for number := s.set(ranges); ; {
		behind, moved := s.behind(number)
		if behind == 0 {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%d reflectors have not listed for a change of ranges: %w", behind, context.Cause(ctx))
		}
	}
}

// behind returns the number of filters that have not applied the view yet.
func (s *Selector) behind(number uint64) (behind int, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.filters {
		if applied := f.applied.Load(); applied == nil || applied.number < number {
			behind++
		}
	}
	return behind, s.moved
}

// FilteredBy says where objects of other replicas are dropped.
type FilteredBy string

// Values of Status.FilteredBy.
const (
	Unknown FilteredBy = ""       // not known: some lists of API servers do not say whether they were filtered
	Server  FilteredBy = "server" // the last list says so, and no object of another replica has arrived since
	Client  FilteredBy = "client" // the source has sent objects of other replicas
)

// Status is the status of a reflector's share.
type Status struct {
	// Selector is that of the last applied list, empty before.
	Selector string `json:"selector"`
	// Pending is true from a change of the ranges until a list with them is applied.
	Pending    bool       `json:"pending"`
	FilteredBy FilteredBy `json:"filteredBy"`
}

// Filter applies a selector to the objects that one reflector receives. Programs do not need it. A nil Filter includes
// everything. One goroutine at a time calls Begin, Listed and Applied; the other methods may be called concurrently.
type Filter struct {
	selector *Selector
	// adopted is the view of the last list that was begun, applied that of the last one that is in the store, nil
	// before.
	adopted, applied atomic.Pointer[view]
	by               atomic.Pointer[FilteredBy]
	// unfiltered is set once the source has sent an object of another replica since the last list was begun, withoutUID
	// once it has sent one without a UID.
	unfiltered, withoutUID atomic.Bool
}

// Filter returns a filter; nil for a nil Selector.
func (s *Selector) Filter() *Filter {
	if s == nil {
		return nil
	}
	f := &Filter{selector: s}
	f.adopted.Store(s.now.Load())
	f.by.Store(new(Unknown))
	return f
}

// Run registers the filter, so that Apply waits for it, and calls relist after each change of the ranges. relist makes
// the reflector list, and returns afterwards. end stops this and waits for a running relist.
func (f *Filter) Run(ctx context.Context, relist func(ctx context.Context) error) (end func()) {
	if f == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	f.register(true)
	running.Go(func() {
		for err := error(nil); err == nil; {
			select {
			case <-f.changed():
				err = relist(ctx)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		f.register(false)
	}
}

func (f *Filter) register(runs bool) {
	s := f.selector
	s.mu.Lock()
	defer s.mu.Unlock()
	if runs {
		s.filters[f] = true
	} else {
		delete(s.filters, f)
	}
	s.wakeLocked()
}

func (s *Selector) wakeLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// Begin adopts the current ranges, for a list and all events until the next list.
func (f *Filter) Begin() {
	if f != nil {
		f.adopted.Store(f.selector.now.Load())
		f.unfiltered.Store(false)
		f.withoutUID.Store(false)
	}
}

// Selector returns the shardSelector of requests.
func (f *Filter) Selector() string {
	if f == nil {
		return ""
	}
	return f.adopted.Load().text
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
		f.by.Store(new(Client))
	}
	return included
}

// Listed records the shard in the metadata of a list or a page. It returns an error if the objects cannot be used.
func (f *Filter) Listed(info *metav1.ShardInfo) error {
	switch {
	case f == nil || info == nil && f.unfiltered.Load():
	case info == nil:
		f.by.Store(new(Unknown))
	case info.Selector != f.Selector():
		return fmt.Errorf("the server sent the shard %.200q, and was asked for %.200q", info.Selector, f.Selector())
	case f.withoutUID.Load():
		return errors.New("the server filters objects by their UIDs, and not all of them have one")
	case !f.unfiltered.Load():
		f.by.Store(new(Server))
	}
	return nil
}

// Applied records that the store has the list that was begun last.
func (f *Filter) Applied() {
	if f == nil {
		return
	}
	f.applied.Store(f.adopted.Load())
	f.selector.mu.Lock()
	defer f.selector.mu.Unlock()
	f.selector.wakeLocked()
}

// changed returns a channel that is closed once the selector has other ranges than the adopted ones.
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
	return applied.number
}

// Status returns the filter's status, nil for a nil Filter.
func (f *Filter) Status() *Status {
	if f == nil {
		return nil
	}
	status := &Status{Pending: true, FilteredBy: *f.by.Load()}
	if applied := f.applied.Load(); applied != nil {
		status.Selector, status.Pending = applied.text, applied != f.selector.now.Load()
	}
	return status
}

// InfoOf returns the shard in the metadata of a list, or nil.
func InfoOf(list any) *metav1.ShardInfo {
	switch l := list.(type) {
	case metav1.ShardedListInterface:
		return l.GetShardInfo()
	case *unstructured.UnstructuredList:
		if selector, named, err := unstructured.NestedString(l.Object, "metadata", "shardInfo", "selector"); named && err == nil {
			return &metav1.ShardInfo{Selector: selector}
		}
	}
	return nil
}
