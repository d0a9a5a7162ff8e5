package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// plainSource has only the methods that a source must have.
type plainSource struct{ source *cachetest.Source }

func (p plainSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return p.source.ListWithContext(ctx, o)
}

func (p plainSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return p.source.WatchWithContext(ctx, o)
}

func TestWhatASourceLacksIsSkippedWithTheReason(t *testing.T) {
	config := ListerWatcherConfig{
		Virtual: true, NoBookmarks: true, NoTimeouts: true,
		New: func(t testing.TB) ListerWatcherRig {
			source := cachetest.NewSource(cachetest.Options{})
			t.Cleanup(source.Close)
			rig := RigOver(source, "shop", plainSource{source})
			return ListerWatcherRig{Source: rig.Source, Create: rig.Create, Update: rig.Update, Delete: rig.Delete}
		},
	}
	skipped := map[string]string{}
	for _, c := range sourceChecks() {
		lacking, err := runCheck(t, config.pace(), c, config.start)
		require.NoError(t, err, c.name)
		if lacking != "" {
			skipped[c.name] = lacking
		}
	}
	assert.Equal(t, map[string]string{
		"ListItems passes the items of the list":                     "the source has no ListItems: a reflector asks it for whole lists",
		"an error of take ends ListItems":                            "the source has no ListItems: a reflector asks it for whole lists",
		"a watch resumes after a bookmark":                           "NoBookmarks: the source sends none",
		"a watch ends after timeoutSeconds":                          "NoTimeouts: the source takes no notice of timeoutSeconds",
		"a watch that the backend ends is closed and can be resumed": "the rig has no EndWatches",
		"a list without a context is equal":                          "the source has no List and Watch: a reflector calls ListWithContext and WatchWithContext",
		"a watch from a compacted version is expired":                "the rig has no Compact, so nothing expires",
		"a list is possible after expiry":                            "the rig has no Compact, so nothing expires",
		"a continue token of a compacted version is expired":         "the rig has no Compact, so nothing expires",
		"a streaming list is complete and ends in a bookmark":        "the source has no IsWatchListSemanticsUnSupported: a reflector lists it",
		"an object that leaves a label selector is deleted":          "the rig has no Label, so no object enters or leaves a selector",
		"an empty streaming list ends too":                           "the source has no IsWatchListSemanticsUnSupported: a reflector lists it",
	}, skipped)
}

// plainStore has only the methods that a store must have.
type plainStore struct{ store goodStore }

func (p plainStore) Add(obj any) error                        { return p.store.Add(obj) }
func (p plainStore) Update(obj any) error                     { return p.store.Update(obj) }
func (p plainStore) Delete(obj any) error                     { return p.store.Delete(obj) }
func (p plainStore) Replace(list []any, version string) error { return p.store.Replace(list, version) }
func (p plainStore) Resync() error                            { return p.store.Resync() }

func TestAStoreThatCannotBeReadIsCheckedByItsContent(t *testing.T) {
	config := StoreConfig{
		New:     func(testing.TB) ReflectorStore { return plainStore{newGoodStore()} },
		Content: func(store ReflectorStore) ([]any, error) { return store.(plainStore).store.List(), nil },
	}
	run := []string{}
	for _, c := range storeChecks() {
		lacking, err := runCheck(t, config.pace(), c, config.start)
		require.NoError(t, err, c.name)
		if lacking == "" {
			run = append(run, c.name)
		}
	}
	assert.Equal(t, []string{
		"a new store is empty",
		"an added object is found under its key",
		"a newer state replaces the older one",
		"a deleted object is not found", "a tombstone deletes its key",
		"Replace is the whole content",
		"Resync changes nothing",
		"an object without a key is an error and changes nothing",
		"a list with an object without a key is an error and loses nothing",
	}, run)
}
