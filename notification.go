package cache

import (
	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

// notification is one change, as handlers are notified of it.
type notification = eventlog.Record[table.Key]

// setNotification makes n, which is empty, the notification of an applied change.
func setNotification(n *notification, c *change, initial, mergeRecreated bool) {
	n.Key, n.Initial = c.key, initial
	switch {
	case c.kind == Deleted:
		n.Kind, n.Old = eventlog.Delete, c.object
	case !c.existed:
		n.Kind, n.New = eventlog.Add, c.object
	case !mergeRecreated && c.recreated:
		n.Kind, n.Old, n.New = eventlog.Recreate, DeletedFinalStateUnknown{Key: c.key.String(), Obj: c.old}, c.object
	default:
		n.Kind, n.Old, n.New = eventlog.Update, c.old, c.object
	}
}

// callsOf returns the calls of a handler that deliver a notification.
func callsOf(kind eventlog.Kind) []eventlog.Kind {
	if kind == eventlog.Recreate {
		return recreateCalls
	}
	return singleCalls[kind : kind+1]
}

var (
	singleCalls   = []eventlog.Kind{eventlog.Add: eventlog.Add, eventlog.Update: eventlog.Update, eventlog.Delete: eventlog.Delete, eventlog.Resync: eventlog.Resync}
	recreateCalls = []eventlog.Kind{eventlog.Delete, eventlog.Add}
)

// callHandler makes one of the calls. keyed is the handler too, if it takes keys.
func callHandler(kind eventlog.Kind, n *notification, handler ResourceEventHandler, keyed keyedHandler) {
	switch {
	case kind == eventlog.Add:
		handler.OnAdd(n.New, n.Initial)
	case kind == eventlog.Delete && keyed != nil:
		keyed.onDelete(n.Key.String(), n.Old)
	case kind == eventlog.Delete:
		handler.OnDelete(n.Old)
	case keyed != nil:
		keyed.onUpdate(n.Key, n.Before(), n.New)
	default:
		handler.OnUpdate(n.Before(), n.New)
	}
}
