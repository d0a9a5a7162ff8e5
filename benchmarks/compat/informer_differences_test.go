package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// informerDifference is a difference of informers. Each side is shown in virtual time.
type informerDifference struct {
	// fault is the number in docs/faults.md, or the heading there.
	fault, name  string
	options      informerOptions
	see          func(s *scene) any
	ours, theirs any
}

// again is how a resync of the object x is noted.
const again = "update ns/x@1 to ns/x@1"

var informerDifferences = []informerDifference{
	{
		fault: "B8", name: "a relist tells nothing of what has not changed",
		see: func(s *scene) any {
			calls, _ := s.listens()
			s.start()
			s.remove("y")
			calls.take()
			s.relists(nil)
			return calls.take()
		},
		ours: []string(nil), theirs: []string{again},
	},
	{
		fault: "B9", name: "a handler that panics at the first list has synced all the same",
		see: func(s *scene) any {
			defer surviving()()
			r := s.adds(&onFirst{do: func() error { panic("boom") }})
			s.start()
			s.passes(time.Minute)
			return r.HasSynced()
		},
		ours: true, theirs: false,
	},
	{
		fault: "B11", name: "a wait for a handler that is removed first ends at once",
		see: func(s *scene) any {
			s.from.HangLists(1)
			_, r := s.listens()
			s.start()
			require.NoError(s, s.inf.remove(r))
			return s.gaveUpAfter(time.Minute, r.done())
		},
		ours: time.Duration(0), theirs: time.Minute,
	},
	{
		fault: "B11", name: "and a wait for an informer that has stopped",
		see: func(s *scene) any {
			s.from.HangLists(1)
			_, r := s.listens()
			s.start()
			s.end()
			return s.gaveUpAfter(time.Minute, s.inf.done()) + s.gaveUpAfter(time.Minute, r.done())
		},
		ours: time.Duration(0), theirs: 2 * time.Minute,
	},
	{
		fault: "B18", name: "what waits for a handler that stalls is merged",
		see: func(s *scene) any {
			slow := newGated()
			s.adds(slow)
			s.start()
			for i := range 5000 {
				require.NoError(s, s.from.Apply(changed(at("x", ""), fmt.Sprint(i))))
			}
			synctest.Wait()
			close(slow.open)
			synctest.Wait()
			calls := slow.take()
			require.True(s, strings.HasSuffix(calls[len(calls)-1], "4999"), "the last state arrives")
			return len(calls)
		},
		ours: 3, theirs: 5002,
	},
	{
		fault: "B20", name: "a handler that is due is resynced, whatever holds up the store",
		see: func(s *scene) any {
			s.inf = s.side.newInformer(s.from, informerOptions{resync: time.Minute, indexes: map[string]indexFunc{"slow": slowIndex}})
			often, _ := s.listens(time.Minute)
			seldom, _ := s.listens(2 * time.Minute)
			s.start()
			s.remove("y")
			s.passes(time.Minute + 55*time.Second)
			often.take()
			seldom.take()
			// The store is busy from here until after the next check of who is due.
			require.NoError(s, s.from.Apply(changed(at("z", ""), "slow")))
			s.passes(90 * time.Second)
			return len(withPrefix(seldom.take(), "update"))
		},
		ours: 1, theirs: 0,
	},
	{
		fault: "B12", name: "a second run is reported",
		see: func(s *scene) any {
			failures := make(chan error, 10)
			require.NoError(s, s.inf.onError(func(err error) { failures <- err }))
			s.start()
			s.inf.Run(nil)
			return len(failures)
		},
		ours: 1, theirs: 0,
	},
	{
		fault: "Other differences", name: "an object that was created anew is delivered as a deletion and an addition",
		see: func(s *scene) any {
			calls, _ := s.listens()
			s.start()
			s.remove("y")
			calls.take()
			s.relists(func() {
				_, err := s.from.DeleteSilently("ns", "x")
				require.NoError(s, err)
				anew := at("x", "")
				anew.UID = types.UID("another")
				require.NoError(s, s.from.Apply(anew))
			})
			return calls.take()
		},
		ours:   []string{"delete tombstone(ns/x, ns/x@1)", "add ns/x@5"},
		theirs: []string{"update ns/x@1 to ns/x@5"},
	},
	{
		fault: "Other differences", name: "a resync period below the least is refused",
		see: func(s *scene) any {
			return ended(func() error { _, err := s.inf.add(&listening{}, time.Millisecond); return err })
		},
		ours: "error", theirs: "done",
	},
	{
		fault: "Other differences", name: "a handler is resynced also where the informer's own period is none",
		see: func(s *scene) any {
			calls, _ := s.listens(time.Minute)
			s.start()
			s.remove("y")
			calls.take()
			s.passes(time.Minute)
			return calls.take()
		},
		ours: []string{again}, theirs: []string(nil),
	},
	{
		fault: "Other differences", name: "a handler that joins later has the period that it asks for",
		options: informerOptions{resync: 10 * time.Minute},
		see: func(s *scene) any {
			s.start()
			s.remove("y")
			calls, _ := s.listens(time.Minute)
			synctest.Wait()
			calls.take()
			s.passes(2 * time.Minute)
			return calls.take()
		},
		ours: []string{again, again}, theirs: []string(nil),
	},
	{
		fault: "Other differences", name: "a nil handler is refused",
		see: func(s *scene) any {
			return ended(func() error { _, err := s.inf.add(nil); return err })
		},
		ours: "error", theirs: "done",
	},
	{
		fault: "Other differences", name: "the removal of another informer's handler is refused",
		see: func(s *scene) any {
			foreign, err := s.side.newInformer(s.from, informerOptions{}).add(&listening{})
			require.NoError(s, err)
			return ended(func() error { return s.inf.remove(foreign) })
		},
		ours: "error", theirs: "done",
	},
	{
		fault: "Other differences", name: "an informer that was made without indexes can be given some",
		see: func(s *scene) any {
			return ended(func() error { return s.inf.addIndex("label", labelValues) })
		},
		ours: "done", theirs: "panic",
	},
	{
		fault: "Other differences", name: "to wait for a nil function is answered with false",
		see: func(s *scene) any {
			defer quiet()()
			return ended(func() error {
				require.False(s, s.side.waitForCacheSync(nil, nil))
				return nil
			})
		},
		ours: "done", theirs: "panic",
	},
	{
		fault: "Other differences", name: "waiting for functions asks often at first",
		see: func(s *scene) any {
			before := time.Now()
			soon := func() bool { return time.Since(before) >= 5*time.Millisecond }
			require.True(s, s.side.waitForCacheSync(nil, soon))
			return time.Since(before)
		},
		ours: 7 * time.Millisecond, theirs: 100 * time.Millisecond,
	},
	{
		fault: "Other differences", name: "the store of a plain informer does not wait for its handler",
		see: func(s *scene) any {
			slow := newGated()
			x, ctlr := s.side.newPlain(s.from, plainOptions{handler: slow})
			s.run(ctlr)
			synctest.Wait()
			s.apply(at("z", ""))
			defer close(slow.open)
			return len(x.List())
		},
		ours: 3, theirs: 2,
	},
	{
		fault: "Other differences", name: "an event that repeats a version is delivered to all",
		options: informerOptions{resync: time.Minute},
		see: func(s *scene) any {
			calls, _ := s.listens(0)
			s.start()
			s.remove("y")
			s.passes(time.Minute)
			calls.take()
			s.from.Inject(watch.Event{Type: watch.Modified, Object: changed(at("x", "1"), "same version")})
			synctest.Wait()
			return calls.take()
		},
		ours: []string{"update ns/x@1 to ns/x@1 same version"}, theirs: []string(nil),
	},
}

// gaveUpAfter waits in vain, and says for how long.
func (s *scene) gaveUpAfter(limit time.Duration, c checker) time.Duration {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	before := time.Now()
	require.False(s, s.side.waitFor(ctx, c))
	return time.Since(before)
}

// slowIndex takes longer for an object labelled so than the shortest resync period.
func slowIndex(obj any) ([]string, error) {
	if obj.(*object).Labels["v"] == "slow" {
		time.Sleep(70 * time.Second)
	}
	return nil, nil
}

func withPrefix(notes []string, prefix string) (out []string) {
	for _, note := range notes {
		if strings.HasPrefix(note, prefix) {
			out = append(out, note)
		}
	}
	return out
}

// quiet has panics of handlers and conditions not printed, and surviving has the process
// survive them as well, until the function that they return is called.
func quiet() (restore func()) {
	handlers := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	return func() { utilruntime.PanicHandlers = handlers }
}

func surviving() (restore func()) {
	loud := quiet()
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	return func() { loud(); utilruntime.ReallyCrash = crash }
}

// TestWhatDiffersOnPurposeInInformersDiffersAsDocumented compares each difference with
// what is said of it, on both sides.
func TestWhatDiffersOnPurposeInInformersDiffersAsDocumented(t *testing.T) {
	for _, d := range informerDifferences {
		for side, want := range map[*informerSide]any{&ourInformers: d.ours, &theirInformers: d.theirs} {
			t.Run(d.fault+" "+d.name+"/"+side.name, func(t *testing.T) {
				play(t, *side, d.options, func(s *scene) { require.Equal(s, want, d.see(s)) })
			})
		}
	}
}
