package cache

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// storeReplacement is a list on its way into a store.
type storeReplacement struct {
	store *keyedStore
	// visible is true for a first list, whose parts show as they come.
	visible bool
	over    bool
	// reset is ReplaceOptions.VersionsReset.
	reset bool

	staged stagedList
	// listed are the keys that stay: taken, unchanged, or present at the source
	// in a state that could not be taken. Until listAll has been called, those that are
	// staged need not be among them.
	listed listedKeys
	// withheld are those of the listed keys whose newest state could not be
	// taken, here or before it came here.
	withheld sets.Set[string]
	// held is what the store holds back of a list that is not visible.
	held heldAside

	// lists are the values of one object, as a table takes them.
	lists [][]string
	// highest is that of what is staged.
	highest highestVersion
}

// refusal is an object that could not be taken, and why.
type refusal struct {
	obj any
	err *ObjectError
}

// untaken is an object that a store could not take, with the cause as it is kept.
type untaken struct {
	err  *ObjectError
	kept error
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
	r := k.newReplacement(!k.replaced() && !options.Aside)
	r.reset = options.VersionsReset
	return r
}

func (k *keyedStore) newReplacement(visible bool) *storeReplacement {
	return &storeReplacement{
		store: k, visible: visible,
		staged: newStagedList(k.storage, !visible), listed: newListedKeys(k.storage.table), withheld: sets.Set[string]{},
		highest: highestVersion{kept: k.storage.highest.kept},
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
	refusals, _ := r.takeItems(context.Background(), list)
	for _, refused := range refusals {
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
	refused, err := r.takeItems(ctx, part.Items)
	if err != nil {
		return nil, err
	}
	for _, obj := range part.Keep {
		if key, err := r.store.keyOf(obj); err == nil {
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

func (m *threadSafeMap) hold(failures []untaken) {
	m.asideMu.Lock()
	defer m.unlockAside()
	for _, failure := range failures {
		m.held.addKept(failure.err, failure.kept)
	}
}

func (r *storeReplacement) hold(failures []untaken) {
	m := r.store.storage
	if r.visible {
		m.hold(failures)
		return
	}
	m.asideMu.Lock()
	defer m.unlockAside()
	for _, failure := range failures {
		r.held.addKept(&m.held, failure.err, failure.kept)
	}
}

// disown implements disowner.
func (r *storeReplacement) disown() {
	m := r.store.storage
	m.asideMu.Lock()
	defer m.unlockAside()
	r.held.undo(&m.held)
}

// withhold notes that a key is listed and its newest state not taken. An earlier
// state that this list brought stays staged: it is newer than the stored one.
func (r *storeReplacement) withhold(key table.Key) {
	found, known := r.store.storage.table.Get(key)
	r.withholdFound(key, found, known)
}

func (r *storeReplacement) withholdFound(key table.Key, found table.Found, known bool) {
	r.listed.add(key)
	if known {
		r.listed.addNumber(found.Number)
	} else {
		// It may get a cell before the end, from somebody else.
		r.listAll()
	}
	r.withheld.Insert(key.String())
}

// takeGone takes objects back, and returns their keys.
func (r *storeReplacement) takeGone(gone []any) (keys []table.Key, unreadable []refusal) {
	for _, obj := range gone {
		key, err := r.store.keyOf(obj)
		if err != nil {
			unreadable = append(unreadable, refusal{obj, rejection(obj, err)})
			continue
		}
		r.listAll()
		r.staged.drop(key)
		r.listed.remove(key)
		r.withheld.Delete(key.String())
		keys = append(keys, key)
	}
	return keys, unreadable
}

// show writes what is staged and removes what is gone, in one step.
func (r *storeReplacement) show(gone []table.Key) (rejected []*ObjectError) {
	all := r.staged.take()
	w := r.store.storage.begin(len(gone), all...)
	for _, s := range all {
		rejected = r.put(w, s, rejected)
	}
	for _, key := range gone {
		w.take(&staged{key: key})
	}
	w.commit(nil)
	return rejected
}

// put writes a prepared state. If it could not be taken after all, because an index was
// added since, that is appended to rejected.
func (r *storeReplacement) put(w storeWrite, s *staged, rejected []*ObjectError) []*ObjectError {
	if s.err != nil {
		found, known := w.table.Find(s.key)
		r.withholdFound(s.key, found, known)
		w.hold(s)
		return append(rejected, s.err)
	}
	r.releaseTaken(w, s.key)
	if old, existed := w.put(s); s.present || existed {
		r.listed.addNumber(old.Number)
	}
	return rejected
}

// putOrdinary is put for what is ordinary. Where the cell is still the one that was found,
// nothing is searched for again.
func (r *storeReplacement) putOrdinary(w storeWrite, e *stagedEntry, values []string) {
	r.releaseTaken(w, e.key)
	w.forget(e.key)
	if e.number != table.NoNumber && r.listed.numbers.valid() {
		w.table.PutAt(e.number, e.key, e.obj, e.mark, values)
		return
	}
	r.lists = r.lists[:0]
	for at := range values {
		r.lists = append(r.lists, values[at:at+1])
	}
	old, _ := w.table.Put(e.key, e.obj, e.mark, r.lists)
	r.listed.addNumber(old.Number)
}

// releaseTaken ends that a key is held back, unless a later state of it was.
func (r *storeReplacement) releaseTaken(w storeWrite, key table.Key) {
	if len(r.withheld) == 0 || !r.withheld.Has(key.String()) {
		w.release(key)
	}
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
	w := r.staged.begin()
	r.store.storage.highest.raise(r.highest.version)
	var rejected []*ObjectError
	for e, values := range r.staged.each() {
		if e.other != nil {
			rejected = r.put(w, e.other, rejected)
		} else {
			r.putOrdinary(w, e, values)
		}
	}
	scope := r.store.scope
	if !r.isAll(w) {
		listed := r.listed.keeper()
		w.keepOnly(func(number uint32, key table.Key) bool { return listed(number, key) || !scope.hasKey(key) })
	}
	w.releaseIf(func(key string) bool { return scope.has(key) && !r.withheld.Has(key) })
	w.commit(func() {
		scope.committed = true
		scope.set(version)
	})
	r.clear()
	var failures []error
	for _, err := range rejected {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// isAll says whether there is nothing but what was listed.
func (r *storeReplacement) isAll(w storeWrite) bool {
	if r.listed.byNumber() {
		return r.listed.numbers.count() == w.table.Len()
	}
	r.listAll()
	return false
}

func (r *storeReplacement) clear() {
	r.staged, r.listed, r.withheld, r.held, r.lists = stagedList{}, listedKeys{}, nil, nil, nil
}

// Abort gives up: what is staged is dropped, what is visible stays.
func (r *storeReplacement) Abort() {
	r.over = true
	r.clear()
}
