package cache

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// storeReplacement is a list on its way into a store. The store marks what the list has confirmed;
// what is not marked at the end is gone.
type storeReplacement struct {
	in intake
	// visible is true for a first list, whose parts show as they come. Those of another are staged
	// until Commit.
	visible bool
	over    bool
	// reset is ReplaceOptions.VersionsReset.
	reset  bool
	marks  *listMarks
	staged []change
	// unchecked is true for a list that may turn out to be too old: refused is what it has brought
	// and could not be taken, which is quarantined at Commit.
	unchecked bool
	refused   []change
	// withheld are the listed keys whose newest state could not be taken, here or before it came
	// here: what is stored and what is quarantined under them stays.
	withheld sets.Set[string]
	// kept are the keys of the part's Keep: they count after its items.
	kept []table.Key
	// some are the changes that are being prepared.
	some []change
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

// errReplacementOver is returned by the Replacement of a store after it was committed or aborted.
var errReplacementOver = errors.New("replacement is over: it was committed or aborted")

// BeginReplace starts a replacement. See Replacer.
func (k *keyedStore) BeginReplace(options ReplaceOptions) Replacement {
	return k.intake().beginReplace(options)
}

func (in intake) beginReplace(options ReplaceOptions) *storeReplacement {
	return &storeReplacement{
		in: in, visible: !in.replaced() && !options.Aside, unchecked: options.Aside, reset: options.VersionsReset,
		marks: in.storage.beginList(), withheld: sets.Set[string]{},
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
	r := k.intake().beginReplace(ReplaceOptions{})
	r.visible = false
	refused, _ := r.takeItems(context.Background(), list)
	refused = append(refused, r.publish(resourceVersion)...)
	var failures []error
	for _, one := range refused {
		failures = append(failures, one.failure())
	}
	return errors.Join(failures...)
}

// Part takes some of the listed objects. It does not wait.
func (r *storeReplacement) Part(ctx context.Context, part ReplacementPart) (rejected []*ObjectError, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.over {
		return nil, errReplacementOver
	}
	r.kept = nil
	for _, obj := range part.Keep {
		if key, err := r.in.keyOf(obj); err == nil {
			r.kept = append(r.kept, key)
			r.withheld.Insert(key.String())
		}
	}
	refused, err := r.takeItems(ctx, part.Items)
	if err != nil {
		return nil, err
	}
	refused = append(refused, r.takeGone(part.Gone)...)
	for _, one := range refused {
		rejected = append(rejected, one.err)
	}
	return rejected, nil
}

// takeItems takes items, as many at a time as are written directly. It returns those that were
// refused, and fails where ctx ends in between.
func (r *storeReplacement) takeItems(ctx context.Context, items []any) (refused []refusal, err error) {
	var values valueRoom
	if r.visible { // what is staged keeps its own
		values = r.in.room()
		defer values.clear()
	}
	for len(items) > 0 {
		n := min(len(items), directly)
		r.some = slices.Grow(r.some[:0], n)[:n]
		for i, obj := range items[:n] {
			r.some[i] = change{kind: Replaced, object: obj, values: values.of(i)}
		}
		if refused, err = r.take(ctx, items[:n], refused); err != nil {
			return nil, err
		}
		items = items[n:]
	}
	return refused, nil
}

// take takes the changes of some, made of the items, and appends what was refused.
func (r *storeReplacement) take(ctx context.Context, items []any, refused []refusal) ([]refusal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer clear(r.some)
	r.look()
	for i := range r.some {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c := &r.some[i]
		r.in.prepare(c, c.existed)
		if c.key == (table.Key{}) {
			refused = append(refused, refusal{items[i], c.err})
			continue
		}
		r.note(c)
	}
	if r.visible {
		return r.show(items, refused), nil
	}
	for i := range r.some {
		switch c := &r.some[i]; {
		case c.unchanged || c.key == (table.Key{}):
		case c.err != nil:
			r.refuse(c)
			refused = append(refused, refusal{items[i], c.err})
		default:
			r.staged = append(r.staged, *c)
		}
	}
	return refused, nil
}

// refuse quarantines what a list that is not visible has brought, or will at Commit.
func (r *storeReplacement) refuse(c *change) {
	m := r.in.storage
	if r.unchecked {
		r.refused = append(r.refused, *c)
		c.err.repeated = m.quarantined.knows(c.err)
		return
	}
	m.quarantined.add("", c.err, c.kept)
}

// look finds the keys of some, and which of them are unchanged.
func (r *storeReplacement) look() {
	var there [directly]table.Found
	m := r.in.storage
	r.in.lookInto(r.some, there[:len(r.some)])
	// Where versions are given out again, the same one says nothing.
	var differs [directly]bool
	for i := range r.some {
		differs[i] = r.reset && (r.in.transform != nil || !reflect.DeepEqual(there[i].Object, r.some[i].object))
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	for i := range r.some {
		c := &r.some[i]
		if c.err != nil || !c.existed {
			continue
		}
		found, exists := m.table.Get(c.key)
		if c.existed = exists; !exists {
			continue
		}
		held := m.isQuarantined(c.key) // then that was received last
		if c.unchanged = !held && !differs[i] && (r.visible || !r.marks.added.has(found.Number)) && !r.marks.changed.has(found.Number) && c.origin.Same(m.table.Origin(found.Number)); c.unchanged {
			r.marks.confirmed.add(found.Number)
		} else {
			r.marks.changed.add(found.Number)
		}
	}
}

// note notes whether the newest state of a key could be taken.
func (r *storeReplacement) note(c *change) {
	switch {
	case c.err != nil:
		r.withheld.Insert(c.key.String())
	case len(r.withheld) > 0 && !slices.Contains(r.kept, c.key):
		r.withheld.Delete(c.key.String())
	}
}

// show writes what was prepared.
func (r *storeReplacement) show(items []any, refused []refusal) []refusal {
	m := r.in.storage
	initial := !r.in.replaced()
	var noted [directly]bool
	for i := range r.some {
		noted[i] = r.some[i].err != nil
	}
	w := m.begin(r.some)
	for i := range r.some {
		c := &r.some[i]
		c.superseded = len(r.withheld) > 0 && c.err == nil && r.withheld.Has(c.key.String())
		if w.apply(c); c.applied && c.kind != Deleted {
			r.marks.confirmed.add(c.number)
			r.marks.changed.remove(c.number) // it is what is stored now
		}
		if c.err != nil && c.key != (table.Key{}) {
			if !noted[i] { // an index was added since
				r.withheld.Insert(c.key.String())
			}
			refused = append(refused, refusal{items[i], c.err})
		}
	}
	w.commit(versionMove{scope: r.in.scope})
	r.in.published(r.some, initial)
	return refused
}

// takeGone takes objects back that were listed before.
func (r *storeReplacement) takeGone(gone []any) (refused []refusal) {
	for _, obj := range gone {
		r.some = append(r.some[:0], change{kind: Deleted, object: obj})
		r.in.look(r.some)
		c := &r.some[0]
		if c.err != nil {
			refused = append(refused, refusal{obj, c.err})
			continue
		}
		r.in.prepare(c, c.existed || len(r.staged) > 0)
		r.withheld.Delete(c.key.String())
		final := c.finalErr
		if r.visible {
			r.show(gone, nil)
		} else {
			r.staged = append(r.staged, *c)
			r.markChanged(c.key)
		}
		if final != nil {
			refused = append(refused, refusal{obj, final})
		}
	}
	clear(r.some)
	return refused
}

// markChanged notes that the list has brought something else than what is stored.
func (r *storeReplacement) markChanged(key table.Key) {
	m := r.in.storage
	m.writing.Lock()
	defer m.writing.Unlock()
	if found, exists := m.table.Get(key); exists {
		r.marks.changed.add(found.Number)
	}
}

// Commit ends the list. The error, if any, joins an *ObjectError for each object that could not be
// taken although its part could, because an index was added since.
func (r *storeReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	var failures []error
	for _, refused := range r.publish(version) {
		failures = append(failures, refused.err)
	}
	return errors.Join(failures...)
}

// publish writes what is staged, removes what was not listed and sets the version, in one step for
// readers. What is outside the scope stays as it is.
func (r *storeReplacement) publish(version string) (refused []refusal) {
	r.over = true
	m, scope := r.in.storage, r.in.scope
	initial := !r.in.replaced()
	m.lockIndexed(r.staged)
	m.endListLocked(r.marks)
	listed := len(r.staged)
	r.staged = append(r.staged, r.goneLocked()...)
	w := storeWrite{m, m.table.Begin(m.weightOf(r.staged))}
	for i := range r.staged {
		c := &r.staged[i]
		if have, exists := w.find(c.key); exists && c.kind != Deleted && c.err == nil && have.Same(c.origin) && !r.reset && !m.isQuarantined(c.key) {
			continue // the list has brought it twice
		}
		if i >= listed && r.marks.confirmed.has(c.number) {
			continue // somebody else has added it meanwhile, and the list has brought it too
		}
		c.superseded = len(r.withheld) > 0 && r.withheld.Has(c.key.String())
		w.apply(c)
		if c.applied && c.kind != Deleted {
			r.marks.confirmed.add(c.number)
		}
		if c.err != nil {
			r.withheld.Insert(c.key.String())
			refused = append(refused, refusal{c.object, c.err})
		}
	}
	for i := range r.refused {
		if c := &r.refused[i]; r.withheld.Has(c.key.String()) {
			w.hold(c)
		}
	}
	m.quarantined.releaseIf(func(key string) bool { return scope.has(key) && !r.withheld.Has(key) })
	w.commit(versionMove{scope: scope, version: version, listed: true})
	r.in.published(r.staged, initial) // at once: a handler that joins tells writes apart by number
	r.clear()
	return refused
}

// goneLocked are the deletions of what is stored and was not listed. The caller holds the store's
// writing.
func (r *storeReplacement) goneLocked() (gone []change) {
	m := r.in.storage
	if listed := r.marks.count(); listed == m.table.Len() {
		return nil
	}
	m.table.EachKey(func(number uint32, key table.Key) {
		if r.marks.has(number) || !r.in.scope.hasKey(key) || len(r.withheld) > 0 && r.withheld.Has(key.String()) {
			return
		}
		gone = append(gone, change{kind: Deleted, key: key, number: number})
	})
	return gone
}

func (r *storeReplacement) clear() {
	r.staged, r.refused, r.marks, r.withheld, r.some = nil, nil, nil, nil, nil
}

// Abort gives up: what is staged is dropped, what is visible stays.
func (r *storeReplacement) Abort() {
	if r.over {
		return
	}
	r.over = true
	m := r.in.storage
	m.writing.Lock()
	m.endListLocked(r.marks)
	m.writing.Unlock()
	r.clear()
}
