package cache

import (
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
