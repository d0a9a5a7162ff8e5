package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// B12: of two concurrent Runs exactly one runs; the other returns at once and
// reports ErrAlreadyRan. Fails if the second one lists, blocks, or is silent.
func TestB12OfTwoConcurrentRunsOneReturnsAtOnce(t *testing.T) {
	for name, build := range map[string]func(*testing.T, *cachetest.Source) *rig{
		"a Store":   func(t *testing.T, s *cachetest.Source) *rig { return newRig(t, s, nil) },
		"a Process": func(t *testing.T, s *cachetest.Source) *rig { return processRig(t, s, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := build(t, newSource(t, pod("a", "1")))
				r.run()
				synctest.Wait()
				r.ctlr.RunWithContext(context.Background())
				require.Len(t, r.errors.all(), 1)
				assert.ErrorIs(t, r.errors.all()[0], cache.ErrAlreadyRan)
				assert.Equal(t, 1, r.source.ListCalls())
				r.assertEqualsSource()
				r.stop()
				r.ctlr.RunWithContext(context.Background())
				assert.Len(t, r.errors.all(), 2, "also after it has ended")
			})
		})
	}
}

func TestB12AReflectorMayRunAgainAfterItReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &errorRecorder{}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		reflector := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{ErrorHandler: h.handle})
		for round := range 3 {
			started := len(source.Requests())
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); reflector.RunWithContext(ctx) }()
			synctest.Wait()
			reflector.RunWithContext(ctx)
			assert.ErrorIs(t, reflector.ListAndWatchWithContext(ctx), cache.ErrAlreadyRan)
			assert.Len(t, h.all(), round+1, "what is returned is not reported as well")
			assert.Len(t, indexer.ListKeys(), round+1)
			if round > 0 {
				first := source.Requests()[started]
				assert.Equal(t, itoa(round), first.Options.ResourceVersion, "the version is kept for the next run")
			}
			cancel()
			<-done
			require.NoError(t, source.Apply(pod("b", itoa(round))))
		}
		source.Close()
	})
}

// B12 holds for informers: of many concurrent Runs exactly one runs.
func TestB12OfConcurrentRunsOfAnInformerExactlyOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		notified := newReplicaHandler(t)
		r.handle(notified)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() { errs <- r.inf.Run(ctx) }()
		}
		sleep(time.Minute)
		assert.Len(t, errs, cap(errs)-1)
		assert.Equal(t, 1, r.source.WatchCalls())
		assert.Equal(t, []string{"add a/1@1"}, notified.take())
		cancel()
		synctest.Wait()
		ran := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				ran++
			} else {
				assert.ErrorIs(t, err, cache.ErrAlreadyRan)
			}
		}
		assert.Equal(t, 1, ran)
		r.source.Close()
	})
}

func TestB12AControllerOfSeveralNamespacesRunsOnce(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.run()
		synctest.Wait()
		r.ctlr.RunWithContext(context.Background())
		require.Len(t, r.errors.all(), 1)
		assert.ErrorIs(t, r.errors.all()[0], cache.ErrAlreadyRan)
		assert.Equal(t, 1, r.sources["a"].ListCalls())
		r.stop()
		r.ctlr.RunWithContext(context.Background())
		assert.Len(t, r.errors.all(), 2, "also after it has ended")
	})
}
