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
	// Changes are the first five of Total; none if the object was being changed while it was compared.
	Changes []Change
	Total   int
	Err     error
}

// namedChanges is how many changes a report names: its reader then looks for the code.
const namedChanges = 5

// Detector compares stored objects with private copies. Its methods may be called concurrently;
// those of one key by one goroutine, in the order in which the store changes. It has no lock:
// copies, comparisons and reports call user code.
type Detector struct {
	every   uint64
	period  time.Duration
	protect func(what string, f func()) error
	seed    maphash.Seed

	watched sync.Map // key to *Copy
	refused sync.Map // reflect.Type that was reported as unwatched, to nothing
}

// New returns a detector that watches one object in so many, chosen by a hash of the key, and
// compares them every period. protect calls f and makes an error of a panic.
func New(every int, period time.Duration, protect func(what string, f func()) error) *Detector {
	return &Detector{every: uint64(every), period: period, protect: protect, seed: maphash.MakeSeed()}
}

// Copy is one state of an object with its copy, nil for an object that is nil or cannot be watched.
type Copy struct {
	key            string
	shared, copied any
	reported       atomic.Bool
}

// Copy copies an object before anybody can read it in the store; nil if its key is not watched. The
// Copy of a nil object ends the watch of its key.
func (d *Detector) Copy(key string, obj any, report func(Report)) *Copy {
	if d.every > 1 && maphash.String(d.seed, key)%d.every != 0 {
		return nil
	}
	copied, err := d.copyOf(obj)
	if err != nil {
		if _, reported := d.refused.LoadOrStore(reflect.TypeOf(obj), nil); !reported {
			report(Report{Key: key, Object: obj, Err: err})
		}
	}
	return &Copy{key: key, shared: obj, copied: copied}
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
	case ok && table.Same(before.(*Copy).shared, c.shared):
	case c.copied == nil:
		d.watched.Delete(c.key)
	default:
		d.watched.Store(c.key, c)
	}
	if ok {
		d.compare(before.(*Copy), report)
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
		d.watched.Range(func(_, held any) bool {
			d.compare(held.(*Copy), report)
			return true
		})
		timer.Reset(d.period)
	}
}

// Clear releases the copies. Nobody may call Stored any more.
func (d *Detector) Clear() { d.watched.Clear() }

// compare reports a watched object that differs from its copy, once. One that is being changed
// while it is read may make the reader panic: it was changed, but the fields cannot be named.
func (d *Detector) compare(c *Copy, report func(Report)) {
	if c.reported.Load() {
		return
	}
	changes, err := d.diff(c.copied, c.shared)
	if err == nil && len(changes) == 0 || !c.reported.CompareAndSwap(false, true) {
		return
	}
	report(Report{Key: c.key, Object: c.copied, Changes: changes[:min(namedChanges, len(changes))], Total: len(changes)})
}

func (d *Detector) diff(was, is any) (changes []Change, err error) {
	err = d.protect("comparison", func() { changes = Diff(was, is) })
	return changes, err
}

// copyOf returns a deep copy that equals obj, and nil for no object. One that differs, because
// DeepCopyObject leaves something out, would be taken for a change forever.
func (d *Detector) copyOf(obj any) (copied any, err error) {
	if !table.HasWord(obj) {
		return nil, nil
	}
	copier, ok := obj.(runtime.Object)
	if !ok {
		return nil, errors.New("it has no DeepCopyObject")
	}
	if err = d.protect("DeepCopyObject", func() { copied = copier.DeepCopyObject() }); err != nil {
		return nil, err
	}
	if !table.HasWord(copied) {
		return nil, errors.New("its DeepCopyObject returned nil")
	}
	switch changes, err := d.diff(obj, copied); {
	case err != nil:
		return nil, err
	case len(changes) > 0:
		return nil, fmt.Errorf("its deep copy differs from it: %s", changes[0])
	}
	return copied, nil
}
