package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchmirror/cache/internal/table"

	"github.com/stretchr/testify/assert"
)

// notifications of every kind, of an object that goes from old to obj.
func notificationsOf(old, obj string, since time.Time) map[string]notification {
	return map[string]notification{
		"add":       {kind: tellAdd, key: table.KeyOf("a/1"), obj: obj, since: since},
		"update":    {kind: tellUpdate, key: table.KeyOf("a/1"), old: old, obj: obj, since: since},
		"resync":    {kind: tellResync, key: table.KeyOf("a/1"), obj: obj, since: since},
		"delete":    {kind: tellDelete, key: table.KeyOf("a/1"), old: old, since: since},
		"recreated": {kind: tellRecreated, key: table.KeyOf("a/1"), old: old, obj: obj, since: since},
	}
}

func (n notification) words() string {
	switch n.kind {
	case told:
		return "nothing"
	case tellAdd:
		return fmt.Sprint("add ", n.obj)
	case tellUpdate:
		return fmt.Sprint("update ", n.old, " ", n.obj)
	case tellResync:
		return fmt.Sprint("resync ", n.obj)
	case tellDelete:
		return fmt.Sprint("delete ", n.old)
	case tellRecreated:
		return fmt.Sprint("recreated ", n.old, " ", n.obj)
	}
	return "end"
}

// What waits goes from 1 to 2, what comes later from 2 to 3. Every pair is there, those
// too that no source brings about. Fails if a cell of the table is another.
func TestEveryPairOfNotificationsMergesAsTheTableSays(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	first, then := notificationsOf("1", "2", early), notificationsOf("2", "3", late)
	then["resync"] = notification{kind: tellResync, key: table.KeyOf("a/1"), obj: "2", since: late}
	cells := map[string]map[string]string{
		"add":       {"add": "add 3", "update": "add 3", "resync": "add 2", "delete": "nothing", "recreated": "add 3"},
		"update":    {"add": "update 1 3", "update": "update 1 3", "resync": "update 1 2", "delete": "delete 2", "recreated": "recreated 2 3"},
		"resync":    {"add": "update 2 3", "update": "update 2 3", "resync": "resync 2", "delete": "delete 2", "recreated": "recreated 2 3"},
		"delete":    {"add": "recreated 1 3", "update": "recreated 1 3", "resync": "delete 1", "delete": "delete 1", "recreated": "recreated 1 3"},
		"recreated": {"add": "recreated 1 3", "update": "recreated 1 3", "resync": "recreated 1 2", "delete": "delete 1", "recreated": "recreated 1 3"},
	}
	for waits, row := range cells {
		for comes, want := range row {
			merged := first[waits].then(then[comes])
			assert.Equal(t, want, merged.words(), "%s, then %s", waits, comes)
			if want == "nothing" {
				assert.Equal(t, notification{}, merged, "nothing keeps nothing")
				continue
			}
			assert.Equal(t, early, merged.since, "%s, then %s: it has waited since its oldest part", waits, comes)
			assert.Equal(t, "a/1", merged.key.String())
			if merged.kind == tellDelete {
				assert.Nil(t, merged.obj, "%s, then %s: a state that is told to nobody is kept", waits, comes)
			}
		}
	}
}

// Fails if an Add of the initial list loses that by what is merged into it, or another
// one gains it.
func TestAMergedAddSaysWhetherItsOldestPartIsOfTheInitialList(t *testing.T) {
	for _, initial := range []bool{false, true} {
		add := notification{kind: tellAdd, key: table.KeyOf("a/1"), obj: "1", initial: initial}
		for _, later := range []notification{
			{kind: tellUpdate, key: table.KeyOf("a/1"), old: "1", obj: "2", initial: !initial},
			{kind: tellRecreated, key: table.KeyOf("a/1"), old: "1", obj: "2", initial: !initial},
			{kind: tellResync, key: table.KeyOf("a/1"), obj: "1"},
		} {
			assert.Equal(t, initial, add.then(later).initial)
		}
	}
}

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
	for name, n := range notificationsOf("1", "2", time.Time{}) {
		calls, n.initial = nil, true
		for _, kind := range n.calls() {
			n.call(kind, handler, nil)
		}
		assert.Equal(t, want[name], calls)
	}
}

// Fails if a deletion of what was never there is told, a change of UID passes for an
// update, or MergeRecreated is not heeded.
func TestWhatWasAppliedSaysWhatIsTold(t *testing.T) {
	was, is := podAt("a", "1", "5"), podAt("a", "1", "6")
	other := withUID(is, "another")
	final := podAt("a", "1", "7")
	tombstone := DeletedFinalStateUnknown{Key: "a/1", Obj: was}
	existed := outcome{old: was, existed: true, was: receivedOf(was), obj: is}
	cases := map[string]struct {
		change change
		o      outcome
		merge  bool
		want   notification
	}{
		"new":                 {change: changeOf(Added, is), o: outcome{obj: is}, want: notification{kind: tellAdd, obj: is}},
		"changed":             {change: changeOf(Updated, is), o: existed, want: notification{kind: tellUpdate, old: was, obj: is}},
		"recreated":           {change: changeOf(Updated, other), o: outcome{old: was, existed: true, was: receivedOf(was), obj: other}, want: notification{kind: tellRecreated, old: tombstone, obj: other}},
		"recreated, merged":   {change: changeOf(Updated, other), o: outcome{old: was, existed: true, was: receivedOf(was), obj: other}, merge: true, want: notification{kind: tellUpdate, old: was, obj: other}},
		"gone":                {change: changeOf(Deleted, final), o: outcome{old: was, existed: true, was: receivedOf(was), obj: final}, want: notification{kind: tellDelete, old: final}},
		"not wanted any more": {change: changeOf(Updated, is), o: outcome{old: was, existed: true, was: receivedOf(was), unwanted: true}, want: notification{kind: tellDelete, old: tombstone}},
		"never wanted":        {change: changeOf(Added, is), o: outcome{unwanted: true}},
		"never there":         {change: changeOf(Deleted, final), o: outcome{obj: final}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var n notification
			assert.Equal(t, c.want.kind != told, n.say(&c.change, &c.o, false, c.merge))
			assert.Equal(t, c.want, n)
		})
	}
}
