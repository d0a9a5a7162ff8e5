package cache

import (
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
	f := &fedInformer{inf, t, informerStore{inf.queue, inf}, &recorder{}}
	require.NoError(t, f.feed.BeginReplace(ReplaceOptions{}).Commit(bg, "1"))
	_, err := f.AddEventHandler(f.told)
	require.NoError(t, err)
	return f
}

// take hands it a batch, as much as it takes of it at once: n events.
func (f *fedInformer) take(events ...event) (n int, err error) {
	f.t.Helper()
	n, refused, err := f.feed.takeEvents(met(events...), nil)
	assert.Empty(f.t, refused)
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
	for n, ok := l.take(); ok; n, ok = l.take() {
		l.tell(bg, n)
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
