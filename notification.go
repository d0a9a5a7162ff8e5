package cache

import (
	"time"

	"github.com/watchmirror/cache/internal/table"
)

// notification is something that a handler is to be told. It is pure data.
type notification struct {
	kind notificationKind
	// initial is OnAdd's isInInitialList.
	initial bool
	key     table.Key
	// old is OnUpdate's, and what OnDelete is told: a final state or a tombstone.
	old any
	// obj is OnAdd's and the new one of OnUpdate.
	obj any
	// since is when it began to wait; of a merged one, when its oldest part did.
	since time.Time
}

type notificationKind uint8

const (
	// told is nothing, or nothing any more.
	told notificationKind = iota
	tellAdd
	tellUpdate
	tellDelete
	// tellRecreated is a Delete of old and an Add of obj.
	tellRecreated
	// tellResync is an Update of obj to itself, without which nothing is lost.
	tellResync
	// endOfList is told to nobody: what was before it is the initial list.
	endOfList
)

// say makes n, which is empty, what a handler is to be told of a change that was applied, but
// for the key. It is false, and nothing, if there is nothing to be told.
func (n *notification) say(c *change, o *outcome, initial, mergeRecreated bool) bool {
	n.initial = initial
	switch {
	case c.Type == Deleted || o.unwanted:
		if !o.existed {
			return false
		}
		n.kind, n.old = tellDelete, lastState(c, o)
	case !o.existed:
		n.kind, n.obj = tellAdd, o.obj
	case !mergeRecreated && recreated(o.was, c.received):
		n.kind, n.old, n.obj = tellRecreated, DeletedFinalStateUnknown{Key: c.key.String(), Obj: o.old}, o.obj
	default:
		n.kind, n.old, n.obj = tellUpdate, o.old, o.obj
	}
	return true
}

// then is what a handler that has not been told n is to be told once later has
// happened too. Its kind is told if that is nothing.
//
//	n \ later   Update            Delete    Recreated                  Add
//	Add         Add(new)          -         Add(new)                   Add(new)
//	Update      Update(old, new)  Delete    Recreated(its old, new)    Update(old, new)
//	Resync      as later says
//	Delete      Recreated(n's old, new)     ...                        Recreated(n's old, new)
//	Recreated   Recreated(n's old, new)     Delete(n's old)  ...       Recreated(n's old, new)
//
// A resync of what is to be told anyway is nothing new. What cannot follow on n (an
// Update on a Delete) is read as what it leads to.
func (n notification) then(later notification) notification {
	if later.kind == tellResync {
		return n
	}
	merged := n
	switch n.kind {
	case tellAdd:
		merged.obj = later.obj
		if later.kind == tellDelete {
			merged = notification{}
		}
	case tellUpdate, tellResync:
		merged = later
		merged.since = n.since
		if later.kind == tellUpdate || later.kind == tellAdd {
			merged.kind, merged.old = tellUpdate, n.before()
		}
	case tellDelete, tellRecreated:
		merged.kind, merged.obj = tellRecreated, later.obj
		if later.kind == tellDelete {
			merged.kind = tellDelete
		}
	}
	return merged
}

// before is the state that the handler has before an Update or a resync.
func (n *notification) before() any {
	if n.kind == tellResync {
		return n.obj
	}
	return n.old
}

// calls are the calls of a handler that n is told with.
func (n *notification) calls() []notificationKind {
	if n.kind == tellRecreated {
		return recreatedCalls
	}
	return oneCall[n.kind : n.kind+1]
}

var (
	oneCall        = []notificationKind{told, tellAdd, tellUpdate, tellDelete, tellRecreated, tellResync, endOfList}
	recreatedCalls = []notificationKind{tellDelete, tellAdd}
)

// call makes one of the calls. keyed is the handler too, if it is one.
func (n *notification) call(kind notificationKind, handler ResourceEventHandler, keyed keyedHandler) {
	switch {
	case kind == tellAdd:
		handler.OnAdd(n.obj, n.initial)
	case kind == tellDelete && keyed != nil:
		keyed.onDelete(n.key.String(), n.old)
	case kind == tellDelete:
		handler.OnDelete(n.old)
	case keyed != nil:
		keyed.onUpdate(n.key, n.before(), n.obj)
	default:
		handler.OnUpdate(n.before(), n.obj)
	}
}
