package cache

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// storeReplacement is a list on its way into a store.
type storeReplacement struct {
	store *keyedStore
	// visible is true for a first list, whose parts show as they come.
	visible bool
	over    bool

	// staged are the writes still to be done, by key.
	staged map[string]*staged
	// listed are the keys that stay: taken, unchanged, or present at the source
	// in a state that could not be taken.
	listed sets.Set[string]
	// withheld are those of the listed keys whose newest state could not be
	// taken, here or before it came here.
	withheld sets.Set[string]
	// held is what the store holds back of a list that is not visible.
	held heldAside
}

// refusal is an object that could not be taken, and why.
type refusal struct {
	obj any
	err *ObjectError
}

// failure is the error for callers of the classic methods.
func (r refusal) failure() error {
	if r.err.Stage == StageKey || r.err.Stage == StageMetadata {
		return KeyError{r.obj, r.err.Err}
	}
	return r.err
}

// errReplacementOver is returned by the Replacement of a store after it was
// committed or aborted.
var errReplacementOver = errors.New("replacement is over: it was committed or aborted")

// BeginReplace starts a replacement. See Replacer.
func (k *keyedStore) BeginReplace(options ReplaceOptions) Replacement {
	return k.newReplacement(!k.replaced() && !options.Aside)
}

func (k *keyedStore) newReplacement(visible bool) *storeReplacement {
	return &storeReplacement{
		store: k, visible: visible,
		staged: map[string]*staged{}, listed: sets.Set[string]{}, withheld: sets.Set[string]{},
	}
}

// replaced says whether a replacement has been committed.
func (k *keyedStore) replaced() bool {
	k.storage.mu.RLock()
	defer k.storage.mu.RUnlock()
	return k.scope.committed
}

// Replace makes list the whole content.
func (k *keyedStore) Replace(list []any, resourceVersion string) error {
	r := k.newReplacement(false)
	var failures []error
	for _, refused := range r.takeItems(list) {
		failures = append(failures, refused.failure())
	}
	return errors.Join(append(failures, r.publish(resourceVersion))...)
}

// Part takes some of the listed objects. It does not wait.
func (r *storeReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.over {
		return nil, errReplacementOver
	}
	refused := r.takeItems(part.Items)
	for _, obj := range part.Keep {
		if key, err := keyOf(r.store.keyFunc, obj); err == nil {
			r.withhold(key)
		}
	}
	gone, unreadable := r.takeGone(part.Gone)
	var rejected []*ObjectError
	for _, refused := range slices.Concat(refused, unreadable) {
		rejected = append(rejected, refused.err)
	}
	if r.visible {
		rejected = append(rejected, r.show(gone)...)
	}
	return rejected, nil
}

// takeItems prepares the items and returns those that cannot be taken.
func (r *storeReplacement) takeItems(items []any) []refusal {
	var refused []refusal
	var held []*ObjectError
	for _, obj := range items {
		key, err := keyOf(r.store.keyFunc, obj)
		if err != nil {
			refused = append(refused, refusal{obj, rejection(obj, err)})
			continue
		}
		received := receivedOf(obj)
		if r.unchanged(key, received) {
			r.list(key)
			continue
		}
		s := r.store.prepare(key, obj, received, r.store.transformer)
		if s.err != nil {
			r.withhold(key)
			refused = append(refused, refusal{obj, s.err})
			held = append(held, s.err)
			continue
		}
		r.staged[key] = s
		r.list(key)
	}
	if len(held) > 0 {
		r.hold(held)
	}
	return refused
}

func (m *threadSafeMap) hold(errs []*ObjectError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range errs {
		m.held.add(err)
	}
}

func (r *storeReplacement) hold(failures []*ObjectError) {
	m := r.store.storage
	if r.visible {
		m.hold(failures)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, failure := range failures {
		r.held.add(&m.held, failure)
	}
}

// disown implements disowner.
func (r *storeReplacement) disown() {
	m := r.store.storage
	m.mu.Lock()
	defer m.mu.Unlock()
	r.held.undo(&m.held)
}

// unchanged compares with the newest state of the key: one of this list, if it
// came more than once, or the stored one.
func (r *storeReplacement) unchanged(key string, received Received) bool {
	if s := r.staged[key]; s != nil {
		return s.entry != nil && received.unchanged(s.entry.received)
	}
	have, known := r.store.Received(key)
	return known && received.unchanged(have)
}

// list notes that a key is listed and its newest state taken.
func (r *storeReplacement) list(key string) {
	r.listed.Insert(key)
	r.withheld.Delete(key)
}

// withhold notes that a key is listed and its newest state not taken. An earlier
// state that this list brought stays staged: it is newer than the stored one.
func (r *storeReplacement) withhold(key string) {
	r.listed.Insert(key)
	r.withheld.Insert(key)
}

// takeGone takes objects back, and returns their keys.
func (r *storeReplacement) takeGone(gone []any) (keys []string, unreadable []refusal) {
	for _, obj := range gone {
		key, err := keyOf(r.store.keyFunc, obj)
		if err != nil {
			unreadable = append(unreadable, refusal{obj, rejection(obj, err)})
			continue
		}
		delete(r.staged, key)
		r.listed.Delete(key)
		r.withheld.Delete(key)
		keys = append(keys, key)
	}
	return keys, unreadable
}

// show writes what is staged and removes what is gone, in one step.
func (r *storeReplacement) show(gone []string) []*ObjectError {
	m := r.store.storage
	all := slices.Collect(maps.Values(r.staged))
	r.staged = map[string]*staged{}
	m.lockFor(all...)
	defer m.mu.Unlock()
	rejected := r.putLocked(all)
	for _, key := range gone {
		m.takeLocked(&staged{key: key})
	}
	return rejected
}

// putLocked writes prepared states and returns those that could not be taken
// after all, because an index was added since.
func (r *storeReplacement) putLocked(all []*staged) (rejected []*ObjectError) {
	m := r.store.storage
	for _, s := range all {
		switch {
		case s.err != nil:
			r.withhold(s.key)
			m.held.add(s.err)
			rejected = append(rejected, s.err)
		case r.withheld.Has(s.key):
			// A later state of the same key was held back: so it stays.
			m.putLocked(s)
		default:
			m.takeLocked(s)
		}
	}
	return rejected
}

// Commit ends the list. The error, if any, joins an *ObjectError for each object
// that could not be taken although its part could, because an index was added
// since; everything else is as without it.
func (r *storeReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	return r.publish(version)
}

// publish writes what is still staged, removes what was not listed and sets the
// version, in one step for readers. What is outside the scope stays as it is.
func (r *storeReplacement) publish(version string) error {
	r.over = true
	m := r.store.storage
	all := slices.Collect(maps.Values(r.staged))
	m.lockFor(all...)
	defer m.mu.Unlock()
	var failures []error
	for _, rejected := range r.putLocked(all) {
		failures = append(failures, rejected)
	}
	scope := r.store.scope
	m.keepOnlyLocked(func(key string) bool { return scope.lacks(key) || r.listed.Has(key) })
	m.held.releaseIf(func(key string) bool { return scope.has(key) && !r.withheld.Has(key) })
	scope.version, scope.committed = version, true
	r.staged, r.listed, r.withheld, r.held = nil, nil, nil, nil
	return errors.Join(failures...)
}

// Abort gives up: what is staged is dropped, what is visible stays.
func (r *storeReplacement) Abort() {
	r.over = true
	r.staged, r.listed, r.withheld, r.held = nil, nil, nil, nil
}
