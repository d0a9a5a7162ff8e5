package cache

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podInformerOf(t *testing.T, set *InformerSet, source ListerWatcher) (*Informer[*object], func()) {
	t.Helper()
	informer, release, err := InformerOf(set, source, InformerConfig[*object]{})
	require.NoError(t, err)
	return informer, release
}

// runSet runs a set; end ends that and waits.
func runSet(t *testing.T, set *InformerSet) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- set.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-over)
	}
}

func TestASetHasOneInformerOfEachSourceAndType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source, other := newSource(t), newSource(t)
		one, _ := podInformerOf(t, &set, source)
		two, _ := podInformerOf(t, &set, source)
		three, _ := podInformerOf(t, &set, other)
		four, _, err := InformerOf(&set, source, InformerConfig[metav1.Object]{})
		require.NoError(t, err)
		require.Same(t, one, two)
		require.NotSame(t, one, three)
		require.NotSame(t, one.shared, four.shared)
		require.Len(t, set.Status(), 3)
	})
}

func TestASetWithoutInformersHasNothingToWaitFor(t *testing.T) {
	var set InformerSet
	require.ErrorIs(t, set.WaitSynced(t.Context()), errNothingToWaitFor)
}

// Run of an informer of a set is the set's to call. Fails if one for which somebody else
// has done so counts, after its end, for those who wait for the set or ask how it is.
func TestAnInformerRunToItsEndOutsideItsSetLeavesTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		dead, _ := podInformerOf(t, &set, source)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, dead.Run(ctx))
		assert.Empty(t, set.Status())
		assert.ErrorIs(t, set.WaitSynced(t.Context()), errNothingToWaitFor)
		end := runSet(t, &set)
		alive, _ := podInformerOf(t, &set, source)
		assert.NoError(t, set.WaitSynced(t.Context()))
		assert.Equal(t, 1, alive.Len())
		assert.Len(t, set.Status(), 1)
		end()
	})
}
