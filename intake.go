package cache

import (
	"context"
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// change is one change of one object on its way from a source into a store and on to handlers. It
// is the only thing that travels: each step fills in what it knows.
type change struct {
	// kind and object are as received. An object that a transform does not want is Deleted from
	// then on; the object of a deletion is its final state, a tombstone, or nil for one to be made.
	kind   DeltaType
	object any
	// sent is the object as it came into a queue.
	sent any
	// says is what the object said of itself when it was received.
	says metadata
	// version becomes the store's together with the change; empty leaves that where it is.
	version string
	// key and origin follow from what the object says.
	key    table.Key
	origin table.Origin

	// values are those of each index, by position, for the index functions of set; built are those
	// for indexes that were being added.
	values [][]string
	set    *indexerSet
	built  []staging
	// same is true for a Sync of the very object that is stored: there is nothing to write, and
	// an index must not see what a reader may have done to the object.
	same bool
	// unchanged is true for a listed object in the state that is stored.
	unchanged bool
	// superseded is true for a listed object of which the list has brought a later state that could
	// not be taken: what is quarantined stays.
	superseded bool
	// err says why the change could not be applied, kept is its cause as it is kept. finalErr
	// says why the final state of an applied deletion could not be used.
	err, finalErr *ObjectError
	kept          error

	// applied says that the store has changed. old is what was there before, if existed;
	// recreated says that it was another object of the same name.
	applied, existed, recreated bool
	old                         any
	// number is that of the object's cell, if it was put.
	number uint32
}

// staging is a change's values for one index build.
type staging struct {
	build  *indexBuild
	result built
}

func (c *change) fail(stage Stage, err error) {
	c.err = c.objectError(stage, err)
	c.err.object, _ = identityOf(c.object)
	c.kept = withoutStack(err)
}

func (c *change) objectError(stage Stage, err error) *ObjectError {
	return &ObjectError{Key: c.key.String(), ResourceVersion: c.says.received.ResourceVersion, Stage: stage, Err: err}
}

// failure returns err as an error that is nil where there is none.
func (c *change) failure() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// index computes what is missing of the values for the indexers of set.
func (c *change) index(set *indexerSet) {
	if c.kind == Deleted || c.err != nil || c.set == set || c.same || c.unchanged {
		return
	}
	values, err := set.valuesFrom(c.values, c.object, nil)
	if err != nil {
		c.fail(StageIndex, err)
		return
	}
	c.values, c.set = values, set
	before := c.built
	c.built = nil
	for _, build := range set.builds {
		c.built = append(c.built, c.stagingFor(build, before))
	}
}

func (c *change) stagingFor(build *indexBuild, before []staging) staging {
	for _, known := range before {
		if known.build == build {
			return known
		}
	}
	return staging{build: build, result: build.compute(c.object)}
}

// taker is implemented by our stores, informers and queue: it takes changes from a reflector.
type taker interface {
	// takeChanges takes changes in their order: at least the first, unless there is an error. The
	// caller has read what their objects say. It returns how many it has taken, the refused ones
	// included, whose err says why and whose versions count. The error is that of the change
	// after those, a *RegressionError for one that is older than what was last received of its key,
	// or the context's. Readers see a change and its version both or neither.
	takeChanges(ctx context.Context, changes []change) (taken int, err error)
}

// entryKeeper is implemented by our stores and queue, for events that come as part of a list.
type entryKeeper interface {
	// eventKey is the key of an event's object.
	eventKey(obj any) (table.Key, error)
	// olderThanEntry is the error of an event that is older than the state last received of its
	// key, nil if it is not, or if that is not known.
	olderThanEntry(key table.Key, received Received) error
}

// intake is the one way into a store: it decides what becomes of each change, be it of a watch, a
// list, a queue or a caller. It calls the user's functions before the write, without a lock.
type intake struct {
	*keyedStore
	transform TransformFunc
	// publish, if not nil, is told what was applied, after each write.
	publish func(changes []change, initial bool)
	// values is kept from one batch to the next, if this is.
	values valueRoom
}

// room is room for the values of the indexes there are, empty.
func (in *intake) room() valueRoom {
	if indexes := len(in.storage.indexers.Load().names); indexes != in.values.each {
		in.values = newValueRoom(directly, indexes)
	}
	return in.values
}

func (k *keyedStore) intake() intake { return intake{keyedStore: k, transform: k.transformer} }

// takeChanges implements taker.
func (k *keyedStore) takeChanges(ctx context.Context, changes []change) (int, error) {
	in := k.intake()
	return in.takeChanges(ctx, changes)
}

// takeChanges implements taker. One goroutine at a time calls it.
func (in *intake) takeChanges(ctx context.Context, changes []change) (taken int, err error) {
	changes = changes[:min(len(changes), directly)]
	if in.transform != nil {
		// It may look up what came before: each change is applied, and handlers are told, before
		// the next one is transformed.
		changes = changes[:1]
	}
	in.look(changes)
	if in.transform != nil {
		if err := in.storage.goesBack(&changes[0]); err != nil {
			return 0, err
		}
	}
	values := in.room()
	defer values.clear()
	for i := range changes {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		changes[i].values = values.of(i)
		in.prepare(&changes[i], changes[i].existed)
	}
	move := versionMove{scope: in.scope}
	w := in.storage.begin(changes)
	for ; taken < len(changes); taken++ {
		c := &changes[taken]
		if err = w.regression(c); err != nil {
			break
		}
		if c.version != "" {
			move.version = c.version
		}
		w.apply(c)
	}
	w.commit(move)
	in.published(changes[:taken], false)
	return taken, err
}

// look finds the keys of changes, and notes in existed whether there is anything under them.
func (in *intake) look(changes []change) {
	var there [directly]table.Found
	in.lookInto(changes, there[:len(changes)])
}

// lookInto is look that returns what is there. It reads what is in the store of several together:
// the processor waits for that memory once.
func (in *intake) lookInto(changes []change, there []table.Found) {
	var keys [directly]table.Key
	for i := range changes {
		c := &changes[i]
		in.identify(c)
		keys[i] = c.key
	}
	in.storage.table.GetAll(keys[:len(changes)], there)
	for i := range changes {
		changes[i].existed = there[i].Object != nil
	}
}

// identify gives a change its key and origin, or its err says why it has none.
func (in *intake) identify(c *change) {
	if !c.says.readable {
		_ = c.says.read(c.object)
	}
	key, err := in.keyFrom(c.object, &c.says)
	if err != nil {
		c.err = rejection(c.object, err)
		return
	}
	c.key, c.origin = key, originOf(c.says.received)
}

func originOf(received Received) table.Origin {
	return table.OriginOf(received.ResourceVersion, string(received.UID))
}

// prepare does what needs the user's functions. A deletion's final state is transformed only if
// there is something to delete and somebody to be told.
func (in *intake) prepare(c *change, exists bool) {
	switch {
	case c.err != nil || c.unchanged:
		return
	case c.kind == Deleted:
		in.prepareDeletion(c, exists)
		return
	case in.transform != nil:
		if c.transform(in.keyFunc, in.transform); c.err != nil || c.kind == Deleted {
			return
		}
		// What was given to the transform is not to be kept for its name.
		var m metadata
		if m.read(c.object); m.named() == c.key {
			c.key = m.named()
		}
	}
	c.index(in.storage.indexers.Load())
}

func (in *intake) prepareDeletion(c *change, exists bool) {
	switch {
	case isUndecoded(c.object):
		c.object = nil
	case exists && in.publish != nil:
		c.transform(in.keyFunc, in.transform)
	}
}

// transform has a transform make the object's state to keep. An object that it does not want is
// deleted; a deletion whose final state fails has none.
func (c *change) transform(keyFunc KeyFunc, transform TransformFunc) {
	out, keep, err := transformedUnder(c.key, keyFunc, transform, c.object)
	switch {
	case err != nil && c.kind == Deleted:
		c.finalErr, c.object = c.objectError(StageTransform, err), nil
	case err != nil:
		c.fail(StageTransform, err)
	case !keep:
		c.kind, c.object = Deleted, nil
	default:
		c.object = out
	}
}

// regression is the error of an event that is older than what was last received of its key: the
// quarantined state, if one is that has a version, or else the stored one.
func (c *change) regression(have table.Origin, quarantined string) error {
	if quarantined != "" {
		have = table.OriginOf(quarantined, "")
	}
	if !c.origin.OlderThan(have) {
		return nil
	}
	return &RegressionError{What: "event", Key: c.key.String(), Have: have.Version(), Got: c.says.received.ResourceVersion}
}

// goesBack is regression for an event that is not being written.
func (m *threadSafeMap) goesBack(c *change) error {
	have, _ := m.originOf(c.key)
	version, _ := m.quarantined.version(c.key.String())
	return c.regression(have, version)
}

// published has what was applied told.
func (in *intake) published(changes []change, initial bool) {
	if in.publish != nil {
		in.publish(changes, initial)
	}
}

// apply applies what a queue has handed out, in one write: it has looked at versions already, and
// at transforms if transformed says so. It is false, and nothing was applied, if ctx ended first.
func (in *intake) apply(ctx context.Context, changes []change, version string, transformed bool) bool {
	if transformed {
		in.transform = nil
	}
	for i := range changes {
		if ctx.Err() != nil {
			return false
		}
		c := &changes[i]
		found, exists := in.storage.table.Get(c.key)
		switch {
		case !in.scope.hasKey(c.key) && c.kind == Deleted:
			c.unchanged = true // nothing of another namespace is there
		case !in.scope.hasKey(c.key):
			c.err = c.objectError(StageKey, in.scope.refusal(c.key.String(), c.object))
		case c.kind == Sync && samePointer(found.Object, c.object):
			c.same = true
		case c.kind == Deleted:
			c.transform(in.keyFunc, in.transform) // the handler gets it
		default:
			in.prepare(c, exists)
		}
	}
	w := in.storage.begin(changes)
	for i := range changes {
		w.apply(&changes[i])
	}
	w.commit(versionMove{scope: in.scope, version: version})
	return true
}

// eventKey implements entryKeeper.
func (k *keyedStore) eventKey(obj any) (table.Key, error) { return k.keyOf(obj) }

// olderThanEntry implements entryKeeper.
func (k *keyedStore) olderThanEntry(key table.Key, received Received) error {
	return k.storage.goesBack(&change{key: key, origin: originOf(received), says: metadata{received: received}})
}

// quarantined returns the quarantined objects of the store's scope.
func (k *keyedStore) quarantined() []Quarantined { return k.storage.quarantined.list(k.scope.has) }

// samePointer is true if both are one pointer. Other values are never the same here; comparing
// them could panic.
func samePointer(a, b any) bool {
	return a != nil && reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
