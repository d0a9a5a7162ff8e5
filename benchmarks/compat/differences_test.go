//lint:file-ignore SA1019 deprecated names are part of what is promised

package compat

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// difference is a place where the library means to differ. It is shown on both
// sides: one that client-go has fixed itself is to be removed from the list, and
// one that the library has lost is a fault.
type difference struct {
	// fault is the number in docs/faults.md, or the heading there, or docs/migrating.md.
	fault  string
	name   string
	see    func(t *testing.T, s side) any
	ours   any
	theirs any
}

var errIndex = errors.New("no index value")

// indexBroken is an index function that fails for one object.
func indexBroken(obj any) ([]string, error) {
	if obj.(*object).Name == "bad" {
		return nil, errIndex
	}
	return []string{"all"}, nil
}

// ended says how a call ended.
func ended(call func() error) (how string) {
	defer func() {
		if recover() != nil {
			how = "panic"
		}
	}()
	if call() != nil {
		return "error"
	}
	return "done"
}

var differences = []difference{
	{
		fault: "B6", name: "an object without a key does not keep the rest of a list out of a store",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			require.Error(t, x.Replace(append(list(at("good", "1")), "no metadata"), "2"))
			return shown(x.List())
		},
		ours: []string{"ns/good@1"}, theirs: []string{},
	},
	{
		fault: "B6", name: "nor out of a queue",
		see: func(t *testing.T, s side) any {
			q := &tape{queue: s.newQueue(holding(), queueOptions{replaced: true})}
			require.Error(t, q.Replace(append([]any{"no metadata"}, list(at("good", "1"))...), "2"))
			q.Close()
			q.take()
			return q.seen
		},
		ours: []string{"Replaced ns/good@1 (initial)"}, theirs: []string{"pop failed"},
	},
	{
		fault: "B7", name: "what a transform turns to nothing is not wanted",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(func(any) (any, error) { return nil, nil })
			require.NoError(t, x.Add(at("x", "1")))
			return len(x.ListKeys())
		},
		ours: 0, theirs: 1,
	},
	{
		fault: "B7", name: "also in a queue",
		see: func(t *testing.T, s side) any {
			q := &tape{queue: s.newQueue(nil, queueOptions{transform: func(any) (any, error) { return nil, nil }})}
			require.NoError(t, q.Add(at("x", "1")))
			q.Close()
			q.take()
			return q.seen
		},
		ours: []string{"pop failed"}, theirs: []string{"Added nothing"},
	},
	{
		fault: "B13", name: "an index function that fails changes nothing and is an error",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			require.NoError(t, s.addIndex(x, "broken", indexBroken))
			how := ended(func() error { return x.Add(at("bad", "1")) })
			return []any{how, len(x.ListKeys())}
		},
		ours: []any{"error", 0}, theirs: []any{"panic", 1},
	},
	{
		fault: "B13", name: "also for an index that is added later",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			require.NoError(t, x.Add(at("bad", "1")))
			how := ended(func() error { return s.addIndex(x, "broken", indexBroken) })
			return []any{how, len(s.indexNames(x))}
		},
		ours: []any{"error", 1}, theirs: []any{"panic", 2},
	},
	{
		fault: "B14", name: "an object that a reader changed leaves no trace in an index",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			shared := at("x", "1")
			require.NoError(t, x.Add(shared))
			shared.Namespace = "elsewhere"
			require.NoError(t, x.Delete(at("x", "2")))
			found, err := x.ByIndex("namespace", "ns")
			require.NoError(t, err)
			return found
		},
		ours: []any{}, theirs: []any{nil},
	},
	{
		fault: "B16", name: "one object's version is not the store's",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			require.NoError(t, x.Replace(list(at("x", "3")), "9"))
			require.NoError(t, x.Update(at("x", "5")))
			return x.LastStoreSyncResourceVersion()
		},
		ours: "9", theirs: "5",
	},
	{
		fault: "B22", name: "the index functions that are handed out are a copy",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			s.changeIndexNames(x)
			return len(s.indexNames(x))
		},
		ours: 1, theirs: 0,
	},
	{
		fault: "B22", name: "and so are those that were passed",
		see: func(t *testing.T, s side) any {
			x, clearTheMap := s.newIndexerOf()
			clearTheMap()
			return len(s.indexNames(x))
		},
		ours: 1, theirs: 0,
	},
	{
		fault: "Other differences", name: "a ListWatch without functions answers with an error",
		see: func(_ *testing.T, s side) any {
			return []string{
				ended(func() error { _, err := s.emptyListWatch().List(metav1.ListOptions{}); return err }),
				ended(func() error { _, err := s.emptyListWatch().Watch(metav1.ListOptions{}); return err }),
			}
		},
		ours: []string{"error", "error"}, theirs: []string{"panic", "panic"},
	},
	{
		fault: "Other differences", name: "the message of a KeyError does not print the object",
		see: func(_ *testing.T, s side) any {
			err := s.newIndexer(nil).Add(struct{ Password string }{"secret"})
			return strings.Contains(err.Error(), "secret")
		},
		ours: false, theirs: true,
	},
	{
		fault: "Other differences", name: "an object with an empty key is refused",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(nil)
			return ended(func() error { return x.Add(in("", at("", "1"))) })
		},
		ours: "error", theirs: "done",
	},
	{
		fault: "migrating.md", name: "a transform that changes an object's key is refused",
		see: func(t *testing.T, s side) any {
			x := s.newIndexer(renamed)
			return []any{ended(func() error { return x.Add(at("x", "1")) }), strings.Join(shown(x.List()), " "), strings.Join(x.ListKeys(), " ")}
		},
		ours: []any{"error", "", ""}, theirs: []any{"done", "ns/other@1", "ns/x"},
	},
	{
		fault: "migrating.md", name: "also in a queue",
		see: func(t *testing.T, s side) any {
			q := &tape{queue: s.newQueue(nil, queueOptions{transform: renamed})}
			how := ended(func() error { return q.Add(at("x", "1")) })
			q.Close()
			q.take()
			return []any{how, strings.Join(q.seen, " ")}
		},
		ours: []any{"error", "pop failed"}, theirs: []any{"done", "Added ns/other@1"},
	},
}

// renamed is a transform that gives an object another name.
func renamed(obj any) (any, error) {
	o := obj.(*object).DeepCopy()
	o.Name = "other"
	return o, nil
}

// TestWhatDiffersOnPurposeDiffersAsDocumented compares each difference with what
// is said of it, on both sides.
func TestWhatDiffersOnPurposeDiffersAsDocumented(t *testing.T) {
	for _, d := range differences {
		t.Run(d.fault+" "+d.name, func(t *testing.T) {
			require.Equal(t, d.ours, normal(d.see(t, oursSide)), "ours")
			require.Equal(t, d.theirs, normal(d.see(t, theirsSide)), "client-go")
		})
	}
}

// normal makes an empty list out of none.
func normal(seen any) any {
	if objects, ok := seen.([]any); ok && objects == nil {
		return []any{}
	}
	return seen
}
