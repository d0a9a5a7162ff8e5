package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

func TestNotificationsAreToldByTheCallsTheyStandFor(t *testing.T) {
	var calls []string
	handler := ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { calls = append(calls, fmt.Sprint("OnAdd ", obj, " ", initial)) },
		UpdateFunc: func(old, obj any) { calls = append(calls, fmt.Sprint("OnUpdate ", old, " ", obj)) },
		DeleteFunc: func(obj any) { calls = append(calls, fmt.Sprint("OnDelete ", obj)) },
	}
	want := map[string][]string{
		"add": {"OnAdd 2 true"}, "update": {"OnUpdate 1 2"}, "resync": {"OnUpdate 2 2"},
		"delete": {"OnDelete 1"}, "recreated": {"OnDelete 1", "OnAdd 2 true"},
	}
	for name, kind := range map[string]eventlog.Kind{
		"add": eventlog.Add, "update": eventlog.Update, "resync": eventlog.Resync, "delete": eventlog.Delete, "recreated": eventlog.Recreate,
	} {
		n := notification{Kind: kind, Old: "1", New: "2", Initial: true}
		calls = nil
		for _, kind := range callsOf(n.Kind) {
			callHandler(kind, &n, handler, nil)
		}
		assert.Equal(t, want[name], calls)
	}
}

// Fails if a change of UID passes for an update, or MergeRecreated is not heeded.
func TestWhatWasAppliedSaysWhatIsTold(t *testing.T) {
	was, is := podAt("a", "1", "5"), podAt("a", "1", "6")
	final := podAt("a", "1", "7")
	tombstone := DeletedFinalStateUnknown{Key: "a/1", Obj: was}
	for name, c := range map[string]struct {
		change change
		merge  bool
		want   notification
	}{
		"new":               {change: change{kind: Added, object: is}, want: notification{Kind: eventlog.Add, New: is}},
		"changed":           {change: change{kind: Updated, object: is, existed: true, old: was}, want: notification{Kind: eventlog.Update, Old: was, New: is}},
		"recreated":         {change: change{kind: Updated, object: is, existed: true, recreated: true, old: was}, want: notification{Kind: eventlog.Recreate, Old: tombstone, New: is}},
		"recreated, merged": {change: change{kind: Updated, object: is, existed: true, recreated: true, old: was}, merge: true, want: notification{Kind: eventlog.Update, Old: was, New: is}},
		"gone":              {change: change{kind: Deleted, object: final, existed: true, old: was}, want: notification{Kind: eventlog.Delete, Old: final}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.key, c.want.Key = table.KeyOf("a/1"), table.KeyOf("a/1")
			var n notification
			setNotification(&n, &c.change, false, c.merge)
			assert.Equal(t, c.want, n)
		})
	}
}
