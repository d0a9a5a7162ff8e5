// Package mutation finds objects that were changed where they are shared: it keeps each object that it
// watches as JSON, compares that with the object's JSON from time to time, and names the fields
// that differ, never their values. It does not see what JSON does not show.
package mutation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/table"
)

// Report is of an object that was changed, once for each of its states, or, with an Err, of one
// that cannot be watched, once for each type.
type Report struct {
	Key string
	// Object is the copy, unstructured, which has not been changed; with an Err the object itself.
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

// Copy is one state of an object as JSON, nil for an object that is nil or cannot be watched.
type Copy struct {
	key      string
	shared   any
	copied   []byte
	reported atomic.Bool
}

// Copy copies an object before anybody can read it in the store; nil if its key is not watched. The
// Copy of a nil object ends the watch of its key.
func (d *Detector) Copy(key string, obj any, report func(Report)) *Copy {
	if d.every > 1 && maphash.String(d.seed, key)%d.every != 0 {
		return nil
	}
	copied, err := d.read(obj)
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
	now, err := d.read(c.shared)
	if bytes.Equal(c.copied, now) || !c.reported.CompareAndSwap(false, true) {
		return
	}
	was, changes := content(c.copied), []Change{}
	if err == nil {
		changes = Diff(was, content(now))
	}
	report(Report{Key: c.key, Object: &unstructured.Unstructured{Object: was}, Changes: changes[:min(namedChanges, len(changes))], Total: len(changes)})
}

// read returns an object as JSON; nil for no object.
func (d *Detector) read(obj any) (text []byte, err error) {
	if !table.HasWord(obj) {
		return nil, nil
	}
	panicked := d.protect("MarshalJSON", func() { text, err = json.Marshal(obj) })
	return text, cmp.Or(panicked, err)
}

// content is an object that read has returned.
func content(text []byte) (object map[string]any) {
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // as they are written
	_ = numbers.Decode(&object)
	return object
}
