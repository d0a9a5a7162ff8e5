package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// records returns a record of every kind, for an object that changes from older to newer.
func records(older, newer string, since time.Duration) map[string]Record[string] {
	return map[string]Record[string]{
		"add":       {Kind: Add, Key: "a/1", New: newer, Since: since},
		"update":    {Kind: Update, Key: "a/1", Old: older, New: newer, Since: since},
		"resync":    {Kind: Update, Key: "a/1", Old: newer, New: newer, Since: since},
		"delete":    {Kind: Delete, Key: "a/1", Old: older, New: newer, Since: since},
		"recreated": {Kind: Recreate, Key: "a/1", Old: older, New: newer, Since: since},
	}
}

func words(r Record[string]) string {
	switch r.Kind {
	case None:
		return "nothing"
	case Add:
		return fmt.Sprint("add ", r.New)
	case Update:
		return fmt.Sprint("update ", r.Old, " ", r.New)
	case Delete:
		return fmt.Sprint("delete ", r.Old)
	}
	return fmt.Sprint("recreated ", r.Old, " ", r.New)
}

// The pending record changes the object from 1 to 2, the later one from 2 to 3. The handler has
// received 1, or, before a resync, 2. All pairs are tested, even those that
// no source produces. Fails if a cell of the table differs.
func TestEveryPairOfRecordsMergesAsTheTableSays(t *testing.T) {
	first := records("1", "2", 1)
	later := records("2", "3", 2)
	delete(later, "resync") // a resync omits keys with a waiting record
	cells := map[string]map[string]string{
		"add": {"add": "add 3", "update": "add 3", "delete": "nothing", "recreated": "add 3"},
		"update": {
			"add": "update 1 3", "update": "update 1 3", "delete": "delete 1",
			"recreated": "recreated 1 3",
		},
		"resync": {
			"add": "update 2 3", "update": "update 2 3", "delete": "delete 2",
			"recreated": "recreated 2 3",
		},
		"delete": {
			"add": "recreated 1 3", "update": "recreated 1 3", "delete": "delete 1",
			"recreated": "recreated 1 3",
		},
		"recreated": {
			"add": "recreated 1 3", "update": "recreated 1 3", "delete": "delete 1",
			"recreated": "recreated 1 3",
		},
	}
	for waits, row := range cells {
		for comes, want := range row {
			merged := first[waits]
			then := later[comes]
			merge(&merged, &then)
			assert.Equal(t, want, words(merged), "%s, then %s", waits, comes)
			if want == "nothing" {
				assert.Equal(t, Record[string]{}, merged, "nothing keeps nothing")
				continue
			}
			assert.EqualValues(
				t, 1, merged.Since, "%s, then %s: it has waited since its oldest part", waits,
				comes,
			)
			assert.Equal(t, "a/1", merged.Key)
			if merged.Kind == Delete {
				assert.Nil(
					t, merged.New, "%s, then %s: a state that is never delivered is kept", waits,
					comes)
			}
		}
	}
}

// Fails if an Add of the first list loses that mark through a change merged into it, or if another
// Add gains it.
func TestAMergedAddIsInitialIfItsOldestPartIs(t *testing.T) {
	for _, initial := range []bool{false, true} {
		add := Record[string]{Kind: Add, Key: "a/1", New: "1", Initial: initial}
		for _, later := range []Record[string]{
			{Kind: Update, Key: "a/1", Old: "1", New: "2", Initial: !initial},
			{Kind: Recreate, Key: "a/1", Old: "1", New: "2", Initial: !initial},
		} {
			merged := add
			merge(&merged, &later)
			assert.Equal(t, initial, merged.Initial)
		}
	}
}
