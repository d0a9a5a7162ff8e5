package compat

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The scripts of this file run against an informer of each package, with the same
// expectations.

func TestAHandlerOfAnInformerIsNotifiedLikeClientGos(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls, r := s.listens()
		require.False(s, s.inf.HasSynced())
		require.False(s, r.HasSynced())
		require.Empty(s, s.inf.LastSyncResourceVersion())
		require.False(s, s.inf.IsStopped())

		s.start()
		require.ElementsMatch(s, []string{"add ns/x@1 (initial)", "add ns/y@2 (initial)"}, calls.take())
		require.True(s, s.inf.HasSynced())
		require.True(s, r.HasSynced())
		require.Equal(s, "2", s.inf.LastSyncResourceVersion())
		<-s.inf.done().Done()
		<-r.done().Done()

		s.apply(changed(at("x", ""), "new"), at("z", ""))
		s.remove("y")
		require.Equal(s, []string{"update ns/x@1 to ns/x@3 new", "add ns/z@4", "delete ns/y@5"}, calls.take())
		require.ElementsMatch(s, []string{"ns/x@3 new", "ns/z@4"}, shown(s.inf.store().List()))
		require.Equal(s, "5", s.inf.LastSyncResourceVersion())

		s.end()
		require.True(s, s.inf.IsStopped())
		require.True(s, s.inf.HasSynced())
		require.Empty(s, calls.take())
	})
}

func TestAHandlerThatJoinsARunningInformerReceivesEverythingAsTheInitialList(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		first, _ := s.listens()
		s.start()
		s.apply(changed(at("x", ""), "new"))
		first.take()

		late, r := s.listens()
		synctest.Wait()
		require.ElementsMatch(s, []string{"add ns/x@3 new (initial)", "add ns/y@2 (initial)"}, late.take())
		require.True(s, r.HasSynced())
		require.Empty(s, first.take())

		s.apply(at("z", ""))
		require.Equal(s, []string{"add ns/z@4"}, late.take())
		require.Equal(s, []string{"add ns/z@4"}, first.take())
	})
}

func TestOneHandlerHasSyncedWhileAnotherIsStillAtTheFirstList(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		slow := newGated()
		behind := s.adds(slow)
		_, ahead := s.listens()
		s.start()
		require.True(s, s.inf.HasSynced())
		require.True(s, ahead.HasSynced())
		require.False(s, behind.HasSynced())
		close(slow.open)
		synctest.Wait()
		require.True(s, behind.HasSynced())
	})
}

func TestNoHandlerAndNoIndexIsAddedToAnInformerThatHasStopped(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		s.start()
		s.end()
		_, err := s.inf.add(&listening{})
		require.Error(s, err)
		require.Error(s, s.inf.addIndex("late", labelValues))
	})
}

// TestPendingNotificationsAreDroppedWhenTheInformerStops: Run returns after the call
// that is under way.
func TestPendingNotificationsAreDroppedWhenTheInformerStops(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		slow := newGated()
		s.adds(slow)
		s.start()
		s.apply(at("z", ""))
		s.stop()
		synctest.Wait()
		require.Empty(s, slow.take(), "it is still in its first call")
		close(slow.open)
		s.ended.Wait()
		require.Len(s, slow.take(), 1)
	})
}

func TestEachHandlerIsResyncedAtItsOwnPeriod(t *testing.T) {
	played(t, informerOptions{resync: 4 * time.Minute}, func(s *scene) {
		often, _ := s.listens(time.Minute)
		seldom, _ := s.listens()
		never, _ := s.listens(0)
		s.start()
		s.remove("y")
		for _, calls := range []*listening{often, seldom, never} {
			calls.take()
		}
		s.passes(4*time.Minute + time.Second)
		again := "update ns/x@1 to ns/x@1"
		require.Equal(s, []string{again, again, again, again}, often.take())
		require.Equal(s, []string{again}, seldom.take())
		require.Empty(s, never.take())
	})
}

func TestARemovedHandlerIsNotNotifiedAndOthersAre(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		stays, _ := s.listens()
		runs, r := s.listens()
		before, never := s.listens()
		require.NoError(s, s.inf.remove(never))
		s.start()
		require.Empty(s, before.take(), "it was removed before the run")
		stays.take()
		runs.take()

		require.NoError(s, s.inf.remove(r))
		s.apply(at("z", ""))
		require.Equal(s, []string{"add ns/z@3"}, stays.take())
		require.Empty(s, runs.take())
		require.NoError(s, s.inf.remove(r), "removing twice is no error")
		require.NoError(s, s.inf.shutDown(r))
	})
}

func TestShuttingDownAHandlerWaitsForTheCallThatIsUnderWay(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		slow := newGated()
		r := s.adds(slow)
		s.start()
		var returned sync.WaitGroup
		waiting := true
		returned.Go(func() {
			if err := s.inf.shutDown(r); err != nil {
				s.Error(err)
			}
			waiting = false
		})
		synctest.Wait()
		require.True(s, waiting)
		close(slow.open)
		returned.Wait()
		require.False(s, waiting)
	})
}

func TestAHandlerMayRemoveItselfFromTheInformerThatCallsIt(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		other, _ := s.listens()
		once := &onFirst{}
		r := s.adds(once)
		once.do = func() error { return s.inf.remove(r) }
		s.start()
		require.NoError(s, once.err)
		require.Len(s, other.take(), 2)
		s.apply(at("z", ""))
		require.Equal(s, []string{"add ns/z@3"}, other.take())
	})
}

// onFirst is a handler that does something the first time it is called.
type onFirst struct {
	listening
	once sync.Once
	do   func() error
	err  error
}

func (o *onFirst) OnAdd(obj any, initial bool) {
	o.once.Do(func() { o.err = o.do() })
	o.listening.OnAdd(obj, initial)
}

func TestIndexesAreAddedBeforeAnInformerRunsAndWhileItDoes(t *testing.T) {
	played(t, informerOptions{indexes: map[string]indexFunc{"label": labelValues}}, func(s *scene) {
		byName := func(obj any) ([]string, error) { return []string{obj.(*object).Name}, nil }
		require.NoError(s, s.inf.addIndex("name", byName))
		require.Error(s, s.inf.addIndex("name", byName), "the name is in use")
		s.start()
		require.NoError(s, s.inf.addIndex("again", byName))
		require.Error(s, s.inf.addIndex("again", byName), "the name is in use")

		s.apply(changed(at("x", ""), "new"))
		for index, value := range map[string]string{"label": "new", "name": "x", "again": "x"} {
			found, err := s.inf.store().ByIndex(index, value)
			require.NoError(s, err)
			require.Equal(s, []string{"ns/x@3 new"}, shown(found), index)
		}
		_, err := s.inf.store().ByIndex("none", "x")
		require.Error(s, err)
	})
}

func TestTheFieldsOfAnInformerAreSetBeforeItRunsAndNotAfter(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		var mu sync.Mutex
		var failures []error
		tell := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
		}
		mark := func(obj any) (any, error) { return changed(obj.(*object), "marked"), nil }
		require.NoError(s, s.inf.transform(mark))
		require.NoError(s, s.inf.onError(tell))
		s.from.FailLists(1, errors.New("boom"))
		calls, _ := s.listens()
		s.start()
		s.passes(time.Minute)
		require.Len(s, failures, 1)
		require.ErrorContains(s, failures[0], "boom")
		require.ElementsMatch(s, []string{"add ns/x@1 marked (initial)", "add ns/y@2 marked (initial)"}, calls.take())

		require.Error(s, s.inf.transform(mark))
		require.Error(s, s.inf.onError(tell))
		s.end()
		require.Error(s, s.inf.transform(mark))
	})
}

func TestASecondRunOfAnInformerReturnsAtOnce(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		s.start()
		s.inf.Run(nil)
		require.False(s, s.inf.IsStopped(), "the first one runs on")
		s.apply(at("z", ""))
		require.Len(s, s.inf.store().List(), 3)
	})
}

func TestAnObjectDeletedBetweenTwoListsIsDeliveredAsATombstone(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls, _ := s.listens()
		s.start()
		s.apply(changed(at("y", ""), "last"))
		calls.take()
		s.relists(func() {
			_, err := s.from.DeleteSilently("ns", "y")
			require.NoError(s, err)
		})
		require.Contains(s, calls.take(), "delete tombstone(ns/y, ns/y@3 last)")
		require.Equal(s, []string{"ns/x@1"}, shown(s.inf.store().List()))
	})
}

func TestTheControllerOfAnInformerReportsAndDoesNotRun(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		ctlr := s.inf.controller()
		ctlr.Run(nil)
		require.False(s, ctlr.HasSynced())
		s.start()
		require.True(s, ctlr.HasSynced())
		require.Equal(s, "2", ctlr.LastSyncResourceVersion())
	})
}

func TestWaitingForInformersAnswersAsClientGo(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		_, r := s.listens()
		never := make(chan struct{})
		stopped := make(chan struct{})
		close(stopped)
		ctx := s.Context()
		no := func() bool { return false }

		require.True(s, s.side.waitForCacheSync(never), "nothing to wait for")
		require.True(s, s.side.waitFor(ctx), "nothing to wait for")
		require.False(s, s.side.waitForCacheSync(stopped, s.inf.HasSynced))
		require.False(s, s.side.waitForNamed(stopped, s.inf.HasSynced))
		require.False(s, s.side.waitFor(canceled(ctx), s.inf.done()))
		require.False(s, s.side.waitForNamedCtx(canceled(ctx), s.inf.HasSynced))

		s.run(s.inf)
		require.True(s, s.side.waitForCacheSync(never, s.inf.HasSynced, r.HasSynced))
		require.True(s, s.side.waitForNamed(never, s.inf.HasSynced, r.HasSynced))
		require.True(s, s.side.waitForNamedCtx(ctx, s.inf.HasSynced, r.HasSynced))
		require.True(s, s.side.waitFor(ctx, s.inf.done(), r.done()))
		require.True(s, s.side.waitFor(canceled(ctx), s.inf.done()), "what is done is done")
		require.True(s, s.side.waitForCacheSync(stopped, s.inf.HasSynced), "what is true is true")
		require.False(s, s.side.waitForCacheSync(stopped, s.inf.HasSynced, no))
	})
}
