package cachetest_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// tb is a test that records its failures.
type tb struct {
	testing.TB
	skipped  bool
	errors   []string
	cleanups []func()
}

func (*tb) Helper()            {}
func (t *tb) Skipped() bool    { return t.skipped }
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

var line = regexp.MustCompile(`_test\.go:\d+`)

func (t *tb) Errorf(format string, args ...any) {
	t.errors = append(t.errors, line.ReplaceAllString(fmt.Sprintf(format, args...), "_test.go:N"))
}

// finish runs the cleanups, as at a test's end.
func (t *tb) finish() {
	for _, cleanup := range t.cleanups {
		cleanup()
	}
}

func ask(src *cachetest.Source, verb cachetest.Verb, opts metav1.ListOptions) error {
	if verb == cachetest.VerbList {
		_, err := src.List(opts)
		return err
	}
	w, err := src.Watch(opts)
	stop(w)
	return err
}

func TestFailRequestsHitsWhateverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := filled(t, cachetest.Options{})
		defer src.Close()
		src.FailRequests(0, errTest)
		src.FailRequests(3, errTest)
		src.FailRequests(1, nil)
		require.ErrorIs(t, ask(src, cachetest.VerbList, metav1.ListOptions{}), errTest)
		require.ErrorIs(t, ask(src, cachetest.VerbWatch, streaming()), errTest)
		src.FailLists(1, cachetest.ErrExpired())
		requireReason(
			t, metav1.StatusReasonExpired, ask(src, cachetest.VerbList, metav1.ListOptions{}))
		require.ErrorIs(
			t, ask(src, cachetest.VerbWatch, metav1.ListOptions{ResourceVersion: "1"}), errTest,
			"a failure of its own verb comes first and uses up nothing else")
		requireReason(
			t, metav1.StatusReasonInternalError, ask(src, cachetest.VerbList, metav1.ListOptions{}))
		require.NoError(t, ask(src, cachetest.VerbList, metav1.ListOptions{}))
		require.NoError(t, ask(src, cachetest.VerbWatch, streaming()))
		src.FailRequests(cachetest.Forever, errTest)
		for range 20 {
			require.ErrorIs(t, ask(src, cachetest.VerbList, metav1.ListOptions{}), errTest)
			require.ErrorIs(t, ask(src, cachetest.VerbWatch, streaming()), errTest)
		}
		src.Heal()
		require.NoError(t, ask(src, cachetest.VerbList, metav1.ListOptions{}))
	})
}

// A reflector streams its first list if the source can stream. A script for lists alone then has no
// effect, and the test would prove nothing.
func TestASourceReportsAFaultThatMetNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &tb{}
		src := cachetest.NewTestSource(inner, cachetest.Options{})
		src.FailLists(3, cachetest.ErrConnectionRefused())
		src.ResetRequests()
		informer := cache.NewTypedInformer(src, cache.InformerConfig[*unstructured.Unstructured]{})
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan struct{})
		go func() { defer close(ended); _ = informer.Run(ctx) }()
		require.NoError(t, informer.WaitSynced(ctx))
		src.ResetRequests()
		cancel()
		<-ended
		require.Empty(t, inner.errors)
		inner.finish()
		require.Equal(t, []string{
			"cachetest: FailLists at unfired_test.go:N never fired: the source got 0 lists and 1 watch",
		}, inner.errors)
		src.Close()
		require.Len(t, inner.errors, 1, "closing twice reports once")
	})
}

// Each is scripted once for a source without requests, and once for one with all requests that it
// needs to fire.
func TestEveryFaultThatAwaitsARequestIsReportedUnlessItFired(t *testing.T) {
	hook := func(metav1.ListOptions) error { return nil }
	list := cachetest.VerbList
	watch := cachetest.VerbWatch
	from := metav1.ListOptions{ResourceVersion: "1"}
	for name, c := range map[string]struct {
		script func(*cachetest.Source)
		verb   cachetest.Verb
		opts   metav1.ListOptions
	}{
		"FailRequests": {func(s *cachetest.Source) { s.FailRequests(2, nil) }, watch, from},
		"View.FailRequests": {
			func(s *cachetest.Source) { s.Namespace("").FailRequests(2, nil) }, watch, from,
		},
		"FailLists": {
			func(s *cachetest.Source) { s.FailLists(2, nil) }, list, metav1.ListOptions{},
		},
		"FailWatches": {func(s *cachetest.Source) { s.FailWatches(2, nil) }, watch, from},
		"OnList": {
			func(s *cachetest.Source) { s.OnList(hook) }, list, metav1.ListOptions{},
		},
		"OnWatch": {func(s *cachetest.Source) { s.OnWatch(hook) }, watch, from},
		"MangleList": {func(s *cachetest.Source) {
			s.MangleList(func(obj runtime.Object) runtime.Object { return obj })
		}, list, metav1.ListOptions{}},
		"HangLists": {
			func(s *cachetest.Source) { s.HangLists(1) }, list, metav1.ListOptions{},
		},
		"HangWatches": {func(s *cachetest.Source) { s.HangWatches(1) }, watch, from},
		"HangListsIgnoringContext": {
			func(s *cachetest.Source) { s.HangListsIgnoringContext(1) }, list, metav1.ListOptions{},
		},
		"HangWatchesIgnoringContext": {
			func(s *cachetest.Source) { s.HangWatchesIgnoringContext(1) }, watch, from,
		},
		"DelayLists": {
			func(s *cachetest.Source) { s.DelayLists(time.Second) }, list, metav1.ListOptions{},
		},
		"DelayWatches": {
			func(s *cachetest.Source) { s.DelayWatches(time.Second) }, watch, from,
		},
		"CloseNextWatches": {
			func(s *cachetest.Source) { s.CloseNextWatches(1, 0) }, watch, from,
		},
		"BreakNextWatches": {
			func(s *cachetest.Source) { s.BreakNextWatches(1, 0, nil) }, watch, from,
		},
		"WithholdInitialEventsEnd": {
			func(s *cachetest.Source) { s.WithholdInitialEventsEnd(1) }, watch, streaming(),
		},
		"ServeOldLists": {func(s *cachetest.Source) {
			if err := s.ServeOldLists(1, 1); err != nil {
				panic(err)
			}
		}, list, metav1.ListOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				make := func() (*tb, *cachetest.Source) {
					inner := &tb{}
					src := cachetest.NewTestSource(inner, cachetest.Options{})
					apply(t, src, pod("a", "1"), pod("a", "2"))
					c.script(src)
					return inner, src
				}
				inner, src := make()
				src.Heal() // which does not count as firing
				inner.finish()
				require.Equal(t, []string{
					"cachetest: " + name + " at unfired_test.go:N never fired: the source got 0 lists and 0 watches",
				}, inner.errors)

				inner, src = make()
				time.AfterFunc(time.Hour, src.ReleaseHanging)
				if c.verb == list {
					_, _ = src.List(c.opts)
				} else if w, err := src.Watch(c.opts); err == nil {
					received(t, w, 10)
					w.Stop()
				}
				inner.finish()
				require.Empty(t, inner.errors)

				inner, _ = make()
				inner.skipped = true
				inner.finish()
				require.Empty(t, inner.errors)
			})
		})
	}
}

// A watch that has not delivered the scripted number of events has not ended as scripted.
func TestAScriptedEndThatAWatchHasNotReachedHasNotFired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &tb{}
		src := cachetest.NewTestSource(inner, cachetest.Options{})
		apply(t, src, pod("a", "1"), pod("a", "2"))
		src.CloseNextWatches(1, 5)
		w := open(t, src, metav1.ListOptions{ResourceVersion: "1"})
		require.Equal(t, []string{"ADDED a/2 @2"}, ready(t, w))
		src.Close()
		require.Equal(t, []string{
			"cachetest: CloseNextWatches at unfired_test.go:N never fired: the source got 0 lists and 1 watch",
		}, inner.errors)
	})
}

func TestUnscriptedFaultsAreNotReported(t *testing.T) {
	inner := &tb{}
	src := cachetest.NewTestSource(inner, cachetest.Options{})
	src.FailRequests(0, nil)
	src.FailLists(0, nil)
	src.HangLists(0)
	src.OnList(nil)
	src.OnWatch(nil)
	src.MangleList(nil)
	src.DelayLists(0)
	src.DelayWatches(0)
	inner.finish()
	require.Empty(t, inner.errors)
	require.ErrorIs(
		t, ask(src, cachetest.VerbList, metav1.ListOptions{}), cachetest.ErrClosed,
		"it was closed with the test")
}

// A fault that the test withdraws before a request arrives is not reported as never fired. Fails if
// only requests count.
func TestAFaultThatWasWithdrawnIsNotReported(t *testing.T) {
	inner := &tb{}
	src := cachetest.NewTestSource(inner, cachetest.Options{})
	hook := func(metav1.ListOptions) error { return nil }
	src.OnList(hook)
	src.OnWatch(hook)
	src.MangleList(func(obj runtime.Object) runtime.Object { return obj })
	src.DelayLists(time.Second)
	src.DelayWatches(time.Second)
	src.OnList(nil)
	src.OnWatch(nil)
	src.MangleList(nil)
	src.DelayLists(0)
	src.DelayWatches(0)
	inner.finish()
	require.Empty(t, inner.errors)
}
