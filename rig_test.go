package cache

import (
	"cmp"
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func itoa(n int) string { return strconv.Itoa(n) }

var pods = schema.GroupResource{Resource: "pods"}

// keysHeldIn are the quarantined keys of a status.
func keysHeldIn(s Status) []string {
	var keys []string
	for _, held := range s.Quarantined {
		keys = append(keys, held.Key)
	}
	return keys
}

// event is a change as a reflector hands it to a store.
type event struct {
	kind    DeltaType
	obj     any
	version string
}

// changesOf are events as a changeAccepter accepts them.
func changesOf(events ...event) []change {
	changes := make([]change, len(events))
	for i, e := range events {
		changes[i] = change{received: received{kind: e.kind, object: e.obj, version: e.version}}
		changes[i].received.meta.read(e.obj)
	}
	return changes
}

// quarantined are the objects that could not be queued.
func (f *DeltaFIFO) quarantinedObjects() []Quarantined {
	isOfReflector := func(e quarantineEntry) bool { return e.at.part == f.quarantine }
	return f.quarantine.shared.list(isOfReflector)
}

// takeOne passes one event to a changeAccepter.
func takeOne(t changeAccepter, e event) error {
	changes := changesOf(e)
	if _, err := t.acceptChanges(context.Background(), changes); err != nil {
		return err
	}
	if bad := cmp.Or(changes[0].prepared.err, changes[0].prepared.finalErr); bad != nil {
		return bad
	}
	return nil
}

// receivedUnder is the origin that a store remembers under a key.
func receivedUnder(s any, key string) (ObjectVersion, bool) {
	own, _ := keyedStoreOf(s.(Store))
	return own.ObjectVersion(key)
}

var _ apiruntime.Object = (*object)(nil)

// Lists that come item by item and end badly.

// FuzzTokenChain follows the continue tokens of a list that runs in a circle, after a way
// there, and of one that does not. What has no end is noticed before the circle is complete
// a few times; a list in which no token comes twice, and which has objects, is read on.
func FuzzTokenChain(f *testing.F) {
	f.Add(uint16(0), uint16(1), []byte{1})
	f.Add(uint16(3), uint16(5), []byte{1, 0})
	f.Add(uint16(700), uint16(0), []byte{0})
	f.Add(uint16(2000), uint16(0), []byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, way, circle uint16, items []byte) {
		way, circle = way%3000, circle%500
		token := func(page int) string {
			if page > int(way) && circle > 0 {
				page = int(way) + (page-int(way))%int(circle)
			}
			return "token " + itoa(page)
		}
		tokens := pageTokens{}
		seen := map[string]bool{}
		empty := 0
		for page := range 4*(int(way)+int(circle)) + 4 {
			n := 0
			if len(items) > 0 {
				n = int(items[page%len(items)])
			}
			if empty++; n > 0 {
				empty = 0
			}
			next := token(page)
			err := tokens.check(next, n)
			if err != nil {
				require.True(t, seen[next] || empty == emptyPages, "page %d: %v", page, err)
				return
			}
			require.Less(t, empty, emptyPages)
			seen[next] = true
		}
		require.Zero(t, circle, "a circle of %d after %d was not noticed", circle, way)
	})
}
