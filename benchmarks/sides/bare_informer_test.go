package sides

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/local"
)

func TestEveryInformerMirrorsSmallObjectsThroughARelist(t *testing.T) {
	const objects = 700
	for _, kind := range []struct {
		side Side
		form Form
	}{{ClientGo, SharedInformer}, {Ours, SharedInformer}, {Ours, TypedInformer}, {Floor, SharedInformer},
		{ClientGo, StoreAndHandler}, {Ours, StoreAndHandler}} {
		t.Run(string(kind.side)+" "+string(kind.form), func(t *testing.T) {
			source := local.NewSmallSource(objects)
			settings := Settings[*local.Small]{Source: source, Example: &local.Small{}, ByNamespace: local.ByNamespace,
				Others: map[string]func(*local.Small) ([]string, error){"tier": local.ByTier}}
			informer, err := NewInformer(kind.side, kind.form, settings)
			require.NoError(t, err)
			added, updated := make(chan *local.Small, 2*objects), make(chan *local.Small, 2*objects)
			require.NoError(t, informer.Handle(Handler[*local.Small]{
				Add:    func(object *local.Small) { added <- object },
				Update: func(object *local.Small) { updated <- object },
			}, Ordered))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				informer.Run(ctx)
			}()
			for range objects {
				<-added
			}
			<-informer.Synced()
			changed := source.Change(100)
			require.NoError(t, source.Expire(t.Context()))
			last := local.NextSmall(local.NewSmall(1, 1), 3*objects, 0)
			for n := 0; n < changed; {
				// client-go also notifies of unchanged objects.
				version, err := strconv.Atoi((<-updated).ResourceVersion)
				require.NoError(t, err)
				if version > objects {
					n++
				}
			}
			require.NoError(t, source.Send(t.Context(), last))
			for <-updated != last {
			}
			cancel()
			<-done
			require.Equal(t, last, informer.Get(local.SmallKey(1)))
			require.Nil(t, informer.Get("nowhere/nothing"))
			require.Empty(t, added)
		})
	}
}
