package cache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// B15, G11: an older version is detected, reported, not applied, and answered by
// a list at "" that is taken whatever its version. Fails if the comparison is
// left out of list, bookmark or event, or if the list after it is refused too.
func TestB15ARegressionIsReportedAndAnsweredByAListAtTheNewest(t *testing.T) {
	stale := pod("a", "1")
	stale.ResourceVersion, stale.UID = "3", "stale"
	scripts := map[string]struct {
		what    string
		regress func(*cachetest.Source)
	}{
		"event of an older state": {"event", func(s *cachetest.Source) { s.Inject(watch.Event{Type: watch.Modified, Object: stale}) }},
		"older bookmark":          {"bookmark", func(s *cachetest.Source) { s.SendBookmarksAt(3) }},
		"older list": {"list", func(s *cachetest.Source) {
			if err := s.ServeOldLists(1, 3); err != nil {
				panic(err)
			}
			s.BreakWatches(cachetest.ErrExpired())
		}},
		"a server restored from a backup": {"list", func(s *cachetest.Source) {
			if err := s.Rollback(3); err != nil {
				panic(err)
			}
			s.BreakWatches(cachetest.ErrExpired())
		}},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				for i := range 10 {
					require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
				}
				r := newRig(t, source, nil)
				r.run()
				synctest.Wait()
				before := r.versions()
				script.regress(source)
				synctest.Wait()
				assert.Equal(t, before, r.versions(), "nothing of it is applied")

				sleep(3 * time.Minute)
				var regression *RegressionError
				found := 0
				for _, err := range r.heard.all() {
					if assert.NotErrorIs(t, err, ErrAlreadyRan) && CauseOf(err) == CauseRegression {
						require.ErrorAs(t, err, &regression)
						assert.Equal(t, script.what, regression.What)
						found++
					}
				}
				assert.Equal(t, 1, found, "reported once")
				var last cachetest.Request
				for _, request := range source.Requests() {
					if request.Verb == cachetest.VerbList {
						last = request
					}
				}
				assert.Equal(t, "", last.Options.ResourceVersion, "the answer is a list at the newest version")
				r.equalsSource()

				// The list that was taken whatever its version was one only.
				for i := range 5 {
					require.NoError(t, source.Apply(labelled(pod("a", "2"), itoa(i))))
				}
				sleep(3 * time.Minute)
				require.NoError(t, source.ServeOldLists(1, 3))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(5 * time.Minute)
				assert.Equal(t, 2, r.heard.count(CauseRegression))
				r.equalsSource()
				r.stop()
			})
		})
	}
}

// An event of another key below the last version is applied and leaves the
// version where it is: fake clientsets send such. Fails if it is taken for a
// regression, or moves the version back.
func TestAnOlderEventOfAnotherKeyIsAppliedAndLeavesTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.Advance(100)
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		late := pod("a", "late")
		late.ResourceVersion = "7"
		source.Inject(watch.Event{Type: watch.Added, Object: late})
		synctest.Wait()
		assert.Contains(t, r.versions(), "a/late")
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		assert.Empty(t, r.heard.all())
		r.stop()
	})
}

// G11, B16: at no moment does the applied version claim more than the store
// holds. Everything up to it must be there: the model is the source's history.
// Fails if the store is told of a version when the queue accepts it. That the two
// change in one step is TestG11WhoSeesTheVersionSeesTheObject.
func TestG11TheAppliedVersionNeverRunsAheadOfTheContent(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("reflector fills the store itself: %v", direct), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { appliedVersionNeverAhead(t, direct) })
		})
	}
}

func appliedVersionNeverAhead(t *testing.T, direct bool) {
	source := newSource(t)
	// written maps a version to what the source held then.
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
			// Newer than the version claims is fine, older is not; and absent
			// only if it has been deleted since.
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
	r = newRig(t, source, func(c *Config) {
		c.Handler = ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { check() }, AddFunc: func(any) { check() }}
	})
	if direct {
		r.ctlr = nil
		reflector := NewReflectorWithOptions(source, &object{}, r.indexer, ReflectorOptions{Name: "direct", ErrorHandler: r.heard.handle})
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
	r.equalsSource()
	assert.Equal(t, source.ResourceVersion(), r.indexer.LastStoreSyncResourceVersion())
	r.stop()
}

// reflectorAsController lets the rig run a reflector that fills its store itself.
type reflectorAsController struct {
	*Reflector
	indexer Indexer
}

func (reflectorAsController) HasSynced() bool               { return true }
func (reflectorAsController) HasSyncedChecker() DoneChecker { return nil }
func (c reflectorAsController) LastSyncResourceVersion() string {
	return c.indexer.LastStoreSyncResourceVersion()
}

// G5: synced turns true once, and only when the whole first list, all its pages,
// is in the store; the version stays empty until then. Fails if synced or the
// version is set with the first part.
func TestG5SyncedMeansTheWholeFirstListIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1050 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		source.DelayLists(time.Second)
		r := newRig(t, source, nil)
		r.run()
		for _, want := range []int{0, 500, 1000} {
			synctest.Wait()
			assert.False(t, r.ctlr.HasSynced())
			assert.Empty(t, r.ctlr.LastSyncResourceVersion())
			assert.Len(t, r.indexer.ListKeys(), want, "parts are visible as they arrive")
			sleep(time.Second)
		}
		assert.True(t, r.ctlr.HasSynced())
		assert.True(t, IsDone(r.ctlr.HasSyncedChecker()))
		assert.Len(t, r.indexer.ListKeys(), 1050)
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		for _, event := range r.handler.take() {
			assert.Contains(t, event, "initial")
		}
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.True(t, r.ctlr.HasSynced(), "and stays so")
		r.stop()
	})
}

// G7, B21 (kubernetes#115658): what a relist lacks goes, also if it was only
// queued when the watch was lost; what it has twice is told once. Fails if
// deletions are looked for in the store alone.
func TestG7WhatARelistLacksGoesAlsoIfItWasOnlyQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "old"))
		release := make(chan struct{})
		var blockOnce sync.Once
		recorder := &recorder{}
		r := newRig(t, source, func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{
				AddFunc: func(obj any) {
					recorder.OnAdd(obj, false)
					if nameOf(obj) == "a/blocks" {
						blockOnce.Do(func() { <-release })
					}
				},
				DeleteFunc: recorder.OnDelete,
			}
		})
		r.run()
		synctest.Wait()
		require.NoError(t, source.Apply(pod("a", "blocks")))
		synctest.Wait()
		// The consumer is busy now: this one stays in the queue.
		require.NoError(t, source.Apply(pod("a", "queued")))
		synctest.Wait()
		_, err := source.DeleteSilently("a", "queued")
		require.NoError(t, err)
		_, err = source.DeleteSilently("a", "blocks")
		require.NoError(t, err)
		_, err = source.DeleteSilently("a", "old")
		require.NoError(t, err)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		close(release)
		synctest.Wait()
		assert.Empty(t, r.indexer.ListKeys())
		r.equalsSource()
		events := recorder.take()
		for _, key := range []string{"a/old", "a/blocks", "a/queued"} {
			assert.Equal(t, 1, count(events, "tombstone "+key), "%s in %q", key, events)
		}
		r.stop()
	})
}

// B8 as far as it concerns the pipeline, G2: a relist of unchanged objects tells
// the handler nothing and keeps the objects' identity. Fails if listed objects
// are not compared with what was received before.
func TestARelistOfUnchangedObjectsTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1200 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		transforms := 0
		r := newRig(t, source, func(c *Config) {
			c.Transform = func(obj any) (any, error) {
				transforms++
				out := obj.(*object).DeepCopy()
				out.ManagedFields, out.UID, out.ResourceVersion = nil, "", ""
				return out, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		before := map[string]any{}
		for _, obj := range r.indexer.List() {
			before[nameOf(obj)] = obj
		}
		assert.Equal(t, 1200, transforms)

		require.NoError(t, source.Apply(labelled(pod("a", "7"), "changed")))
		synctest.Wait()
		r.handler.take()
		source.BreakWatches(cachetest.ErrExpired())
		_, err := source.DeleteSilently("a", "8")
		require.NoError(t, err)
		sleep(time.Minute)
		assert.Equal(t, []string{"tombstone a/8"}, r.handler.take())
		assert.Equal(t, 1201, transforms)
		same := 0
		for _, obj := range r.indexer.List() {
			if before[nameOf(obj)] == obj {
				same++
			}
		}
		assert.Equal(t, 1198, same, "the old objects stay")
		r.stop()
	})
}

// The pages of a list that are answered come as one consistent list, and a token
// that expires on the way is answered by one whole list; the token that the
// server offers for an inconsistent rest is not used.
func TestAContinueTokenThatExpiresIsAnsweredByOneWholeList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1200 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		source.DelayLists(time.Second)
		r := newRig(t, source, nil)
		r.run()
		sleep(1500 * time.Millisecond)
		source.ExpireContinueTokens()
		require.NoError(t, source.Apply(pod("b", "new")))
		_, err := source.Delete("a", "0")
		require.NoError(t, err)
		sleep(time.Minute)
		r.equalsSource()
		var lists []metav1.ListOptions
		for _, request := range source.Requests() {
			if request.Verb == cachetest.VerbList {
				lists = append(lists, request.Options)
			}
		}
		require.Len(t, lists, 3)
		assert.NotEmpty(t, lists[1].Continue)
		assert.Empty(t, lists[2].Continue)
		assert.Zero(t, lists[2].Limit)
		r.stop()
	})
}

// S2: the first list asks for any version, later ones for the last seen, and
// after "expired" for the newest; pages are asked for only where that does not
// keep the server from answering out of its cache, unless a page size is set.
func TestListsAskForAnyVersionThenTheLastAndTheNewestAfterExpired(t *testing.T) {
	type ask struct {
		version string
		limit   int64
	}
	for name, row := range map[string]struct {
		options ReflectorOptions
		whole   bool
		want    []ask
	}{
		"automatic":   {ReflectorOptions{}, false, []ask{{"0", 500}, {"3", 0}, {"3", 0}, {"", 500}, {"3", 0}}},
		"whole":       {ReflectorOptions{Strategy: ListWhole}, false, []ask{{"0", 0}, {"3", 0}, {"3", 0}, {"", 0}, {"3", 0}}},
		"paged":       {ReflectorOptions{Strategy: ListPaged}, false, []ask{{"0", 500}, {"3", 500}, {"3", 500}, {"", 500}, {"3", 500}}},
		"page size":   {ReflectorOptions{PageSize: 7}, false, []ask{{"0", 7}, {"3", 7}, {"3", 7}, {"", 7}, {"3", 7}}},
		"no chunking": {ReflectorOptions{PageSize: 7}, true, []ask{{"0", 0}, {"3", 0}, {"3", 0}, {"", 0}, {"3", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
				r := newRig(t, source, func(c *Config) {
					c.ListerWatcher = &ListWatch{
						ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext, DisableChunking: row.whole,
					}
					c.ReflectorOptions = row.options
					c.ReflectorOptions.ErrorHandler = (&heard{}).handle
				})
				r.run()
				synctest.Wait()
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				source.FailLists(1, cachetest.ErrExpired())
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				var asked []ask
				for _, request := range source.Requests() {
					if request.Verb == cachetest.VerbList {
						asked = append(asked, ask{request.Options.ResourceVersion, request.Options.Limit})
					}
				}
				assert.Equal(t, row.want, asked)
				r.stop()
			})
		})
	}
}

func count(events []string, event string) int {
	n := 0
	for _, e := range events {
		if e == event {
			n++
		}
	}
	return n
}

var _ apiruntime.Object = (*object)(nil)
