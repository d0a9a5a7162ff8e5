package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// The options that a Config shares with ReflectorOptions go before them; the
// plain error handler before the one with a context.
func TestConfigFieldsGoBeforeReflectorOptions(t *testing.T) {
	var plain, with []error
	source := &ListWatch{}
	config := Config{
		ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc),
		ObjectDescription: "things", FullResyncPeriod: time.Hour, MinWatchTimeout: 7 * time.Minute,
		WatchListPageSize: 9,
		WatchErrorHandler: func(_ *Reflector, err error) { plain = append(plain, err) },
		WatchErrorHandlerWithContext: func(_ context.Context, _ *Reflector, err error) {
			with = append(with, err)
		},
		ReflectorOptions: ReflectorOptions{
			TypeDescription: "no",
			PageSize:        1,
			ResyncPeriod:    time.Minute,
			Name:            "kept",
		},
	}
	reflector := func() *Reflector {
		return New(&config).running.(*sharedIndexInformer).feeds[0].reflector
	}
	r := reflector()
	assert.Equal(t, "things", r.TypeDescription())
	assert.Equal(t, "kept", r.Name())
	assert.Equal(t, int64(9), r.WatchListPageSize)
	assert.Equal(t, 7*time.Minute, r.options.MinWatchTimeout)
	assert.Equal(t, 14*time.Minute, r.options.MaxWatchTimeout)
	r.report(t.Context(), errBoom)
	assert.Len(t, plain, 1)
	assert.Empty(t, with)
	config.WatchErrorHandler = nil
	reflector().report(t.Context(), errBoom)
	assert.Len(t, with, 1)
}

var (
	_ apiruntime.Object = (*object)(nil)
	_                   = errors.Is
)

// A panic of a user's function is one line in the message, and its stack is kept
// for nobody: there may be one for each of many objects.
func TestAQuarantinedPanicKeepsNoStack(t *testing.T) {
	indexer := NewIndexer(
		MetaNamespaceKeyFunc, Indexers{"panics": func(any) ([]string, error) { panic(errBoom) }})
	err := indexer.Add(pod("a", "1"))
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Contains(t, string(panicked.Stack), "controller_test.go")
	assert.Less(t, len(err.Error()), 200)
	assert.False(t, strings.Contains(err.Error(), "\n"))
	held := indexer.(*cache).quarantinedObjects()
	require.Len(t, held, 1)
	require.ErrorAs(t, held[0].Err, &panicked)
	assert.Empty(t, panicked.Stack)
	assert.ErrorIs(t, held[0].Err, errBoom)
	assert.Contains(t, held[0].Err.Error(), "boom")
}
