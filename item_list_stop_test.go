package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How a list that comes item by item is stopped: by its context, a panic, or the store.

// G9: Run returns at the very instant at which its context ends, whatever a list that
// comes item by item waits for. Fails if the hand-over does not select on the context.
func TestG9AListItemByItemEndsWithItsContext(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, row := range map[string]struct {
		source func(ctx context.Context, page, item int) error
		store  func(ctx context.Context, part ReplacementPart) error
	}{
		"while the source waits before anything": {source: func(ctx context.Context, _, _ int) error { return wait(ctx) }},
		"while the source waits in the middle": {source: func(ctx context.Context, _, item int) error {
			if item == 250 {
				return wait(ctx)
			}
			return nil
		}},
		"while the store waits": {store: func(ctx context.Context, _ ReplacementPart) error { return wait(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := &itemSource{Source: filledSource(t, 1000), each: row.source}, &heard{}
				store := &partStore{Store: NewStore(MetaNamespaceKeyFunc), onPart: row.store}
				if row.store == nil {
					store.onPart = func(context.Context, ReplacementPart) error { return nil }
				}
				stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{Strategy: ListWhole, ErrorHandler: h.handle}))
				sleep(time.Minute)
				ended := time.Now()
				stop()
				assert.Zero(t, time.Since(ended))
				assert.Empty(t, h.all())
				source.Close()
			})
		})
	}
}

// G9: likewise while the queue has no room, for the consumer writes: it is in an index
// function, which alone is waited for.
func TestG9AListItemByItemEndsWhileTheQueueHasNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := &itemSource{Source: filledSource(t, 1000)}, make(chan struct{})
		r := newRig(t, source.Source, byItem(source))
		require.NoError(t, r.indexer.AddIndexers(Indexers{"slow": func(any) ([]string, error) {
			<-release
			return nil, nil
		}}))
		r.run()
		sleep(time.Minute)
		taken := source.takenOf(0)
		assert.Less(t, taken, 5*partSize, "and is not read further")
		r.cancel()
		sleep(time.Hour)
		assert.Equal(t, taken, source.takenOf(0))
		assert.Equal(t, PhaseStopped, r.status().Phase)
		close(release)
		<-r.done
		assert.Empty(t, r.heard.all())
		source.Close()
	})
}

// G9: a source that does not listen is waited for, and named after 30 s.
func TestG9AnItemListerThatIgnoresItsContextIsWaitedForAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := &itemScript{list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			assert.NoError(t, takeAll(take, metav1.ListMeta{}, 1, 50))
			time.Sleep(time.Minute)
			assert.ErrorIs(t, take(metav1.ListMeta{}, podAt("a", "51", "51")), context.Canceled, "at once")
			return metav1.ListMeta{}, nil
		}}, &heard{}
		stop := runReflector(t, NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle}))
		began := time.Now()
		stop()
		assert.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, []Cause{CauseSlowSource}, h.causes())
		assert.ErrorContains(t, h.all()[0], "List")
	})
}

// A part that the store refuses ends the call into the source, which is waited for;
// it is reported as the store's, once, and the list is made again after a pause.
// Fails if the source goes on, or its own error is reported in place of the store's.
func TestAStoreThatRefusesAPartEndsTheCallIntoTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		refusals := 0
		store := &partStore{Store: NewStore(MetaNamespaceKeyFunc), onPart: func(context.Context, ReplacementPart) error {
			if refusals++; refusals == 2 {
				return errBoom
			}
			return nil
		}}
		h := &heard{}
		source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(ctx context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			err := takeAll(take, metav1.ListMeta{ResourceVersion: "1000"}, 1, 1000)
			if n == 1 {
				assert.ErrorIs(t, err, context.Canceled)
				assert.Error(t, take(metav1.ListMeta{}, podAt("a", "more", "1")), "and stays so")
				time.Sleep(time.Second)
				ended = time.Now()
				return metav1.ListMeta{}, fmt.Errorf("the server's fault: %w", err)
			}
			return metav1.ListMeta{ResourceVersion: "1000"}, err
		}}
		began := time.Now()
		stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle}))
		assert.Empty(t, h.all(), "not before the call has ended")
		sleep(time.Minute)
		assert.Equal(t, time.Second, ended.Sub(began))
		assert.Equal(t, []Cause{CauseStore}, h.causes())
		assert.NotContains(t, h.all()[0].Error(), "server's fault")
		assert.Equal(t, 2, source.lists)
		assert.Len(t, store.ListKeys(), 1000)
		stop()
	})
}

// B17, S16: a panic of the source, be it before an item, or of the store, comes out of
// Run, and nothing is left running.
func TestB17APanicInAListItemByItemLeavesNothingBehind(t *testing.T) {
	for _, item := range []int{0, 1, 150} {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 300), each: func(_ context.Context, _, n int) error {
				if n == item {
					panic(errBoom)
				}
				return nil
			}}
			r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: ListWhole})
			func() {
				defer func() {
					panicked, typed := recover().(*PanicError)
					require.True(t, typed)
					assert.ErrorIs(t, panicked, errBoom)
					assert.Contains(t, string(panicked.Stack), "item_list_stop_test.go")
				}()
				r.Run(make(chan struct{}))
			}()
			assert.Equal(t, PhaseStopped, r.Status().Phase)
			source.Close()
		})
	}
	t.Run("of the store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			source := &itemScript{list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
				err := takeAll(take, metav1.ListMeta{}, 1, 1000)
				time.Sleep(time.Second)
				ended = true
				return metav1.ListMeta{}, err
			}}
			store := &partStore{Store: NewStore(MetaNamespaceKeyFunc), onPart: func(context.Context, ReplacementPart) error { panic("boom") }}
			assert.PanicsWithValue(t, "boom", func() { NewReflector(source, nil, store, 0).Run(make(chan struct{})) })
			assert.True(t, ended, "the call is waited for")
		})
	})
}
