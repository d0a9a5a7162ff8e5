package guarantees

import (
	"fmt"
	rand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G11, B16: the applied version is never ahead of the store: all changes up to it are applied,
// compared with the source's history. Fails if the version advances when the queue accepts a
// change. That version and content change in one step is
// TestG11AReaderThatSeesTheVersionSeesTheObject.
func TestG11TheAppliedVersionNeverRunsAheadOfTheContent(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("reflector fills the store itself: %v", direct), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkAppliedVersion(t, direct) })
		})
	}
}

func checkAppliedVersion(t *testing.T, direct bool) {
	source := newSource(t)
	// written maps a version to the content of the source at that version.
	var mu sync.Mutex
	written := map[string]map[string]string{}
	state := map[string]string{}
	// deleted maps a key to the version of its last deletion.
	deleted := map[string]string{}
	write := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
		state = map[string]string{}
		for _, obj := range source.Objects() {
			state[nameOf(obj)] = receivedOf(obj).ResourceVersion
		}
		written[source.ResourceVersion()] = state
	}
	var r *rig
	check := func() {
		version := r.indexer.LastStoreSyncResourceVersion()
		held := r.versions()
		mu.Lock()
		defer mu.Unlock()
		for key, at := range written[version] {
			have, there := held[key]
			// An object may be newer than the version, but not older, and absent
			// only if it was deleted later.
			assert.False(t, versionBefore(have, at), "the version is %s, then %s was at %s, the store has it at %s", version, key, at, have)
			assert.True(t, there || versionBefore(version, deleted[key]), "the version is %s, then %s was there, the store lacks it", version, key)
		}
		for key, at := range deleted {
			have, there := held[key]
			if !versionBefore(version, at) && there {
				assert.False(t, versionBefore(have, at), "the version is %s, %s was deleted at %s, the store has it at %s", version, key, at, have)
			}
		}
	}
	r = newRig(t, source, func(c *cache.Config) {
		c.Handler = cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { check() }, AddFunc: func(any) { check() }}
	})
	if direct {
		r.ctlr = nil
		reflector := cache.NewReflectorWithOptions(source, &object{}, r.indexer, cache.ReflectorOptions{Name: "direct", ErrorHandler: r.errors.handle})
		r.ctlr = reflectorAsController{reflector, r.indexer}
	}
	r.run()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		write(func() {
			name := itoa(random.IntN(20))
			if random.IntN(4) == 0 {
				if _, err := source.Delete("a", name); err == nil {
					deleted["a/"+name] = source.ResourceVersion()
				}
				return
			}
			assert.NoError(t, source.Apply(labelled(pod("a", name), itoa(i))))
		})
		switch random.IntN(200) {
		case 0:
			source.BreakWatches(cachetest.ErrExpired())
			sleep(time.Minute)
		case 1:
			source.CloseWatches()
			sleep(time.Minute)
		case 2:
			source.SendBookmarks()
		}
		check()
		synctest.Wait()
		check()
	}
	sleep(3 * time.Minute)
	r.assertEqualsSource()
	assert.Equal(t, source.ResourceVersion(), r.indexer.LastStoreSyncResourceVersion())
	r.stop()
}

// reflectorAsController lets a rig run a reflector without a controller.
type reflectorAsController struct {
	*cache.Reflector
	indexer cache.Indexer
}

func (reflectorAsController) HasSynced() bool { return true }

func (reflectorAsController) SyncedIn(string) (cache.DoneChecker, bool) { return nil, false }

func (reflectorAsController) HasSyncedChecker() cache.DoneChecker { return nil }

func (c reflectorAsController) LastSyncResourceVersion() string {
	return c.indexer.LastStoreSyncResourceVersion()
}

// G11: each namespace has its own version; the store's is the lowest.
func TestG11TheStoresVersionIsTheLowestOfItsNamespaces(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.sources["b"].Advance(40)
		r.sources["c"].Advance(7)
		r.sources["c"].HangLists(1)
		r.run()
		synctest.Wait()
		assert.Equal(t, "2", r.statusOf("a").AppliedVersion)
		assert.Equal(t, "42", r.statusOf("b").AppliedVersion)
		assert.Empty(t, r.statusOf("c").AppliedVersion)
		assert.Empty(t, r.ctlr.LastSyncResourceVersion())
		assert.Empty(t, r.status().ReceivedVersion)
		r.sources["c"].ReleaseHanging()
		synctest.Wait()
		assert.Equal(t, "9", r.statusOf("c").AppliedVersion)
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, "2", r.status().ReceivedVersion)

		r.sources["a"].Advance(100)
		r.sources["a"].SendBookmarks()
		synctest.Wait()
		assert.Equal(t, "102", r.statusOf("a").AppliedVersion)
		assert.Equal(t, "9", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, "9", r.indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, "9", r.status().AppliedVersion)
		r.stop()
	})
}

// G11: the store's version is the lowest of its views.
func TestG11AStoreWithViewsClaimsTheLowestVersion(t *testing.T) {
	for name, c := range map[string]struct {
		whole, a, b, want string
	}{
		"nothing yet":                     {"", "", "", ""},
		"one has none":                    {"", "5", "", ""},
		"the lower one":                   {"", "10", "9", "9"},
		"equal":                           {"", "9", "9", "9"},
		"as numbers":                      {"", "100", "99", "99"},
		"in no order":                     {"", "x", "9", ""},
		"in no order, the other way":      {"", "9", "x", ""},
		"opaque and equal":                {"", "x", "x", "x"},
		"the whole was fed, no view was":  {"7", "", "", "7"},
		"the whole was fed, one view was": {"7", "9", "", "7"},
		"a view is behind the whole":      {"7", "9", "5", "5"},
		"the whole is in no order":        {"x", "9", "9", ""},
	} {
		t.Run(name, func(t *testing.T) {
			whole, a, b := viewsOf()
			whole.Bookmark(c.whole)
			a.Bookmark(c.a)
			b.UpdateResourceVersion(c.b)
			assert.Equal(t, c.want, whole.LastStoreSyncResourceVersion())
			assert.Equal(t, c.a, a.LastStoreSyncResourceVersion())
			assert.Equal(t, c.b, b.LastStoreSyncResourceVersion())
		})
	}
}

// G11: after "too large" the next state may be older, but only that one: a later older state is a
// regression and not applied. Fails if the permission does not end.
func TestG11TooLargeAllowsOneOlderStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestoredRig(t, cache.ListPaged, 0)
		require.NoError(t, r.source.Rollback(6))
		sleep(time.Minute)
		assert.Equal(t, "6", r.ctlr.LastSyncResourceVersion())
		before := r.versions()
		require.NoError(t, r.source.ServeOldLists(1, 3))
		r.source.ResetRequests()
		r.source.BreakWatches(cachetest.ErrExpired())
		sleep(499 * time.Millisecond) // the pauses start over after a watch that lived
		assert.Equal(t, []string{`list "6"`}, requestTexts(r.source))
		assert.Equal(t, []cache.Cause{cache.CauseVersionTooLarge, causeRegression, cache.CauseExpired, causeRegression}, r.errors.causes())
		assert.Equal(t, before, r.versions())
		assert.Equal(t, "6", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}

// G11: a reader that sees a version sees its object. Fails if the version advances before the
// object is stored.
func TestG11AReaderThatSeesTheVersionSeesTheObject(t *testing.T) {
	s, version := newTagStore(), 0
	whileWriting(t, 5000, func() error {
		version++
		return s.Replace([]any{podAt("a", "1", itoa(version))}, itoa(version))
	}, func() error {
		seen := s.LastStoreSyncResourceVersion()
		received, exists := s.ObjectVersion("a/1")
		if seen != "" && (!exists || versionBefore(received.ResourceVersion, seen)) {
			return fmt.Errorf("the version is %s, that of the object %q", seen, received.ResourceVersion)
		}
		return nil
	})
}
