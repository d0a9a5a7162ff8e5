package sides

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
)

// everyInformer runs a test with each kind of informer.
func everyInformer(t *testing.T, test func(t *testing.T, informer func(*local.Source) Informer[*corev1.ConfigMap])) {
	for _, kind := range []struct {
		side Side
		form Form
	}{{ClientGo, SharedInformer}, {Ours, SharedInformer}, {Ours, TypedInformer}} {
		t.Run(string(kind.side)+" "+string(kind.form), func(t *testing.T) {
			test(t, func(source *local.Source) Informer[*corev1.ConfigMap] {
				informer, err := NewInformer(kind.side, kind.form, Settings[*corev1.ConfigMap]{Source: source, Example: &corev1.ConfigMap{}})
				require.NoError(t, err)
				return informer
			})
		})
	}
}

// running runs an informer until the test is over, and returns when it has synced.
func running(t *testing.T, informer Informer[*corev1.ConfigMap]) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-informer.Synced():
	case <-time.After(time.Minute):
		require.Fail(t, "not synced after a minute")
	}
}

func TestAnInformerDeliversTheListAndUpdates(t *testing.T) {
	everyInformer(t, func(t *testing.T, makeInformer func(*local.Source) Informer[*corev1.ConfigMap]) {
		source := local.NewSource(3, 8)
		informer := makeInformer(source)
		added, updated := make(chan string, 10), make(chan string, 10)
		require.NoError(t, informer.Handle(Handler[*corev1.ConfigMap]{
			Add:    func(object *corev1.ConfigMap) { added <- object.Name },
			Update: func(object *corev1.ConfigMap) { updated <- object.ResourceVersion },
		}, Ordered))
		running(t, informer)
		for range 3 {
			<-added
		}
		version, err := source.Update(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, version, <-updated)
		require.Equal(t, version, informer.Get(local.Key(1)).ResourceVersion)
		require.Nil(t, informer.Get("nowhere/nothing"))
		require.Empty(t, added)
	})
}

func TestAnExpiredWatchIsFollowedByAList(t *testing.T) {
	everyInformer(t, func(t *testing.T, makeInformer func(*local.Source) Informer[*corev1.ConfigMap]) {
		source := local.NewSource(3, 8)
		informer := makeInformer(source)
		running(t, informer)
		require.Equal(t, 1, source.Lists())
		require.NoError(t, source.Expire(t.Context()))
		require.Eventually(t, func() bool { return source.Lists() == 2 }, time.Minute, time.Millisecond)
	})
}

func TestWhatASideHasNotIsRefused(t *testing.T) {
	source := local.NewSource(0, 0)
	_, err := NewInformer(Ours, "", Settings[*corev1.ConfigMap]{Source: source, Example: &corev1.ConfigMap{}})
	require.Error(t, err)
	_, err = NewInformer("", SharedInformer, Settings[*corev1.ConfigMap]{Source: source})
	require.Error(t, err)
	for _, form := range []Form{TypedInformer, SharedInformer} {
		ours, err := NewInformer(Ours, form, Settings[*corev1.ConfigMap]{Source: source, Example: &corev1.ConfigMap{}})
		require.NoError(t, err)
		require.Error(t, ours.Handle(Handler[*corev1.ConfigMap]{}, "by pigeon"))
		require.NoError(t, ours.Handle(Handler[*corev1.ConfigMap]{}, Coalesced))
	}
}
