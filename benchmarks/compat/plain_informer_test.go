package compat

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What NewInformerWithOptions and the deprecated constructors make: a store, and a
// controller that fills it and calls one handler.

func TestAPlainInformerDoesWhatClientGosDoes(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		x, ctlr := s.side.newPlain(s.from, plainOptions{
			handler: calls, indexes: map[string]indexFunc{"label": labelValues},
			transform: func(obj any) (any, error) { return changed(obj.(*object), "marked"), nil },
		})
		require.False(s, ctlr.HasSynced())
		s.run(ctlr)
		synctest.Wait()
		require.True(s, ctlr.HasSynced())
		require.Equal(s, "2", ctlr.LastSyncResourceVersion())
		require.ElementsMatch(s, []string{"add ns/x@1 marked (initial)", "add ns/y@2 marked (initial)"}, calls.take())

		s.apply(at("z", ""))
		s.remove("y")
		require.Equal(s, []string{"add ns/z@3 marked", "delete ns/y@4 marked"}, calls.take())
		found, err := x.ByIndex("label", "marked")
		require.NoError(s, err)
		require.ElementsMatch(s, []string{"ns/x@1 marked", "ns/z@3 marked"}, shown(found))
	})
}

func TestAPlainInformerHasSyncedWhenItsHandlerHasHandledTheFirstList(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		slow := newGated()
		_, ctlr := s.side.newPlain(s.from, plainOptions{handler: slow})
		s.run(ctlr)
		synctest.Wait()
		require.False(s, ctlr.HasSynced())
		close(slow.open)
		synctest.Wait()
		require.True(s, ctlr.HasSynced())
	})
}

func TestAPlainInformerResyncsAtAnyPeriod(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		_, ctlr := s.side.newPlain(s.from, plainOptions{handler: calls, resync: 200 * time.Millisecond})
		s.run(ctlr)
		synctest.Wait()
		s.remove("y")
		calls.take()
		s.passes(time.Second + 100*time.Millisecond)
		again := "update ns/x@1 to ns/x@1"
		require.Equal(s, []string{again, again, again, again, again}, calls.take())
	})
}

func TestTheDeprecatedConstructorsMakeWhatClientGosMake(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		store, ctlr := s.side.newInformerOf(s.from, 0, calls)
		indexes := map[string]indexFunc{"label": labelValues}
		x, indexing := s.side.newIndexerOf(s.from, time.Minute, calls, indexes)
		s.run(ctlr)
		synctest.Wait()
		require.ElementsMatch(s, []string{"add ns/x@1 (initial)", "add ns/y@2 (initial)"}, calls.take())
		require.Len(s, store.List(), 2)

		s.run(indexing)
		synctest.Wait()
		s.remove("y")
		calls.take()
		require.True(s, indexing.HasSynced())
		s.apply(changed(at("x", ""), "new"))
		require.Equal(s, []string{"update ns/x@1 to ns/x@4 new", "update ns/x@1 to ns/x@4 new"}, calls.take())
		keys, err := x.IndexKeys("label", "new")
		require.NoError(s, err)
		require.Equal(s, []string{"ns/x"}, keys)
		s.passes(time.Minute)
		require.Equal(s, []string{"update ns/x@4 new to ns/x@4 new"}, calls.take(), "the one of them resyncs")
	})
}

// TestADeletedObjectIsFoundInTheStoreByItsTombstone: the store's key
// function knows tombstones.
func TestADeletedObjectIsFoundInTheStoreByItsTombstone(t *testing.T) {
	for i, s := range informerSides {
		t.Run(s.name, func(t *testing.T) {
			x, _ := s.newPlain(thingSource(t), plainOptions{handler: &listening{}})
			require.NoError(t, x.Add(at("a", "1")))
			found, exists, err := x.Get(sides[i].newQueue(nil, queueOptions{}).tombstone("ns/a", nil))
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, "ns/a@1", show(found))
		})
	}
}

func TestTheStoreOfAnInformerKnowsTombstones(t *testing.T) {
	for i, s := range informerSides {
		t.Run(s.name, func(t *testing.T) {
			x := s.newInformer(thingSource(t), informerOptions{}).store()
			require.NoError(t, x.Add(at("a", "1")))
			found, exists, err := x.Get(sides[i].newQueue(nil, queueOptions{}).tombstone("ns/a", nil))
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, "ns/a@1", show(found))
		})
	}
}
