package overlay

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// store is what an overlay lies over.
type store interface {
	cache.Indexer
	cache.Snapshotter
}

// core is an overlay without its type.
type core struct {
	store store
	// parts are the views of namespaces that fill the store, by namespace.
	parts     map[string]cache.Store
	keyFunc   cache.KeyFunc
	transform func(any) (any, error)
	maxAge    time.Duration
	onExpired func(Expired)
	// wake has an element when Run has a first deadline to wait for.
	wake chan struct{}

	// count is how many writes there are. It is 0 only if a reader need not look at them.
	count atomic.Int64

	mu     sync.RWMutex
	writes map[string]*write
	// deadlines are those of all writes that have not expired, whether or not they are still shown. The first one is the
	// earliest.
	deadlines []deadline
	number    uint64
	filters   []*filter
}

// deadline is when a write expires.
type deadline struct {
	at     time.Time
	key    string
	number uint64
}

var errNil = errors.New("object is nil")

func isNil(obj any) bool {
	value := reflect.ValueOf(obj)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// key calls the key function.
func (c *core) key(obj any) (key string, err error) {
	err = called("key function", func() error {
		if key, err = c.keyFunc(obj); err == nil && key == "" {
			err = errors.New("key is empty")
		}
		return err
	})
	return key, err
}

// observed shows an object. See Overlay.Observed.
func (c *core) observed(obj any) error {
	if isNil(obj) {
		return fmt.Errorf("own write is not shown: %w", errNil)
	}
	key, err := c.key(obj)
	if err != nil {
		return fmt.Errorf("own write of a %T is not shown: %w", obj, err)
	}
	w := &write{key: key, state: stateOf(obj)}
	c.note(change{key: key, uid: w.uid, version: w.version})
	if w.object, err = c.transformed(obj); err == nil {
		w.values, err = c.indexed(w.object)
	}
	if err != nil {
		return fmt.Errorf("own write of %q at version %s is not shown: %w", key, w.version, err)
	}
	c.put(key, func(now sight, before *write) *write {
		w.follow(now, before)
		if w.observed = time.Now(); !w.isNewer(now) || before != nil && before.covers(w) {
			return nil
		}
		return w
	})
	return nil
}

// observedDelete hides an object. See Overlay.ObservedDelete.
func (c *core) observedDelete(key string, uid types.UID) {
	noted := uid != ""
	if noted {
		c.note(change{key: key, uid: uid, deleted: true})
	}
	c.put(key, func(now sight, before *write) *write {
		shown := now.state
		if before != nil {
			shown = before.state
			shown.exists = !before.deleted
		}
		if !shown.exists || !shown.sameObject(uid) {
			return nil
		}
		if !noted {
			noted = true
			c.note(change{key: key, uid: shown.uid, deleted: true})
		}
		w := &write{key: key, deleted: true, state: shown, observed: time.Now()}
		w.follow(now, before)
		return w
	})
}

// put shows the write that decide returns, if any. decide gets what the store has, and the write that is shown now. It
// is called again if that has changed meanwhile, never under the lock.
func (c *core) put(key string, decide func(now sight, before *write) *write) {
	c.expire()
	for {
		before := c.find(key)
		now, shown := c.look(key), before
		if before != nil && !before.isNewer(now) {
			shown = nil
		}
		w := decide(now, shown)
		if w == nil || c.replace(before, w) {
			return
		}
	}
}

// replace puts a write in the place of another, or of none; false if that is not there any more.
func (c *core) replace(before, w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes[w.key] != before {
		return false
	}
	c.number++
	w.number = c.number
	c.writes[w.key] = w
	c.count.Store(int64(len(c.writes)))
	if c.deadlines = append(c.deadlines, deadline{w.observed.Add(c.maxAge), w.key, w.number}); len(c.deadlines) == 1 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// transformed calls the transform with a copy of an object, if it can be copied.
func (c *core) transformed(obj any) (out any, err error) {
	if c.transform == nil {
		return obj, nil
	}
	err = called("transform", func() error {
		if copied, ok := obj.(runtime.Object); ok {
			obj = copied.DeepCopyObject()
		}
		out, err = c.transform(obj)
		return err
	})
	if isNil(out) {
		out = nil
	}
	return out, err
}

// indexed returns an object's values for each index of the store.
func (c *core) indexed(obj any) (map[string][]string, error) {
	if obj == nil {
		return nil, nil
	}
	all := map[string][]string{}
	for name, function := range c.store.GetIndexers() {
		values, err := valuesOf(name, function, obj)
		if err != nil {
			return nil, err
		}
		all[name] = values
	}
	return all, nil
}

func valuesOf(name string, function cache.IndexFunc, obj any) (values []string, err error) {
	err = called(fmt.Sprintf("index %q", name), func() error {
		values, err = function(obj)
		return err
	})
	return values, err
}

// find returns the write of a key, be it newer than the store or not.
func (c *core) find(key string) *write {
	if c.count.Load() == 0 {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.writes[key]
}

// look returns what the store has of a key. The version of a namespace is read first: the content is not older.
func (c *core) look(key string) sight {
	applied := c.partVersion(key)
	now := c.store.Snapshot()
	return sightOf(now, key, applied)
}

func sightOf(now cache.Reader[any], key, applied string) sight {
	if applied == "" {
		applied = now.ResourceVersion()
	}
	if obj, exists := now.Lookup(key); exists {
		return sight{stateOf(obj), applied}
	}
	return sight{applied: applied}
}

// partVersion is the applied version of a key's namespace, empty if that has none of its own.
func (c *core) partVersion(key string) string {
	if len(c.parts) == 0 {
		return ""
	}
	namespace, _, _ := strings.Cut(key, "/")
	if part, exists := c.parts[namespace]; exists {
		return part.LastStoreSyncResourceVersion()
	}
	return ""
}

// shown returns the write of a key if it is to be shown instead of the store's object. Readers look for writes before they read
// the store, which has what a write was removed for: no reader sees an older state after a newer one.
func (c *core) shown(key string) *write {
	w := c.find(key)
	if w == nil {
		return nil
	}
	if now := c.look(key); c.hasExpired(w, time.Now()) || !w.isNewer(now) {
		c.remove(now, w)
		return nil
	}
	return w
}

func (c *core) hasExpired(w *write, now time.Time) bool { return !now.Before(w.observed.Add(c.maxAge)) }

// remove removes a write, and reports it if it is still newer than the store.
func (c *core) remove(now sight, w *write) {
	c.mu.Lock()
	removed := c.writes[w.key] == w
	if removed {
		delete(c.writes, w.key)
		c.count.Store(int64(len(c.writes)))
	}
	c.mu.Unlock()
	if removed && w.isNewer(now) {
		c.onExpired(Expired{Key: w.key, UID: w.uid, ResourceVersion: w.version, Deleted: w.deleted, Age: time.Since(w.observed)})
	}
}

// expire removes the writes that have expired, and returns when the next one will; false if there is none.
func (c *core) expire() (next time.Time, exists bool) {
	for {
		c.mu.Lock()
		if len(c.deadlines) == 0 {
			c.deadlines = nil
			c.mu.Unlock()
			return time.Time{}, false
		}
		first := c.deadlines[0]
		if time.Now().Before(first.at) {
			c.mu.Unlock()
			return first.at, true
		}
		c.deadlines[0] = deadline{}
		c.deadlines = c.deadlines[1:]
		w := c.writes[first.key]
		c.mu.Unlock()
		if w != nil && w.number == first.number {
			c.remove(c.look(w.key), w)
		}
	}
}

// saw removes a write that the watch has confirmed or overtaken. It is called with what handlers are notified of, which
// decides where versions are not ordered: the store may have passed through a state unseen.
func (c *core) saw(key string, seen state, deleted bool) {
	w := c.find(key)
	if w == nil {
		return
	}
	now := c.look(key)
	sameUID := seen.uid == w.uid
	switch {
	case deleted && sameUID && (w.uid != "" || w.deleted):
	case !deleted && !w.deleted && sameUID && seen.version == w.version:
	case w.isNewer(now):
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes[key] == w {
		delete(c.writes, key)
		c.count.Store(int64(len(c.writes)))
	}
}

// pending returns how many writes are shown.
func (c *core) pending() int { return len(c.view().writes) }

// logExpired is the default of Options.OnExpired.
func logExpired(e Expired) {
	klog.Background().Error(nil, "The watch has not delivered an own write in time", "key", e.Key, "resourceVersion", e.ResourceVersion,
		"deleted", e.Deleted, "age", e.Age)
}
