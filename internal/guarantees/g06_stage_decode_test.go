package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// neverUndecoded is a transform that fails the test if it receives an UndecodableObject.
func neverUndecoded(t *testing.T) func(any) (any, error) {
	return func(obj any) (any, error) {
		assert.NotImplements(t, (*cache.UndecodableObject)(nil), obj)
		return obj, nil
	}
}

func initialEventsEnd(version string) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// G6: an undecoded object without a readable name keeps no stored state, in a list or an event. It is
// reported by its position or version, which counts. A namespace alone is no name. Deletions have
// another test.
func TestAnUndecodedObjectWithoutANameIsReportedAndNotKept(t *testing.T) {
	for name, nameless := range map[string]*object{
		"nothing readable":   {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}},
		"namespace readable": {ObjectMeta: metav1.ObjectMeta{Namespace: "a", ResourceVersion: "9"}},
	} {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &errorRecorder{}
					source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) {
						return newRecordedWatch(watch.Event{Type: kind, Object: newUndecoded(nameless)}), nil
					}}
					r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle})
					stop := runReflector(t, r)
					require.Len(t, h.all(), 1)
					assert.ErrorContains(t, h.all()[0], "watch event at version 9")
					assert.Equal(t, kind == watch.Deleted, len(r.Status().Quarantined) == 1)
					assert.Equal(t, "9", r.LastSyncResourceVersion())
					stop()
				})
			})
		}
		t.Run(name+", relist", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []apiruntime.Object{podAt("a", "2", "8"), newUndecoded(nameless)}}, nil
				}, watch: silentWatch}
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
				require.NoError(t, indexer.Replace([]any{podAt("a", "1", "5")}, "5"))
				stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{ErrorHandler: h.handle}))
				assert.Equal(t, []string{"a/2"}, indexer.ListKeys())
				require.Len(t, h.all(), 1)
				assert.ErrorContains(t, h.all()[0], "item 2 of the list")
				stop()
			})
		})
	}
}

// A custom key function keeps an undecoded object through a relist if it only needs metadata; one that
// needs the typed object loses it.
func TestAKeyFunctionThatCopesWithMetadataKeepsUndecodedObjects(t *testing.T) {
	for name, row := range map[string]struct {
		keyFunc cache.KeyFunc
		want    []string
	}{
		"copes":           {func(obj any) (string, error) { return "key of " + nameOf(obj), nil }, []string{"key of a/1", "key of a/2"}},
		"needs an object": {func(obj any) (string, error) { return "key of " + obj.(*object).Name, nil }, []string{"key of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newRig(t, source, func(c *cache.Config) {
					c.ListerWatcher = &badDecoder{source, func(any) error { return errBoom }}
					c.Store = cache.NewIndexer(row.keyFunc, nil)
				})
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Equal(t, 1, r.errors.count(causeInvalidObject))
				assert.ElementsMatch(t, row.want, r.indexer.ListKeys())
				r.stop()
			})
		})
	}
}

// The version of a bookmark that could not be decoded counts like any other's, if it can
// be read; the bookmark is reported.
func TestABookmarkThatCannotBeDecodedMovesTheVersion(t *testing.T) {
	for name, row := range map[string]struct {
		version, want string
		causes        []cache.Cause
	}{
		"newer":      {"9", "9", []cache.Cause{causeInvalidObject}},
		"unreadable": {"", "5", []cache.Cause{causeInvalidObject}},
		"older":      {"3", "5", []cache.Cause{causeInvalidObject, causeRegression}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &errorRecorder{}
				source := &funcSource{watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newRecordedWatch(), nil
					}
					return newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: newUndecoded(podAt("", "", row.version))}), nil
				}}
				r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				assert.Equal(t, row.want, r.LastSyncResourceVersion())
				assert.Equal(t, row.causes, h.causes())
				assert.Empty(t, r.Status().Quarantined)
				stop()
			})
		})
	}
}

// An undecodable bookmark does not end a streaming list, whatever its metadata; the stream is abandoned
// because it is silent.
func TestAnUndecodedBookmarkDoesNotEndAStreamingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, end := &errorRecorder{}, newUndecoded(podAt("", "", "9"))
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
		}, watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newRecordedWatch(), nil
			}
			return newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: end}), nil
		}}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		sleep(9 * time.Second)
		assert.False(t, r.Status().Synced)
		sleep(10 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, []cache.Cause{causeInvalidObject, causeNoBookmark}, h.causes())
		stop()
	})
}

// G6: in a streaming list the last state of an object counts: decoded after undecoded is applied and not
// quarantined, undecoded after decoded keeps the decoded one, and a deletion, decoded or not, removes
// it. Fails if a key stays quarantined.
func TestG6InAStreamingListTheLastStateOfAnObjectCounts(t *testing.T) {
	good := func(name, version string) watch.Event {
		return watch.Event{Type: watch.Modified, Object: podAt("a", name, version)}
	}
	unread := func(kind watch.EventType, name, version string) watch.Event {
		return watch.Event{Type: kind, Object: newUndecoded(podAt("a", name, version))}
	}
	events := []watch.Event{
		unread(watch.Added, "recovered", "1"), good("recovered", "2"),
		good("spoilt", "3"), unread(watch.Modified, "spoilt", "4"),
		good("removed", "5"), unread(watch.Deleted, "removed", "6"),
		unread(watch.Added, "never", "7"), unread(watch.Deleted, "never", "8"),
		unread(watch.Added, "seen at its end", "9"), {Type: watch.Deleted, Object: podAt("a", "seen at its end", "10")},
		{Type: watch.Bookmark, Object: initialEventsEnd("11")},
	}
	for name, store := range map[string]func(cache.Indexer) cache.ReflectorStore{
		"ours":    func(i cache.Indexer) cache.ReflectorStore { return i },
		"foreign": func(i cache.Indexer) cache.ReflectorStore { return minimalStore{i} },
	} {
		for _, relist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, relist %v", name, relist), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					indexer, h := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), &errorRecorder{}
					if relist {
						require.NoError(t, indexer.Replace([]any{podAt("a", "removed", "1"), podAt("a", "never", "1"), podAt("a", "spoilt", "1")}, "1"))
					}
					source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
					r := cache.NewReflectorWithOptions(source, &object{}, store(indexer), cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					assert.ElementsMatch(t, []string{"a/recovered", "a/spoilt"}, indexer.ListKeys())
					spoilt, _, _ := indexer.GetByKey("a/spoilt")
					assert.Equal(t, "3", receivedOf(spoilt).ResourceVersion)
					require.Len(t, r.Status().Quarantined, 1)
					assert.Equal(t, "a/spoilt", r.Status().Quarantined[0].Key)
					assert.Len(t, h.all(), 6)
					assert.Equal(t, 6, h.count(causeInvalidObject))
					assert.True(t, r.Status().Synced)
					stop()
				})
			})
		}
	}
}

// S5: an object that could not be decoded ends the synthetic events, too, if it was not
// added.
func TestAnUndecodedChangeEndsTheSyntheticEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &funcSource{
			list: func(metav1.ListOptions) (apiruntime.Object, error) { return &metav1.PartialObjectMetadataList{}, nil },
			watch: func(context.Context, int) (watch.Interface, error) {
				return newRecordedWatch(
					watch.Event{Type: watch.Added, Object: newUndecoded(podAt("a", "1", "9"))},
					watch.Event{Type: watch.Modified, Object: newUndecoded(podAt("a", "1", "4"))},
				), nil
			},
		}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})
		stop := runReflector(t, r)
		assert.Equal(t, "4", r.LastSyncResourceVersion())
		stop()
	})
}

// G6: an undecoded object from a source of one namespace is in that namespace, even if its own is not
// readable. Fails if a list deletes it, or if its deletion is not applied.
func TestG6AnUndecodedObjectInAViewIsInItsNamespace(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		source := func() *funcSource {
			lists := 0
			return &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
				list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(5 + lists)}}
				if lists++; lists == 1 {
					list.Items = []apiruntime.Object{podAt("a", "1", "5"), podAt("a", "2", "5")}
				} else {
					list.Items = []apiruntime.Object{newUndecoded(podAt("", "1", "6"))}
				}
				return list, nil
			}, watch: func(_ context.Context, n int) (watch.Interface, error) {
				switch {
				case n == 1:
					return newRecordedWatch(errorEvent(cachetest.ErrExpired())), nil
				case deleted:
					return newRecordedWatch(watch.Event{Type: watch.Deleted, Object: newUndecoded(podAt("", "1", "7"))}), nil
				}
				return newRecordedWatch(), nil
			}}
		}
		want := []string{"a/1"}
		if deleted {
			want = []string{}
		}
		t.Run(fmt.Sprintf("a view, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &errorRecorder{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
				r := cache.NewReflectorWithOptions(source(), nil, cache.InNamespace(store, "a"), cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				assert.Equal(t, !deleted, len(r.Status().Quarantined) == 1)
				stop()
			})
		})
		t.Run(fmt.Sprintf("Config.Namespaces, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &errorRecorder{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
				c := cache.New(&cache.Config{Namespaces: map[string]cache.Source{"a": cache.ToListerWatcherWithContext(source())}, Store: store, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: h.handle}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); c.RunWithContext(ctx) }()
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				assert.Equal(t, !deleted, len(c.Status().Quarantined) == 1)
				cancel()
				<-done
			})
		})
	}
}
