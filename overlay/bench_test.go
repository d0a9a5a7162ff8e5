package overlay_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/overlay"
)

// newSyncedOverlay returns an informer of 10,000 objects whose run has ended, and its overlay.
func newSyncedOverlay(t testing.TB) (*cache.Informer[*object], *overlay.Overlay[*object]) {
	source := cachetest.NewSource(cachetest.Options{})
	defer source.Close()
	for i := range 10_000 {
		_, err := source.Create(newObject(strconv.Itoa(i), "a"))
		require.NoError(t, err)
	}
	items := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
	o, err := overlay.New(items, overlay.Options[*object]{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- items.Run(ctx) }()
	require.NoError(t, items.WaitSynced(ctx))
	cancel()
	require.NoError(t, <-ended)
	return items, o
}

func keys() (keys []string) {
	for i := range 10_000 {
		keys = append(keys, fmt.Sprint("shop/", i))
	}
	return keys
}

// Get of the informer, of an overlay without and with an observed write, and of a key with one.
func BenchmarkGet(b *testing.B) {
	items, o := newSyncedOverlay(b)
	keys := keys()
	get := func(get func(string) (*object, error)) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := get(keys[i%len(keys)]); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("informer", get(items.Get))
	b.Run("overlay", get(o.Get))
	require.NoError(b, o.Observed(opaque("1", "u", "100000")))
	b.Run("overlay, one write", get(o.Get))
	b.Run("overlay, the written key", get(func(string) (*object, error) { return o.Get(keys[1]) }))
}

func TestAReadAllocatesNothingWhileNothingIsObserved(t *testing.T) {
	_, o := newSyncedOverlay(t)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = o.Get("shop/1")
		_, _ = o.ByNamespace("shop").Lookup("1")
	}))
}
