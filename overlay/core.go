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

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/loglines"
)

// store is the store below an overlay.
type store interface {
	cache.Indexer
	cache.Snapshotter
}

// core is an Overlay without its type parameter.
type core struct {
	store store
	// views has, by namespace, the views through which namespaces fill the store.
	views     map[string]cache.Store
	keyFunc   cache.KeyFunc
	transform func(any) (any, error)
	maxAge    time.Duration
	onExpired func(Expired)
	// wake receives when deadlines gets its first element.
	wake chan struct{}

	// count is the number of writes. It is 0 only if readers need not look at writes.
	count atomic.Int64

	mu     sync.RWMutex
	writes map[string]*write
	// deadlines has those of all writes that have not expired, removed ones included, the earliest
	// first.
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
	err = callSafely("key function", func() error {
		key, err = c.keyFunc(obj)
		if err == nil && key == "" {
			err = errors.New("key is empty")
		}
		return err
	})
	return key, err
}

// observed implements Overlay.Observed.
func (c *core) observed(obj any) error {
	if isNil(obj) {
		return fmt.Errorf("own write is not shown: %w", errNil)
	}
	key, err := c.key(obj)
	if err != nil {
		return fmt.Errorf("own write of a %T is not shown: %w", obj, err)
	}
	w := &write{key: key, state: stateOf(obj)}
	c.noteOwnChange(change{key: key, uid: w.uid, version: w.version})
	w.object, err = c.transformed(obj)
	if err == nil {
		w.values, err = c.indexed(w.object)
	}
	if err != nil {
		return fmt.Errorf("own write of %q at version %s is not shown: %w", key, w.version, err)
	}
	c.put(key, func(now storeState, before *write) *write {
		w.recordEarlier(now, before)
		w.observed = time.Now()
		if !w.isNewer(now) || before != nil && before.supersedes(w) {
			return nil
		}
		return w
	})
	return nil
}

// observedDelete implements Overlay.ObservedDelete.
func (c *core) observedDelete(key string, uid types.UID) {
	noted := uid != ""
	if noted {
		c.noteOwnChange(change{key: key, uid: uid, deleted: true})
	}
	c.put(key, func(now storeState, before *write) *write {
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
			c.noteOwnChange(change{key: key, uid: shown.uid, deleted: true})
		}
		w := &write{key: key, deleted: true, state: shown, observed: time.Now()}
		w.recordEarlier(now, before)
		return w
	})
}

// put adds the write that decide returns, if any. decide gets the store's state and the currently
// shown write. It is called without the lock, and again if that write has changed meanwhile.
func (c *core) put(key string, decide func(now storeState, before *write) *write) {
	c.expire()
	for {
		before := c.find(key)
		now := c.storeStateOf(key)
		shown := before
		if before != nil && !before.isNewer(now) {
			shown = nil
		}
		w := decide(now, shown)
		if w == nil || c.replace(before, w) {
			return
		}
	}
}

// replace replaces the write before, which may be nil, by w. It returns false if before is not the
// current write any more.
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
	c.deadlines = append(c.deadlines, deadline{w.observed.Add(c.maxAge), w.key, w.number})
	if len(c.deadlines) == 1 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// transformed calls the transform with a copy of the object, if it can be copied.
func (c *core) transformed(obj any) (out any, err error) {
	if c.transform == nil {
		return obj, nil
	}
	err = callSafely("transform", func() error {
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
	err = callSafely(fmt.Sprintf("index %q", name), func() error {
		values, err = function(obj)
		return err
	})
	return values, err
}

// find returns the write of a key, obsolete or not.
func (c *core) find(key string) *write {
	if c.count.Load() == 0 {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.writes[key]
}

// storeStateOf returns the store's state of a key. The version is read before the content, so the
// content is not older.
func (c *core) storeStateOf(key string) storeState {
	applied := c.namespaceVersion(key)
	now := c.store.Snapshot()
	return storeStateIn(now, key, applied)
}

func storeStateIn(now cache.Reader[any], key, applied string) storeState {
	if applied == "" {
		applied = now.ResourceVersion()
	}
	if obj, exists := now.Lookup(key); exists {
		return storeState{stateOf(obj), applied}
	}
	return storeState{applied: applied}
}

// namespaceVersion returns the applied version of a key's namespace, empty if the namespace has
// none of its own.
func (c *core) namespaceVersion(key string) string {
	if len(c.views) == 0 {
		return ""
	}
	namespace, _, _ := strings.Cut(key, "/")
	if part, exists := c.views[namespace]; exists {
		return part.LastStoreSyncResourceVersion()
	}
	return ""
}

// get returns the object under a key, nil if there is none or a write hides it, or the error of a
// quarantined object. The store is read once: between two reads the object may be repaired.
func (c *core) get(key string) (obj any, err error) {
	w := c.shown(key)
	if w != nil {
		return w.object, nil
	}
	obj, _, err = c.store.GetByKey(key)
	return obj, err
}

// shown returns the write of a key if it is shown instead of the store's object. Readers look for
// writes first and read the store afterwards. Unless it expires, a write is removed only once the
// store is as new, so no reader sees an older state after a newer one.
func (c *core) shown(key string) *write {
	w := c.find(key)
	if w == nil {
		return nil
	}
	if now := c.storeStateOf(key); c.hasExpired(w, time.Now()) || !w.isNewer(now) {
		c.remove(now, w)
		return nil
	}
	return w
}

func (c *core) hasExpired(w *write, now time.Time) bool {
	return !now.Before(w.observed.Add(c.maxAge))
}

// remove removes a write, and reports it if the store has not caught up with it.
func (c *core) remove(now storeState, w *write) {
	c.mu.Lock()
	removed := c.writes[w.key] == w
	if removed {
		delete(c.writes, w.key)
		c.count.Store(int64(len(c.writes)))
	}
	c.mu.Unlock()
	if removed && w.isNewer(now) {
		c.onExpired(
			Expired{
				Key:             w.key,
				UID:             w.uid,
				ResourceVersion: w.version,
				Deleted:         w.deleted,
				Age:             time.Since(w.observed),
			},
		)
	}
}

// expire removes expired writes. It returns when the next one expires, and false if there is none.
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
			c.remove(c.storeStateOf(w.key), w)
		}
	}
}

// confirm removes a write that the watch has confirmed or overtaken. It is called with each
// notification of the informer. The notification decides if versions are not ordered, since the
// store may have passed a state between two reads.
func (c *core) confirm(key string, seen state, deleted bool) {
	w := c.find(key)
	if w == nil {
		return
	}
	now := c.storeStateOf(key)
	_, ordered := compare(now.applied, w.version)
	if w.isNewer(now) && (ordered || !w.isConfirmedBy(seen, deleted)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes[key] == w {
		delete(c.writes, key)
		c.count.Store(int64(len(c.writes)))
	}
}

// pending returns the number of shown writes.
func (c *core) pending() int { return len(c.view().writes) }

// logExpired is the default of Options.OnExpired.
func logExpired(e Expired) {
	logger := loglines.Background()
	logger.Error(nil, "The watch has not delivered an own write in time",
		"key", e.Key, "resourceVersion", e.ResourceVersion, "deleted", e.Deleted, "age", e.Age)
}
