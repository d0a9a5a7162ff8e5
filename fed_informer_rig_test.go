package cache

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fedInformer is an informer that nobody runs: a test hands it events, as a reflector does
// once it has listed, and its handler's calls are made when they are asked for.
type fedInformer struct {
	*sharedIndexInformer
	t    *testing.T
	feed informerStore
	told *recorder
}

// newFedInformer makes one that has listed nothing, at version 1.
func newFedInformer(t *testing.T, options SharedIndexInformerOptions) *fedInformer {
	t.Helper()
	inf := newSharedIndexInformer(&scripted{}, &object{}, options)
	inf.ctx = bg
	f := &fedInformer{inf, t, informerStore{inf.store, inf}, &recorder{}}
	require.NoError(t, f.feed.BeginReplace(ReplaceOptions{}).Commit(bg, "1"))
	_, err := f.AddEventHandler(f.told)
	require.NoError(t, err)
	return f
}

// take hands it a batch, as much as it takes of it at once: n events.
func (f *fedInformer) take(events ...event) (n int, err error) {
	f.t.Helper()
	changes := changesOf(events...)
	n, err = f.feed.takeChanges(bg, changes)
	for i := range changes[:n] {
		assert.NoError(f.t, changes[i].failure())
	}
	return n, err
}

// takeAll hands it a batch that it takes whole.
func (f *fedInformer) takeAll(events ...event) {
	f.t.Helper()
	n, err := f.take(events...)
	require.NoError(f.t, err)
	require.Equal(f.t, len(events), n)
}

// calls makes the handler's calls and returns them.
func (f *fedInformer) calls() []string {
	tellAll(f.currentListeners()[0])
	return f.told.take()
}

// tellAll makes all calls that wait for a handler, and says how many there were.
func tellAll(l *listener) (told int) {
	var n notification
	for l.cursor.Next(&n) {
		l.deliver(bg, &n)
		told++
	}
	return told
}

// eventOf is of the object key/1.
func eventOf(kind DeltaType, key, version string) event {
	return eventWith(kind, podAt(key, "1", version))
}

// eventWith is of an object as it is.
func eventWith(kind DeltaType, obj *object) event {
	return event{kind: kind, obj: obj, version: obj.ResourceVersion}
}

// event is a change as a reflector hands it to a store.
type event struct {
	kind    DeltaType
	obj     any
	version string
}

// changesOf are events as a taker takes them.
func changesOf(events ...event) []change {
	changes := make([]change, len(events))
	for i, e := range events {
		changes[i] = change{kind: e.kind, object: e.obj, version: e.version}
		changes[i].says.read(e.obj)
	}
	return changes
}

// takeOne hands a taker one event.
func takeOne(t taker, e event) error {
	changes := changesOf(e)
	if _, err := t.takeChanges(context.Background(), changes); err != nil {
		return err
	}
	return changes[0].failure()
}

// receivedUnder is what a store knows of what was received of what is under a key.
func receivedUnder(s any, key string) (Received, bool) {
	own, _ := ours(s.(Store))
	return own.Received(key)
}

// outcome is what became of one change of a batch.
type outcome struct {
	old           any
	existed       bool
	obj           any
	unwanted      bool
	err, finalErr *ObjectError
}

// applyBatch applies what a queue has handed out, as a controller does.
func applyBatch(store any, ctx context.Context, b batch, transformed bool, outcomes []outcome) []outcome {
	changes := make([]change, len(b.changes))
	for i, q := range b.changes {
		changes[i] = change{kind: q.Type, object: q.Object, key: q.key, says: metadata{received: q.received}, origin: originOf(q.received)}
	}
	own, _ := ours(store.(Store))
	in := own.intake()
	if !in.apply(ctx, changes, b.version, transformed) {
		return outcomes
	}
	for i := range changes {
		c := &changes[i]
		if !c.applied && c.err == nil {
			outcomes = append(outcomes, outcome{})
			continue
		}
		o := outcome{old: c.old, existed: c.existed, obj: c.object, err: c.err, finalErr: c.finalErr}
		if o.unwanted = c.kind == Deleted && b.changes[i].Type != Deleted; o.unwanted {
			o.obj = nil
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}
