package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reflector's part in a mirror of several namespaces is named after the place
// that made it, unless it is given a name.
func TestANamespacesReflectorIsNamedAfterThePlaceAndTheNamespace(t *testing.T) {
	status, ok := StatusOf(New(&Config{
		Namespaces: map[string]ListerWatcher{"a": &ListWatch{}}, Store: NewStore(MetaNamespaceKeyFunc),
	}))
	require.True(t, ok)
	assert.Regexp(t, `^[^/]+/[^/]+\.(go|s):\d+$`, status.Name)
	require.Len(t, status.Namespaces, 1)
	assert.Equal(t, status.Name+"/a", status.Namespaces[0].Name)
	assert.Equal(t, PhaseIdle, status.Phase)
}

func TestSyncedInAnswersForTheNamespacesThereAre(t *testing.T) {
	c := New(&Config{Namespaces: map[string]ListerWatcher{"a": &ListWatch{}}, Store: NewStore(MetaNamespaceKeyFunc)})
	checker, ok := SyncedIn(c, "a")
	require.True(t, ok)
	assert.False(t, IsDone(checker))
	assert.True(t, strings.HasSuffix(checker.Name(), "/a"), checker.Name())
	assert.NotEmpty(t, c.HasSyncedChecker().Name())
	_, ok = SyncedIn(c, "b")
	assert.False(t, ok)
	_, ok = SyncedIn(New(&Config{ListerWatcher: &ListWatch{}, Store: NewStore(MetaNamespaceKeyFunc)}), "a")
	assert.False(t, ok)
	_, ok = SyncedIn(nil, "a")
	assert.False(t, ok)
}

func TestMistakesWithNamespacesPanicAndNameTheField(t *testing.T) {
	source := &ListWatch{}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"both a ListerWatcher and Namespaces", func(c *Config) { c.ListerWatcher = source }},
		{"without a namespace", func(c *Config) { c.Namespaces[""] = source }},
		{"source of \"b\" is nil", func(c *Config) { c.Namespaces["b"] = (*ListWatch)(nil) }},
		{"source of \"c\" is nil", func(c *Config) { c.Namespaces["c"] = nil }},
		{"\"a/b\" contains a slash", func(c *Config) { c.Namespaces["a/b"] = source }},
		{"neither Queue nor Process", func(c *Config) { c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{}) }},
		{"neither Queue nor Process", func(c *Config) { c.Process = func(any, bool) error { return nil } }},
		{"neither Queue nor Process", func(c *Config) { c.ProcessBatch = func([]Delta, bool) error { return nil } }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = &storeOfAnother{Store: c.Store} }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = nil }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = InNamespace(c.Store, "a") }},
		{"Config.KeyFunction", func(c *Config) { c.KeyFunction = MetaNamespaceKeyFunc }},
		{"Config.Transform and the Store's", func(c *Config) {
			c.Transform, c.Store = transformByLabel, newTagStore(WithTransformer(transformByLabel))
		}},
		{"ReflectorOptions.ResyncPeriod is negative", func(c *Config) { c.FullResyncPeriod = -1 }},
	} {
		t.Run(c.want, func(t *testing.T) {
			config := &Config{Namespaces: map[string]ListerWatcher{"a": source}, Store: NewStore(MetaNamespaceKeyFunc)}
			New(config)
			c.change(config)
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			New(config)
		})
	}
}

// Whoever computes the namespaces, and comes to none, is not told of a field that
// was not meant.
func TestAnEmptyMapOfNamespacesIsNamedWhereNoSourceIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces map[string]ListerWatcher
		want       string
	}{
		"empty": {map[string]ListerWatcher{}, "Config.Namespaces is empty and Config.ListerWatcher is nil"},
		"none":  {nil, "cache: Config.ListerWatcher is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{Namespaces: c.namespaces, Store: NewStore(MetaNamespaceKeyFunc), ListerWatcher: &ListWatch{}}
			New(config)
			config.ListerWatcher = nil
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			New(config)
		})
	}
}
