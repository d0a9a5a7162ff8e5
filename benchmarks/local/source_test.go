package local

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func items(t *testing.T, s *Source) (version string, all []apiruntime.Object) {
	list, err := s.List(metav1.ListOptions{})
	require.NoError(t, err)
	about, err := meta.ListAccessor(list)
	require.NoError(t, err)
	all, err = meta.ExtractList(list)
	require.NoError(t, err)
	return about.GetResourceVersion(), all
}

func TestAListHoldsTheSourcesOwnObjects(t *testing.T) {
	s := NewSource(1001, 8)
	version, all := items(t, s)
	require.Equal(t, "1001", version)
	require.Len(t, all, 1001)
	for i, object := range all {
		require.Same(t, s.objects[i], object)
	}
	about, err := meta.Accessor(all[1000])
	require.NoError(t, err)
	require.Equal(t, Key(1000), about.GetNamespace()+"/"+about.GetName())
	require.Equal(t, 1, s.Lists())
}

func TestAWatchCostsNeitherGoroutineNorMemory(t *testing.T) {
	s := NewSource(1, 0)
	before := runtime.NumGoroutine()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if w, err := s.Watch(metav1.ListOptions{}); err != nil || w == nil {
			panic("no watch")
		}
	}))
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestAnUpdateIsSentAndListed(t *testing.T) {
	s := NewSource(2, 8)
	w, err := s.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() {
		_, err := s.Update(t.Context(), 1)
		sent <- err
	}()
	event := <-w.ResultChan()
	require.NoError(t, <-sent)
	require.Equal(t, watch.Modified, event.Type)
	version, all := items(t, s)
	require.Equal(t, "3", version)
	require.Same(t, all[1], event.Object)
}

func TestAnExpiredWatchFindsEqualObjectsThatAreNotTheSame(t *testing.T) {
	s := NewSource(2, 8)
	_, before := items(t, s)
	sent := make(chan error, 1)
	go func() { sent <- s.Expire(t.Context()) }()
	event := <-s.stream
	require.NoError(t, <-sent)
	require.Equal(t, watch.Error, event.Type)
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)))
	_, after := items(t, s)
	require.Equal(t, before, after)
	require.NotSame(t, before[0], after[0])
}

func TestAChangeThatNobodyTakesEndsWithItsContext(t *testing.T) {
	s := NewSource(1, 8)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Update(ctx, 0)
	require.ErrorIs(t, err, context.Canceled)
}
