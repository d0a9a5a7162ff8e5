package local

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func smallPages(t *testing.T, s *SmallSource, limit int64) (version string, pages int, all []Small) {
	options := metav1.ListOptions{Limit: limit}
	for {
		list, err := s.List(options)
		require.NoError(t, err)
		page := list.(*metav1.PartialObjectMetadataList)
		pages++
		all = append(all, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return page.ResourceVersion, pages, all
		}
	}
}

func TestSmallObjectsComeInPagesMadeBeforeOrNot(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		s := NewSmallSource(1001)
		if prepared {
			s.Prepare(100)
		}
		for lists := range 2 {
			version, pages, all := smallPages(t, s, 100)
			require.Equal(t, "1001", version)
			require.Equal(t, 11, pages)
			require.Len(t, all, 1001)
			for i := range all {
				require.Equal(t, *NewSmall(i, uint64(i+1)), all[i])
			}
			require.Equal(t, lists+1, s.Lists())
		}
		require.Empty(t, s.prepared, "nothing is kept that was handed out")
	}
	_, pages, all := smallPages(t, NewSmallSource(7), 0)
	require.Equal(t, 1, pages)
	require.Len(t, all, 7)
}

func TestAChangedListDiffersInEachStepth(t *testing.T) {
	s := NewSmallSource(250)
	require.Equal(t, 3, s.Change(100))
	version, _, all := smallPages(t, s, 100)
	require.Equal(t, "500", version)
	changed := 0
	for i := range all {
		before := NewSmall(i, uint64(i+1))
		require.Equal(t, before.UID, all[i].UID)
		if all[i].ResourceVersion != before.ResourceVersion {
			require.Zero(t, i%100)
			changed++
		}
	}
	require.Equal(t, 3, changed)
}

func TestALaterStateSharesAllButItsVersion(t *testing.T) {
	object := NewSmall(1234, 5)
	next := NextSmall(object, 6, 7)
	require.Equal(t, "5", object.ResourceVersion)
	require.Equal(t, "6", next.ResourceVersion)
	require.EqualValues(t, 7, next.Generation)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { NextSmall(object, 1_000_000, 7) }), 2.0)
}

func TestSentObjectsAreWatched(t *testing.T) {
	s, object := NewSmallSource(1), NewSmall(0, 2)
	sent := make(chan error, 1)
	go func() { sent <- s.Send(t.Context(), object) }()
	event := <-s.Events()
	require.NoError(t, <-sent)
	require.Equal(t, watch.Event{Type: watch.Modified, Object: object}, event)
}
