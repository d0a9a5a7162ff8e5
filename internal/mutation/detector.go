// Package mutation finds objects that were changed where they are shared: it keeps a private deep
// copy of each object that it watches, compares the two from time to time, and names the fields
// that differ, never their values.
package mutation

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/table"
)

// Report is of an object that was changed, once for each of its states, or, with an Err, of one
// that cannot be watched, once for each type.
type Report struct {
	Key string
	// Object is the copy, which has not been changed; with an Err the object itself.
	Object any
	// Changes are the first five, Total is how many there are. There are none if the object was
	// being changed while it was compared.
	Changes []Change
	Total   int
	Err     error
}

// namedChanges is how many changes a report names: its reader then looks for the code.
const namedChanges = 5

var (
	errNoDeepCopy  = errors.New("it has no DeepCopyObject")
	errNilDeepCopy = errors.New("its DeepCopyObject returned nil")
)

// Detector compares stored objects with private copies. Its methods may be called concurrently;
// those of one key by one goroutine, in the order in which the store changes. It has no lock:
// copies, comparisons and reports call user code.
type Detector struct {
	every   uint64
	period  time.Duration
	protect func(what string, f func()) error
	seed    maphash.Seed

	watched sync.Map // key to *object
	refused sync.Map // reflect.Type that was reported as unwatched, to nothing
}

// object is one state of one object.
type object struct {
	shared, copied any
	reported       atomic.Bool
}

// New returns a detector that watches one object in so many, chosen by a hash of the key, and
// compares them every period. protect calls f and makes an error of a panic.
func New(every int, period time.Duration, protect func(what string, f func()) error) *Detector {
	return &Detector{every: uint64(every), period: period, protect: protect, seed: maphash.MakeSeed()}
}

// Copy is of an object that is about to be stored.
type Copy struct {
	key string
	object
	err error
}

// Copy copies an object before anybody can read it in the store; nil if its key is not watched. The
// Copy of a nil object ends the watch of its key.
func (d *Detector) Copy(key string, obj any) *Copy {
	if d.every > 1 && maphash.String(d.seed, key)%d.every != 0 {
		return nil
	}
	c := &Copy{key: key, object: object{shared: obj}}
	c.copied, c.err = d.copyOf(obj)
	return c
}

// Stored watches an object that the store holds from now on, unless c is nil. The state that it held
// before is compared a last time. The same pointer again is the same state, whose copy is kept: a
// new one may hold what was changed meanwhile.
func (d *Detector) Stored(c *Copy, report func(Report)) {
	if c == nil {
		return
	}
	before, ok := d.watched.Load(c.key)
	switch {
	case ok && table.Same(before.(*object).shared, c.shared):
	case c.copied == nil:
		if t := reflect.TypeOf(c.shared); c.err != nil {
			if _, reported := d.refused.LoadOrStore(t, nil); !reported {
				report(Report{Key: c.key, Object: c.shared, Err: c.err})
			}
		}
		d.watched.Delete(c.key)
	default:
		d.watched.Store(c.key, &c.object)
	}
	if ok {
		d.compare(c.key, before.(*object), report)
	}
}

// Run compares all watched objects every period until ctx ends, and then a last time. A period
// begins when a comparison has ended.
func (d *Detector) Run(ctx context.Context, clk clock.Clock, report func(Report)) {
	timer := clk.NewTimer(d.period)
	defer timer.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-timer.C():
		}
		d.watched.Range(func(key, held any) bool {
			d.compare(key.(string), held.(*object), report)
			return true
		})
		timer.Reset(d.period)
	}
}

// Clear releases the copies. Nobody may call Stored any more.
func (d *Detector) Clear() { d.watched.Clear() }

// compare reports a watched object that differs from its copy, once. One that is being changed
// while it is read may make the reader panic: it was changed, but the fields cannot be named.
func (d *Detector) compare(key string, o *object, report func(Report)) {
	if o.reported.Load() {
		return
	}
	var changes []Change
	err := d.protect("comparison", func() { changes = Diff(o.copied, o.shared) })
	if err == nil && len(changes) == 0 || !o.reported.CompareAndSwap(false, true) {
		return
	}
	report(Report{Key: key, Object: o.copied, Changes: changes[:min(namedChanges, len(changes))], Total: len(changes)})
}

// copyOf returns a deep copy that equals obj, and nil for no object. One that differs, because
// DeepCopyObject leaves something out, would be taken for a change forever.
func (d *Detector) copyOf(obj any) (copied any, err error) {
	if v := reflect.ValueOf(obj); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	copier, ok := obj.(runtime.Object)
	if !ok {
		return nil, errNoDeepCopy
	}
	if err = d.protect("DeepCopyObject", func() { copied = copier.DeepCopyObject() }); err != nil {
		return nil, err
	}
	if !table.HasWord(copied) {
		return nil, errNilDeepCopy
	}
	var changes []Change
	if err = d.protect("comparison", func() { changes = Diff(obj, copied) }); err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		return nil, fmt.Errorf("its deep copy differs from it: %s %s", changes[0].Path, changes[0].Kind)
	}
	return copied, nil
}
