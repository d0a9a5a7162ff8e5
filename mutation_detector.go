package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// defaultDetectionPeriod is that of client-go's detector.
const defaultDetectionPeriod = time.Second

// namedChanges is how many changes an error names; it is for a reader who then looks
// for the code that made them.
const namedChanges = 5

// MutationDetection says how many of a store's objects are watched for changes that
// nobody may make. The zero value watches none.
//
// What a store holds is shared: readers and handlers get the stored objects
// themselves, so to change one changes it for all, indexes no longer fit it, and the
// source knows nothing of it. The cure is to change a copy: obj.DeepCopy(). The
// detector keeps a private deep copy of each watched object and compares the two
// every Period, and once more when the object leaves the store or the informer ends;
// what differs is reported, once for each state of an object, as a
// MutatedObjectError.
//
// It is meant for tests, and with a large SampleEvery for production: a watched
// object is in memory twice and is read in full every Period. It says what was
// changed, not by whom; the race detector (go test -race) names both places, if a
// read and the change are not ordered, and the detector's own reading is such a read. For the
// same reason, a map that is written at the moment it is compared can end the
// process ("concurrent map read and map write"), as it can in any other reader.
//
// Not seen are changes of unexported fields, those made and undone between two
// looks, and those of what an object's deep copy shares with it. Times are
// compared as instants, quantities as numbers. Objects need DeepCopyObject, as all
// Kubernetes types have it: a type without it, or whose copy fails or differs from
// what was copied, is reported once as an UnwatchedTypeError.
type MutationDetection struct {
	// SampleEvery watches one object in so many: 1 is every object, 0 is none. A
	// hash of the key chooses, so an object is watched in all its states or in
	// none; each informer chooses anew.
	SampleEvery int
	// Period is the time from the end of one comparison of all watched objects to the
	// start of the next. Default: 1 s.
	Period time.Duration
}

// validate panics for what only a mistake in the program can set.
func (o MutationDetection) validate() {
	mustHave(o.SampleEvery >= 0, "MutationDetection.SampleEvery is negative")
	mustHave(o.Period >= 0, "MutationDetection.Period is negative")
}

// MutatedObjectError is reported when an object was changed in the store, by a
// reader or a handler that had to change a copy. The store goes on with the object as
// it is now; the next state that the source sends replaces it.
type MutatedObjectError struct {
	// Key is the object's, ResourceVersion that of the state that was changed.
	Key             string
	ResourceVersion string
	// Changes are the first five, in the order of the type's fields and of
	// sorted map keys. It is empty if the object was being changed at the moment
	// it was compared, and so could not be looked at in peace.
	Changes []FieldChange
	// Total is how many changes there were.
	Total int
}

// Error names the key, the version and the changed fields, no values.
func (e *MutatedObjectError) Error() string {
	at := ""
	if e.ResourceVersion != "" {
		at = " at version " + e.ResourceVersion
	}
	changes := make([]string, 0, len(e.Changes)+1)
	for _, change := range e.Changes {
		changes = append(changes, fmt.Sprintf("%s %s", change.Path, change.Kind))
	}
	if more := e.Total - len(e.Changes); more > 0 {
		changes = append(changes, fmt.Sprintf("and %d more", more))
	}
	if len(changes) == 0 {
		changes = append(changes, "it was being changed while it was compared")
	}
	return fmt.Sprintf("object %q%s was changed in the store, where it is shared: %s", e.Key, at, strings.Join(changes, ", "))
}

// UnwatchedTypeError is reported, once a type, when an object that was to be watched
// for changes cannot be. Others of its type may be unwatched too.
type UnwatchedTypeError struct {
	// Type is the Go type, Key the first such object.
	Type, Key string
	Err       error
}

// Error names the type, the key and the cause.
func (e *UnwatchedTypeError) Error() string {
	return fmt.Sprintf("object %q of type %s is not watched for changes: %v", e.Key, e.Type, e.Err)
}

// Unwrap returns the cause.
func (e *UnwatchedTypeError) Unwrap() error { return e.Err }

// Causes in an UnwatchedTypeError.
var (
	errNoDeepCopy  = errors.New("it has no DeepCopyObject")
	errNilDeepCopy = errors.New("its DeepCopyObject returned nil")
)

// mutationDetector compares stored objects with private copies. All methods may be
// called concurrently and on nil, which watches nothing; those of one key by one
// goroutine, in the order in which the store changes.
//
// It has no lock: whatever copies, compares or reports calls code of the user's.
type mutationDetector struct {
	every  uint64
	period time.Duration
	seed   maphash.Seed
	report func(error)
	shapes structShapes

	watched sync.Map // key to *watchedObject; gives memory back as keys go
	refused sync.Map // reflect.Type that was reported as unwatched, to nothing
}

// watchedObject is one state of one object.
type watchedObject struct {
	key    string
	shared any
	copied any
	// settled is set by whoever reports the object: that is done once.
	settled atomic.Bool
}

// newMutationDetector returns nil if nothing is to be watched. report is called by the
// goroutines that call check and run.
func newMutationDetector(options MutationDetection, report func(error)) *mutationDetector {
	options.validate()
	if options.SampleEvery == 0 {
		return nil
	}
	mustHave(report != nil, "a mutation detector needs a report function")
	if options.Period == 0 {
		options.Period = defaultDetectionPeriod
	}
	return &mutationDetector{
		every:  uint64(options.SampleEvery),
		period: options.Period,
		seed:   maphash.MakeSeed(),
		report: report,
	}
}

// samples says whether the object under key is watched, always the same for one key.
func (d *mutationDetector) samples(key string) bool {
	return d.every == 1 || maphash.String(d.seed, key)%d.every == 0
}

// stored says that the store holds obj under key from now on. The state it held
// before is compared a last time and forgotten. The same pointer again is the same
// state, whose copy is kept: a copy made now would hold what was changed meanwhile.
// What there is to report goes to report, at once.
func (d *mutationDetector) stored(key string, obj any, report func(error)) {
	if d == nil || !d.samples(key) {
		return
	}
	if held, ok := d.watched.Load(key); ok && samePointer(held.(*watchedObject).shared, obj) {
		d.compare(held.(*watchedObject), report)
		return
	}
	if isNilPointer(obj) {
		d.gone(key, report)
		return
	}
	copied, err := d.copyOf(key, obj)
	if err != nil {
		d.refuse(key, obj, err, report)
		d.gone(key, report)
		return
	}
	if before, ok := d.watched.Swap(key, &watchedObject{key: key, shared: obj, copied: copied}); ok {
		d.compare(before.(*watchedObject), report)
	}
}

// gone says that the store holds nothing under key any longer. What it held is
// compared a last time and forgotten.
func (d *mutationDetector) gone(key string, report func(error)) {
	if d == nil {
		return
	}
	if before, ok := d.watched.LoadAndDelete(key); ok {
		d.compare(before.(*watchedObject), report)
	}
}

// check compares all watched objects.
func (d *mutationDetector) check() {
	if d == nil {
		return
	}
	d.watched.Range(func(_, held any) bool {
		d.compare(held.(*watchedObject), d.report)
		return true
	})
}

// clear gives the copies back once nobody calls stored any more: a stopped informer may be
// kept for what is in its store.
func (d *mutationDetector) clear() {
	if d != nil {
		d.watched.Clear()
	}
}

// run checks every period until ctx ends, and then a last time. The period begins when a
// check has ended, so that a slow one leaves time for others.
func (d *mutationDetector) run(ctx context.Context, clk clock.Clock) {
	if d == nil {
		return
	}
	timer := clk.NewTimer(d.period)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			d.check()
			return
		case <-timer.C():
			d.check()
			timer.Reset(d.period)
		}
	}
}

// compare reports a watched object that differs from its copy, once.
func (d *mutationDetector) compare(w *watchedObject, report func(error)) {
	if w.settled.Load() {
		return
	}
	if err := d.difference(w); err != nil && w.settled.CompareAndSwap(false, true) {
		report(err)
	}
}

// difference returns what to report of a watched object. One that is being changed
// while it is read can shrink under the reader, who panics: that is a change like any
// other, but it cannot be named.
func (d *mutationDetector) difference(w *watchedObject) error {
	if _, total, err := d.changes(w.copied, w.shared, 0); total == 0 && err == nil {
		return nil
	}
	mutated := &MutatedObjectError{Key: w.key, ResourceVersion: receivedOf(w.copied).ResourceVersion}
	if changes, total, err := d.changes(w.copied, w.shared, namedChanges); err == nil {
		mutated.Changes, mutated.Total = changes, total
	}
	return mutated
}

func (d *mutationDetector) changes(was, is any, limit int) (changes []FieldChange, total int, err error) {
	defer caught("comparison", &err)
	changes, total = d.shapes.fieldChanges(was, is, limit)
	return changes, total, nil
}

// copyOf returns a deep copy that equals obj. One that does not, because DeepCopyObject
// leaves something out, would be taken for a change for ever.
func (d *mutationDetector) copyOf(key string, obj any) (any, error) {
	copier, ok := obj.(runtime.Object)
	if !ok {
		return nil, errNoDeepCopy
	}
	copied, err := deepCopied(copier)
	if err != nil {
		return nil, err
	}
	if isNilPointer(copied) {
		return nil, errNilDeepCopy
	}
	changes, _, err := d.changes(obj, copied, 1)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		return nil, fmt.Errorf("its deep copy differs from it: %s %s", changes[0].Path, changes[0].Kind)
	}
	return copied, nil
}

func deepCopied(obj runtime.Object) (copied runtime.Object, err error) {
	defer caught("DeepCopyObject", &err)
	return obj.DeepCopyObject(), nil
}

// refuse reports a type that cannot be watched, the first time.
func (d *mutationDetector) refuse(key string, obj any, cause error, report func(error)) {
	t := reflect.TypeOf(obj)
	if _, told := d.refused.LoadOrStore(t, nil); !told {
		report(&UnwatchedTypeError{Type: t.String(), Key: key, Err: cause})
	}
}
