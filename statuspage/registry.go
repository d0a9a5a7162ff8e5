package statuspage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/watchmirror/cache"
)

// Registry has the informers, reflectors and controllers that are shown. The zero value is ready to
// use. Set its fields before the first use. Its methods may be called concurrently.
type Registry struct {
	// Interval is how often Run samples each status. Default: 1 s. The plots show 300 samples.
	Interval time.Duration
	// Redact names fields of objects that are not shown, as JSON pointers (RFC 6901) with * for
	// every key or element: /spec/containers/*/env/*/value. They are redacted in objects of every
	// type.
	Redact []string
	// HideObjects shows only the keys of objects.
	HideObjects bool

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is an added informer, reflector or controller.
type entry struct {
	name     string
	reporter interface{ Status() cache.Status }
	// objects is nil if the store is not known.
	objects cache.Snapshotter

	mu      sync.Mutex
	history history
}

// Add shows an informer, reflector or controller under a name until remove is called. The argument
// must have a method Status() cache.Status. Everything that package cache returns has one,
// including a cache.SharedIndexInformer and a cache.Controller, whose interfaces do not declare it.
// Add fails for anything else, and if the name is empty or in use.
//
// The objects of an informer are shown too. Those of a reflector or controller need AddWithStore.
func (r *Registry) Add(name string, informerOrReflector any) (remove func(), err error) {
	return r.add(name, informerOrReflector, snapshotterOf(informerOrReflector))
}

// AddWithStore is Add for a reflector or controller whose objects are in store.
func (r *Registry) AddWithStore(
	name string, reflectorOrController any, store cache.Store,
) (remove func(), err error) {
	return r.add(name, reflectorOrController, snapshotterOf(store))
}

func (r *Registry) add(
	name string, reporter any, objects cache.Snapshotter,
) (remove func(), err error) {
	status, ok := reporter.(interface{ Status() cache.Status })
	if !ok {
		return nil, fmt.Errorf(
			"add %q to a status page: %T has no method Status() cache.Status", name, reporter)
	}
	if name == "" {
		return nil, fmt.Errorf("add %T to a status page: the name is empty", reporter)
	}
	e := &entry{name: name, reporter: status, objects: objects}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[name] != nil {
		return nil, fmt.Errorf("add %q to a status page: the name is in use", name)
	}
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	r.entries[name] = e
	return func() { r.remove(e) }, nil
}

func (r *Registry) remove(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[e.name] == e {
		delete(r.entries, e.name)
	}
}

// snapshotterOf returns the store of an informer, or the store itself; nil if it is not known.
func snapshotterOf(from any) cache.Snapshotter {
	if typed, ok := from.(interface {
		Shared() cache.SharedIndexInformer
	}); ok {
		from = typed.Shared()
	}
	objects, _ := from.(cache.Snapshotter)
	return objects
}

// Run samples each status until ctx ends, for the history and the plots.
func (r *Registry) Run(ctx context.Context) {
	ticker := time.NewTicker(r.interval())
	defer ticker.Stop()
	for {
		r.sample()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Registry) interval() time.Duration {
	if r.Interval > 0 {
		return r.Interval
	}
	return time.Second
}

func (r *Registry) sample() {
	for _, e := range r.all() {
		e.sample(r.interval() / 2) // after a delay two ticks may come together
	}
}

// all returns the entries sorted by name.
func (r *Registry) all() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.entries), func(a, b *entry) int {
		return strings.Compare(a.name, b.name)
	})
}

// find returns the entry with a name; nil if there is none.
func (r *Registry) find(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[name]
}

// sample returns the current status, and adds it to the history unless the newest sample is younger
// than apart.
func (e *entry) sample(apart time.Duration) (cache.Status, time.Time) {
	status := e.reporter.Status()
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history.add(status, now, apart)
	return status, now
}

// past returns copies of the history's samples, oldest first, and of its changes, newest first.
func (e *entry) past() ([]sample, []change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.samples.all(), e.history.newestFirst()
}

// snapshot returns the current objects; false if the store is not known.
func (e *entry) snapshot() (objects cache.Reader[any], known bool) {
	if e.objects == nil {
		return objects, false
	}
	return e.objects.Snapshot(), true
}
