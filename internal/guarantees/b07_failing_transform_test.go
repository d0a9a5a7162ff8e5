package guarantees

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// B7, G14: a transform's result has the same outcome in a list, streaming list, relist and watch;
// it runs at most once for each received object and exactly once for each applied one. Fails if a
// path transforms twice, not at all, or treats nil as an error.
func TestB7ATransformHasOneOutcomeOnEveryPath(t *testing.T) {
	for _, path := range []string{"list", "streaming list", "watch", "relist"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				runs := map[string]int{}
				source := newSource(t)
				objects := []apiruntime.Object{
					labelled(pod("a", "kept"), "kept"), labelled(pod("a", "nil"), "nil"),
					labelled(pod("a", "fails"), "fails"), labelled(pod("a", "retyped"), "retyped"),
					labelled(pod("a", "renamed"), "renamed"),
				}
				r := newRig(t, source, func(c *cache.Config) {
					if path == "streaming list" {
						stream(c)
					}
					c.Transform = func(obj any) (any, error) {
						o := obj.(*object)
						mu.Lock()
						runs[o.Name+"@"+o.ResourceVersion]++
						mu.Unlock()
						switch o.Labels["v"] {
						case "nil":
							return nil, nil
						case "fails":
							return nil, errBoom
						case "retyped":
							return &metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, ResourceVersion: o.ResourceVersion}, nil
						case "renamed":
							o.Name = "other"
						}
						return o, nil
					}
				})
				switch path {
				case "list", "streaming list":
					require.NoError(t, source.Apply(objects...))
					r.run()
				case "watch":
					r.run()
					synctest.Wait()
					require.NoError(t, source.Apply(objects...))
				case "relist":
					r.run()
					synctest.Wait()
					source.BreakWatches(cachetest.ErrExpired())
					require.NoError(t, source.Apply(objects...))
				}
				sleep(time.Minute)
				assert.ElementsMatch(t, []string{"a/kept", "a/retyped"}, r.indexer.ListKeys())
				retyped, _, _ := r.indexer.GetByKey("a/retyped")
				assert.IsType(t, &metav1.ObjectMeta{}, retyped)
				assert.True(t, r.ctlr.HasSynced())
				assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
				var keys []string
				for _, q := range r.status().Quarantined {
					assert.Equal(t, "transform", q.Stage)
					keys = append(keys, q.Key)
				}
				assert.Equal(t, []string{"a/fails", "a/renamed"}, keys)
				mu.Lock()
				for object, n := range runs {
					assert.Equal(t, 1, n, object)
				}
				assert.Len(t, runs, len(objects))
				mu.Unlock()
				r.stop()
			})
		})
	}
}

// B7: a transform's result has the same outcome on every way into a store, and it runs once. Fails
// if a way treats nil as an error, or an error as nil.
func TestB7ATransformEndsTheSameOnEveryWayIn(t *testing.T) {
	for name, result := range map[string]struct {
		transform   func(*object) (any, error)
		held, stays bool
	}{
		"error":       {transform: func(*object) (any, error) { return nil, errBoom }, held: true},
		"panic":       {transform: func(*object) (any, error) { panic("transform panics") }, held: true},
		"another key": {transform: func(*object) (any, error) { return pod("b", "9"), nil }, held: true},
		"no key":      {transform: func(*object) (any, error) { return 7, nil }, held: true},
		"nil":         {transform: func(*object) (any, error) { return nil, nil }},
		"nil pointer": {transform: func(*object) (any, error) { return (*object)(nil), nil }},
		"changed":     {transform: func(o *object) (any, error) { return labelled(o, "x"), nil }, stays: true},
	} {
		for way, write := range writes {
			t.Run(name+" by "+way, func(t *testing.T) {
				active, calls := false, 0
				s := newTagStore(cache.WithTransformer(func(obj any) (any, error) {
					if o := obj.(*object); active && o.Name == "1" {
						calls++
						return result.transform(o)
					}
					return obj, nil
				}))
				before := podAt("a", "1", "1")
				must(t, s.Replace([]any{before, podAt("a", "2", "2")}, "2"))
				active = true
				err := write(s, podAt("a", "1", "3"))
				assert.Equal(t, 1, calls)
				got, exists, _ := s.GetByKey("a/1")
				if result.held {
					object, ok := asObjectError(err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, []any{"a/1", "3", "transform"}, []any{object.Key, object.ResourceVersion, object.Stage})
					assert.Same(t, before, got, "what was there stays")
					return
				}
				require.NoError(t, err)
				assert.Equal(t, result.stays, exists)
				if exists {
					received, _ := s.ObjectVersion("a/1")
					assert.Equal(t, cache.ObjectVersion{UID: "1", ResourceVersion: "3"}, received, "recorded before the transform")
				}
			})
		}
	}
}
