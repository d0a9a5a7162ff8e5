package cache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// That an object which could not be decoded is quarantined in lists and events, by
// name, is TestB6OneBadObjectIsQuarantinedAndHoldsNobodyBack. Here is the rest.

// neverUndecoded fails the test if a function of the user's sees an Undecoded.
func neverUndecoded(t *testing.T) func(any) (any, error) {
	return func(obj any) (any, error) {
		assert.NotImplements(t, (*Undecoded)(nil), obj)
		return obj, nil
	}
}

func initialEventsEnd(version string) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// G6: without a readable name an undecoded object keeps nothing, in a list or out of
// it: it is reported by its place or version, which counts. A namespace alone is no
// name. What a deletion does to the quarantine has a test of its own.
func TestAnUndecodedObjectWithoutANameKeepsNothing(t *testing.T) {
	for name, nameless := range map[string]*object{
		"nothing readable":   {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}},
		"namespace readable": {ObjectMeta: metav1.ObjectMeta{Namespace: "a", ResourceVersion: "9"}},
	} {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &heard{}
					source := &scripted{watch: func(context.Context, int) (watch.Interface, error) {
						return newProbe(watch.Event{Type: kind, Object: undecoded(nameless)}), nil
					}}
					r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle})
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
				h := &heard{}
				source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []apiruntime.Object{podAt("a", "2", "8"), undecoded(nameless)}}, nil
				}, watch: silentWatch}
				indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
				require.NoError(t, indexer.Replace([]any{podAt("a", "1", "5")}, "5"))
				stop := runReflector(t, NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{ErrorHandler: h.handle}))
				assert.Equal(t, []string{"a/2"}, indexer.ListKeys())
				require.Len(t, h.all(), 1)
				assert.ErrorContains(t, h.all()[0], "item 2 of the list")
				stop()
			})
		})
	}
}

// A key function of one's own keeps an undecoded object through a relist if it copes
// with the metadata alone; one that needs the typed object loses it.
func TestAKeyFunctionThatCopesWithMetadataKeepsUndecodedObjects(t *testing.T) {
	for name, row := range map[string]struct {
		keyFunc KeyFunc
		want    []string
	}{
		"copes":           {func(obj any) (string, error) { return "key of " + nameOf(obj), nil }, []string{"key of a/1", "key of a/2"}},
		"needs an object": {func(obj any) (string, error) { return "key of " + obj.(*object).Name, nil }, []string{"key of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newRig(t, source, func(c *Config) {
					c.ListerWatcher = &badDecoder{source, func(any) error { return errBoom }}
					c.Store = NewIndexer(row.keyFunc, nil)
				})
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				assert.Equal(t, 1, r.heard.count(CauseObject))
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
		causes        []Cause
	}{
		"newer":      {"9", "9", []Cause{CauseObject}},
		"unreadable": {"", "5", []Cause{CauseObject}},
		"older":      {"3", "5", []Cause{CauseObject, CauseRegression}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				source := &scripted{watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newProbe(), nil
					}
					return newProbe(watch.Event{Type: watch.Bookmark, Object: undecoded(podAt("", "", row.version))}), nil
				}}
				r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				assert.Equal(t, row.want, r.LastSyncResourceVersion())
				assert.Equal(t, row.causes, h.causes())
				assert.Empty(t, r.Status().Quarantined)
				stop()
			})
		})
	}
}

// In a streaming list a bookmark that could not be decoded is not its end, whatever its
// metadata say; the stream is given up for being quiet.
func TestAnUndecodedBookmarkDoesNotEndAStreamingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, end := &heard{}, undecoded(podAt("", "", "9"))
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
		}, watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newProbe(), nil
			}
			return newProbe(watch.Event{Type: watch.Bookmark, Object: end}), nil
		}}
		r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		sleep(9 * time.Second)
		assert.False(t, r.Status().Synced)
		sleep(10 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, []Cause{CauseObject, CauseNoBookmark}, h.causes())
		stop()
	})
}

// G6: in a streaming list the last word of an object counts: decoded after undecoded is
// taken and not quarantined, undecoded after decoded leaves what came, and deleted,
// decoded or not, is gone. Fails if what a stream once held back stays held back.
func TestG6InAStreamingListTheLastWordOfAnObjectCounts(t *testing.T) {
	good := func(name, version string) watch.Event {
		return watch.Event{Type: watch.Modified, Object: podAt("a", name, version)}
	}
	unread := func(kind watch.EventType, name, version string) watch.Event {
		return watch.Event{Type: kind, Object: undecoded(podAt("a", name, version))}
	}
	events := []watch.Event{
		unread(watch.Added, "healed", "1"), good("healed", "2"),
		good("spoilt", "3"), unread(watch.Modified, "spoilt", "4"),
		good("gone", "5"), unread(watch.Deleted, "gone", "6"),
		unread(watch.Added, "never", "7"), unread(watch.Deleted, "never", "8"),
		unread(watch.Added, "seen at its end", "9"), {Type: watch.Deleted, Object: podAt("a", "seen at its end", "10")},
		{Type: watch.Bookmark, Object: initialEventsEnd("11")},
	}
	for name, store := range map[string]func(Indexer) ReflectorStore{
		"ours":    func(i Indexer) ReflectorStore { return i },
		"foreign": func(i Indexer) ReflectorStore { return foreignOnly{i} },
	} {
		for _, relist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, relist %v", name, relist), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					indexer, h := NewIndexer(MetaNamespaceKeyFunc, nil), &heard{}
					if relist {
						require.NoError(t, indexer.Replace([]any{podAt("a", "gone", "1"), podAt("a", "never", "1"), podAt("a", "spoilt", "1")}, "1"))
					}
					source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return newProbe(events...), nil }}
					r := NewReflectorWithOptions(source, &object{}, store(indexer), ReflectorOptions{Strategy: ListStreaming, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					assert.ElementsMatch(t, []string{"a/healed", "a/spoilt"}, indexer.ListKeys())
					spoilt, _, _ := indexer.GetByKey("a/spoilt")
					assert.Equal(t, "3", receivedOf(spoilt).ResourceVersion)
					require.Len(t, r.Status().Quarantined, 1)
					assert.Equal(t, "a/spoilt", r.Status().Quarantined[0].Key)
					assert.Len(t, h.all(), 6)
					assert.Equal(t, 6, h.count(CauseObject))
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
		source := &scripted{
			list: func(metav1.ListOptions) (apiruntime.Object, error) { return &metav1.PartialObjectMetadataList{}, nil },
			watch: func(context.Context, int) (watch.Interface, error) {
				return newProbe(
					watch.Event{Type: watch.Added, Object: undecoded(podAt("a", "1", "9"))},
					watch.Event{Type: watch.Modified, Object: undecoded(podAt("a", "1", "4"))},
				), nil
			},
		}
		r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: (&heard{}).handle})
		stop := runReflector(t, r)
		assert.Equal(t, "4", r.LastSyncResourceVersion())
		stop()
	})
}

// Whatever a source makes of an Undecoded, it is one: without metadata, without a cause.
type unreadable struct{ *metav1.ObjectMeta }

func (u *unreadable) DecodeError() error                { return nil }
func (u *unreadable) DeepCopyObject() apiruntime.Object { return u }
func (u *unreadable) GetObjectKind() schema.ObjectKind  { return nil }

func TestAnUndecodedObjectMayBeHollow(t *testing.T) {
	r := NewReflector(&ListWatch{}, &object{}, NewStore(MetaNamespaceKeyFunc), 0)
	for _, hollow := range []apiruntime.Object{&unreadable{}, &unreadable{&metav1.ObjectMeta{}}} {
		misfit := r.misfit(hollow, true)
		require.NotNil(t, misfit)
		assert.Equal(t, StageDecode, misfit.Stage)
		assert.ErrorIs(t, misfit, errUndecoded)
		assert.Empty(t, misfit.Key)
	}
	nothing := r.misfit((*unreadable)(nil), true)
	require.NotNil(t, nothing)
	assert.Equal(t, StageMetadata, nothing.Stage)
}

// An object that could not be decoded is no failure of the watch, whatever its cause
// looks like: its cause is CauseObject, and it is logged as an error.
func TestAnUndecodedObjectIsClassedAndLoggedAsAnObject(t *testing.T) {
	var out bytes.Buffer
	r := NewNamedReflector("r", &ListWatch{}, nil, NewStore(MetaNamespaceKeyFunc), 0)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	for _, err := range []error{io.ErrUnexpectedEOF, io.EOF, cachetest.ErrExpired(), ErrWatchOverdue, errBoom} {
		out.Reset()
		object := &ObjectError{Key: "a/1", Stage: StageDecode, Err: err}
		assert.Equal(t, CauseObject, CauseOf(object))
		assert.Equal(t, CauseObject, CauseOf(undeleted(object, &ObjectError{Stage: StageKey, Err: errBoom})))
		DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), r, object)
		assert.Contains(t, out.String(), "a/1")
	}
}

// G6: where a source feeds one namespace, the namespace of what it could not decode is
// known, also if it does not say it. Fails if a list deletes what it could not read, or
// if its deletion is not applied.
func TestG6AnUndecodedObjectInAViewIsInItsNamespace(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		source := func() *scripted {
			lists := 0
			return &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
				list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(5 + lists)}}
				if lists++; lists == 1 {
					list.Items = []apiruntime.Object{podAt("a", "1", "5"), podAt("a", "2", "5")}
				} else {
					list.Items = []apiruntime.Object{undecoded(podAt("", "1", "6"))}
				}
				return list, nil
			}, watch: func(_ context.Context, n int) (watch.Interface, error) {
				switch {
				case n == 1:
					return newProbe(errorEvent(cachetest.ErrExpired())), nil
				case deleted:
					return newProbe(watch.Event{Type: watch.Deleted, Object: undecoded(podAt("", "1", "7"))}), nil
				}
				return newProbe(), nil
			}}
		}
		want := []string{"a/1"}
		if deleted {
			want = []string{}
		}
		t.Run(fmt.Sprintf("a view, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &heard{}, NewStore(MetaNamespaceKeyFunc)
				r := NewReflectorWithOptions(source(), nil, InNamespace(store, "a"), ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, r)
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				assert.Equal(t, !deleted, len(r.Status().Quarantined) == 1)
				stop()
			})
		})
		t.Run(fmt.Sprintf("Config.Namespaces, deleted %v", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &heard{}, NewStore(MetaNamespaceKeyFunc)
				c := New(&Config{Namespaces: map[string]ListerWatcher{"a": source()}, Store: store, ReflectorOptions: ReflectorOptions{ErrorHandler: h.handle}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); c.RunWithContext(ctx) }()
				sleep(time.Minute)
				assert.Equal(t, want, store.ListKeys())
				status, _ := StatusOf(c)
				assert.Equal(t, !deleted, len(status.Quarantined) == 1)
				cancel()
				<-done
			})
		})
	}
}
