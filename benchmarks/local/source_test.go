package local

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// readPages lists everything in pages.
func readPages(t *testing.T, p *Pages, limit int64) (version string, pages int, all []Object) {
	options := metav1.ListOptions{Limit: limit}
	for {
		list, err := p.List(options)
		require.NoError(t, err)
		page := list.(*metav1.PartialObjectMetadataList)
		pages++
		all = append(all, page.Items...)
		options.Continue = page.Continue
		if options.Continue == "" {
			return page.ResourceVersion, pages, all
		}
	}
}

// Fails if a page is handed out twice, or prepared ones differ from others.
func TestObjectsComeInPagesMadeBeforeOrNot(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		p := NewPages(1001)
		if prepared {
			p.Prepare(100)
		}
		for lists := range 2 {
			version, pages, all := readPages(t, p, 100)
			require.Equal(t, "1001", version)
			require.Equal(t, 11, pages)
			require.Len(t, all, 1001)
			for i := range all {
				require.Equal(t, *NewObject(i, uint64(i+1)), all[i])
			}
			require.Equal(t, lists+1, p.Lists())
		}
		require.Empty(t, p.prepared, "nothing is kept that was handed out")
	}
}

func TestAChangedListDiffersInEachStepth(t *testing.T) {
	p := NewPages(250)
	require.Equal(t, 3, p.Change(100))
	version, _, all := readPages(t, p, 100)
	require.Equal(t, "500", version)
	changed := 0
	for i := range all {
		before := NewObject(i, uint64(i+1))
		require.Equal(t, before.UID, all[i].UID)
		if all[i].ResourceVersion != before.ResourceVersion {
			require.Zero(t, i%100)
			changed++
		}
	}
	require.Equal(t, 3, changed)
}

// Fails if the source costs an informer anything.
func TestASharedListAndItsWatchHoldTheSameObjects(t *testing.T) {
	object := NewObject(0, 1)
	source := NewShared(object)
	list, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Same(t, object, list.(*sharedList).Items[0])
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if w, err := source.Watch(metav1.ListOptions{}); err != nil || w == nil {
			panic("no watch")
		}
	}))

	next := Next(object, 2, 7)
	require.Equal(t, "1", object.ResourceVersion)
	require.EqualValues(t, 7, next.Generation)
	sent := make(chan error, 1)
	go func() { sent <- source.Send(t.Context(), next) }()
	event := <-source.Events()
	require.NoError(t, <-sent)
	require.Equal(t, watch.Event{Type: watch.Modified, Object: next}, event)
}
