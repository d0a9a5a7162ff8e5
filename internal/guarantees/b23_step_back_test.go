package guarantees

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// replacingStore records the options of its replacements.
type replacingStore struct {
	cache.Indexer
	resets []bool
}

func (s *replacingStore) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	s.resets = append(s.resets, options.VersionsReset)
	return s.Indexer.(cache.Replacer).BeginReplace(options)
}

// B23: the first state of a later run may be older than the last one of the previous run: that is
// reported once, and ReplaceOptions say that versions are reissued. Fails if they do not because
// the regression was reported before the list begins.
func TestB23AStepBackBetweenTwoRunsResetsVersions(t *testing.T) {
	for name, strategy := range withStrategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := writtenSource(t)
				store := &replacingStore{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
				reported := &errorRecorder{}
				r := cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Strategy: strategy, ErrorHandler: reported.handle})
				run := func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var running sync.WaitGroup
					running.Go(func() { r.RunWithContext(ctx) })
					running.Wait()
				}
				run()
				require.Equal(t, "13", r.LastSyncResourceVersion())
				require.NoError(t, source.Rollback(3))
				if strategy == cache.ListStreaming {
					source.FailWatches(1, cachetest.ErrExpired())
				} else {
					source.FailLists(1, cachetest.ErrExpired())
				}
				reported.take()
				store.resets = nil
				run()
				require.Equal(t, "3", r.LastSyncResourceVersion())
				assert.Equal(t, true, store.resets[len(store.resets)-1])
				var causes []cache.Cause
				for _, err := range reported.take() {
					causes = append(causes, cache.CauseOf(err))
				}
				assert.Equal(t, []cache.Cause{cache.CauseExpired, causeRegression}, causes)
			})
		})
	}
}
