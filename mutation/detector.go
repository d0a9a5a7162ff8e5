// Package mutation finds objects that a reader or handler changed in a cache, where they are
// shared. A detector keeps a JSON copy of each object that it watches, and periodically compares it
// with the object's current JSON. A report names the fields that differ, never their values. Fields
// that JSON does not have are not checked.
//
//	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
//		DetectMutations: mutation.Options{SampleEvery: 100}.New,
//	})
//
// Reports are *cache.MutatedObjectErrors. Reading a map while another goroutine writes to it can
// end the process, so use a detector in tests.
package mutation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/table"
)

// Options configure a detector. The zero value watches every object.
type Options struct {
	// SampleEvery n watches one object in n, selected by its key. Default: 1, every object.
	SampleEvery int
	// Period is the pause between comparisons of all watched objects. Default: 1 s.
	Period time.Duration
}

// detector implements cache.MutatedObjectDetector for one informer.
type detector struct {
	every  uint64
	period time.Duration
	seed   maphash.Seed
	// wake receives when replaced or unwatched is not empty.
	wake chan struct{}

	mu sync.Mutex
	// watched has the newest state by key. replaced has earlier states, which are compared once
	// more.
	watched  map[string]*state
	replaced []*state
	// unwatched has an error for each type that cannot be watched, refused those types.
	unwatched []*cache.MutatedObjectError
	refused   map[reflect.Type]bool
}

// state is a watched state of an object.
type state struct {
	key    string
	shared any
	copied []byte
	// absent is set if the store did not have the object at the last comparison: it is not stored
	// yet, or was removed.
	absent bool
}

// New returns a detector for one informer. It panics if an option is negative.
func (o Options) New() cache.MutatedObjectDetector {
	if o.SampleEvery < 0 {
		panic("mutation: Options.SampleEvery is negative")
	}
	if o.Period < 0 {
		panic("mutation: Options.Period is negative")
	}
	return &detector{
		every:   uint64(max(1, o.SampleEvery)),
		period:  cmp.Or(o.Period, time.Second),
		seed:    maphash.MakeSeed(),
		wake:    make(chan struct{}, 1),
		watched: map[string]*state{},
		refused: map[reflect.Type]bool{},
	}
}

// Watch implements cache.MutatedObjectDetector. If the object is watched already, its copy is kept:
// a new copy would include changes made since.
func (d *detector) Watch(key string, obj any) {
	if d.every > 1 && maphash.String(d.seed, key)%d.every != 0 {
		return
	}
	copied, err := asJSON(obj)
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.watched[key]
	if before != nil && table.Same(before.shared, obj) {
		return
	}
	if before != nil {
		d.replaced = append(d.replaced, before)
		delete(d.watched, key)
	}
	if err == nil {
		d.watched[key] = &state{key: key, shared: obj, copied: copied}
	} else {
		d.refuseLocked(key, obj, err)
	}
	if len(d.replaced)+len(d.unwatched) > 0 {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// refuseLocked reports an object that cannot be compared, once for each type.
func (d *detector) refuseLocked(key string, obj any, err error) {
	t := reflect.TypeOf(obj)
	if d.refused[t] {
		return
	}
	d.refused[t] = true
	err = fmt.Errorf("%T cannot be compared: %w", obj, err)
	d.unwatched = append(d.unwatched, &cache.MutatedObjectError{Key: key, Err: err})
}

// Run implements cache.MutatedObjectDetector. A period begins when a comparison has ended.
func (d *detector) Run(ctx context.Context, store cache.Store, report func(key string, err error)) {
	timer := time.NewTimer(d.period)
	defer timer.Stop()
	for ended := false; !ended; {
		all := true
		select {
		case <-ctx.Done():
			ended = true // compare everything once more
		case <-timer.C:
		case <-d.wake:
			all = false
		}
		d.mu.Lock()
		replaced := d.replaced
		unwatched := d.unwatched
		d.replaced = nil
		d.unwatched = nil
		watched := slices.Collect(maps.Values(d.watched))
		d.mu.Unlock()
		for _, err := range unwatched {
			report(err.Key, err)
		}
		for _, s := range replaced {
			s.compare(report)
		}
		for i := 0; all && i < len(watched); i++ {
			watched[i].compare(report)
			d.forgetAbsent(watched[i], store)
		}
		if all {
			timer.Reset(d.period)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.watched)
}

// forgetAbsent drops a state that the store did not have at two consecutive comparisons.
func (d *detector) forgetAbsent(s *state, store cache.Store) {
	stored, _, _ := store.GetByKey(s.key)
	was := s.absent
	s.absent = !table.Same(stored, s.shared)
	if !was || !s.absent {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched[s.key] == s {
		delete(d.watched, s.key)
	}
}

// namedChanges bounds the changes named in a report; a few suffice to find the code.
const namedChanges = 5

// compare reports, once, a state that differs from its copy. If another goroutine changes the
// object during the comparison, asJSON may panic; then the report names no fields.
func (s *state) compare(report func(key string, err error)) {
	if s.copied == nil {
		return
	}
	now, err := asJSON(s.shared)
	if bytes.Equal(s.copied, now) {
		return
	}
	was := content(s.copied)
	found := &cache.MutatedObjectError{
		Key:             s.key,
		ResourceVersion: (&unstructured.Unstructured{Object: was}).GetResourceVersion(),
	}
	if err == nil {
		changes := differences(was, content(now))
		found.Total = len(changes)
		for _, change := range changes[:min(namedChanges, len(changes))] {
			found.Changes = append(found.Changes, change.String())
		}
	}
	s.copied = nil
	report(s.key, found)
}

// asJSON encodes an object. A panic of its MarshalJSON becomes an error.
func asJSON(obj any) (text []byte, err error) {
	defer func() {
		if value := recover(); value != nil {
			text = nil
			err = fmt.Errorf("MarshalJSON: %w", &cache.PanicError{Value: value})
		}
	}()
	return json.Marshal(obj)
}

// content decodes an object that asJSON has encoded.
func content(text []byte) (object map[string]any) {
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // keep numbers as written
	_ = numbers.Decode(&object)
	return object
}
