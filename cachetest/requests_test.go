package cachetest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

func TestRequestsRecordEachQuestionAndItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		src := filled(t, cachetest.Options{})
		src.DelayLists(time.Second)
		_, page := list(t, src.Namespace("a"), metav1.ListOptions{Limit: 1})
		src.DelayLists(0)
		_, _ = list(t, src.Namespace("a"), metav1.ListOptions{Continue: page.GetContinue()})
		src.FailWatches(1, errTest)
		_, err := src.Watch(metav1.ListOptions{ResourceVersion: "2"})
		require.ErrorIs(t, err, errTest)
		time.Sleep(time.Second)
		seconds := int64(9)
		w := open(t, src, metav1.ListOptions{ResourceVersion: "2", TimeoutSeconds: &seconds})
		require.Len(t, received(t, w, 2), 2)
		_ = received(t, w, 1)
		src.HangLists(1)
		go func() { _, _ = src.List(metav1.ListOptions{}) }()
		synctest.Wait()

		at := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
		require.Equal(t, []cachetest.Request{
			{
				Verb:            cachetest.VerbList,
				Namespace:       "a",
				Options:         metav1.ListOptions{Limit: 1},
				Page:            1,
				Time:            at(0),
				Answered:        at(1),
				Items:           1,
				ResourceVersion: "4",
			},
			{
				Verb:            cachetest.VerbList,
				Namespace:       "a",
				Options:         metav1.ListOptions{Continue: page.GetContinue()},
				Page:            2,
				Time:            at(1),
				Answered:        at(1),
				Items:           2,
				ResourceVersion: "4",
			},
			{Verb: cachetest.VerbWatch, Options: metav1.ListOptions{ResourceVersion: "2"},
				Time: at(1), Answered: at(1), Err: errTest},
			{
				Verb:     cachetest.VerbWatch,
				Options:  metav1.ListOptions{ResourceVersion: "2", TimeoutSeconds: &seconds},
				Time:     at(2),
				Answered: at(2),
				Events:   2,
				Ended:    at(11),
			},
			{Verb: cachetest.VerbList, Page: 1, Time: at(11)},
		}, src.Requests())
		require.Equal(t, `list namespace="a" limit=1: 1 objects at version 4
list namespace="a" page 2: 2 objects at version 4
watch version="2": scripted by the test
watch version="2": 2 events in 9s
list: not answered
`, lines(src.Requests()))
		require.Equal(t, 3, src.ListCalls())
		require.Equal(t, 2, src.WatchCalls())
		require.Zero(t, src.ActiveWatches())

		src.ResetRequests()
		require.Empty(t, src.Requests())
		require.Zero(t, src.ListCalls()+src.WatchCalls())
		src.ReleaseHanging()
	})
}

func lines(requests []cachetest.Request) string {
	var b strings.Builder
	for _, request := range requests {
		fmt.Fprintln(&b, request)
	}
	return b.String()
}

func TestTheRecordIsBoundedAndTheCountersAreNot(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{})
	src.FailLists(cachetest.Forever, errTest)
	const asked = 1<<16 + 10
	for i := range int64(asked) {
		_, _ = src.List(metav1.ListOptions{Limit: i})
	}
	requests := src.Requests()
	require.Equal(t, 1<<15+10, len(requests))
	require.Equal(t, int64(asked-1), requests[len(requests)-1].Options.Limit)
	require.Equal(t, asked, src.ListCalls())
}
