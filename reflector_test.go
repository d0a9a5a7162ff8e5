package cache

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// foreign is a store of somebody else's: nothing but a ReflectorStore, and what a
// test embeds beside it. It writes down its calls.
type foreign struct{ calls []string }

func (f *foreign) note(call string, obj any) error {
	f.calls = append(f.calls, fmt.Sprintf("%s %s", call, nameOf(obj)))
	return nil
}
func (f *foreign) Add(obj any) error    { return f.note("add", obj) }
func (f *foreign) Update(obj any) error { return f.note("update", obj) }
func (f *foreign) Delete(obj any) error { return f.note("delete", obj) }
func (f *foreign) Resync() error        { return nil }
func (f *foreign) Replace(list []any, version string) error {
	call := "replace"
	for _, obj := range list {
		call += " " + nameOf(obj)
	}
	f.calls = append(f.calls, call+" @"+version)
	return nil
}

type updater struct{ foreign }

func (u *updater) UpdateResourceVersion(version string) {
	u.calls = append(u.calls, "version "+version)
}

type bookmarker struct{ foreign }

func (b *bookmarker) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

type both struct{ updater }

func (b *both) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

func (f *foreign) take() []string { calls := f.calls; f.calls = nil; return calls }

// runReflector runs a reflector in the bubble until the returned function ends it.
func runReflector(t *testing.T, r *Reflector) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// S5, S6: a foreign store gets one Replace for a list, however it came, then each
// event; and it is told of each advance of the version once.
func TestAForeignStoreIsToldOfEachAdvanceOnce(t *testing.T) {
	type taker interface {
		ReflectorStore
		take() []string
	}
	for name, row := range map[string]struct {
		store    taker
		event    []string // what follows an event
		bookmark []string
	}{
		"neither":  {&foreign{}, nil, nil},
		"updater":  {&updater{}, []string{"version 5"}, []string{"version 7"}},
		"bookmark": {&bookmarker{}, nil, []string{"bookmark 7"}},
		"both":     {&both{}, []string{"version 5"}, []string{"bookmark 7"}},
	} {
		for _, strategy := range []ListStrategy{ListPaged, ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
					h := &heard{}
					stop := runReflector(t, NewReflectorWithOptions(source, &object{}, row.store,
						ReflectorOptions{PageSize: 2, Strategy: strategy, ErrorHandler: h.handle}))
					assert.Equal(t, []string{"replace a/1 a/2 a/3 @3"}, row.store.take())
					_, err := source.Update(labelled(pod("a", "1"), "x"))
					require.NoError(t, err)
					synctest.Wait()
					row.store.take()
					_, err = source.Delete("a", "2")
					require.NoError(t, err)
					synctest.Wait()
					assert.Equal(t, append([]string{"delete a/2"}, row.event...), row.store.take())
					source.Advance(2)
					source.SendBookmarks()
					source.SendBookmarks()
					synctest.Wait()
					assert.Equal(t, row.bookmark, row.store.take(), "a bookmark that says nothing new is not passed on")
					stop()
					assert.Empty(t, h.all())
					source.Close()
				})
			})
		}
	}
}

// S13: a streaming list is one request, gives the same state as a list, and goes
// on as the watch.
func TestAStreamingListIsOneRequestAndGoesOnAsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 1234 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) { c.ReflectorOptions.Strategy = ListAutomatic })
		r.run()
		synctest.Wait()
		assert.True(t, r.ctlr.HasSynced())
		r.equalsSource()
		assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
		require.NoError(t, source.Apply(pod("b", "later")))
		synctest.Wait()
		r.equalsSource()
		require.Len(t, source.Requests(), 1)
		options := source.Requests()[0].Options
		assert.True(t, *options.SendInitialEvents)
		assert.Equal(t, metav1.ResourceVersionMatchNotOlderThan, options.ResourceVersionMatch)
		assert.True(t, options.AllowWatchBookmarks)
		r.stop()
	})
}

// S13: an answer that says that the server cannot do it costs one attempt.
func TestAServerWithoutStreamingListsCostsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind, NoWatchList: true})
		example := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "1"}}}
		require.NoError(t, source.Apply(example))
		r := newRig(t, source, func(c *Config) {
			c.ObjectType = nil
			c.ReflectorOptions.Strategy = ListAutomatic
		})
		r.run()
		sleep(10 * time.Second)
		assert.Equal(t, []Cause{CauseRejected}, r.heard.causes())
		assert.Equal(t, 1, source.ListCalls())
		r.equalsSource()
		r.stop()
	})
}

// A stream may tell changes of objects that it has sent, before its bookmark.
func TestChangesDuringAStreamingListCount(t *testing.T) {
	for _, relist := range []bool{false, true} {
		for _, ours := range []bool{false, true} {
			t.Run(fmt.Sprintf("relist %v, our store %v", relist, ours), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					streams := make(chan *watch.FakeWatcher, 2)
					source := &ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
						w := watch.NewFake()
						streams <- w
						return w, nil
					}}
					at := func(o *object, version string) *object {
						o.ResourceVersion, o.UID = version, "u"
						return o
					}
					indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
					var store ReflectorStore = indexer
					if !ours {
						store = struct{ Store }{indexer}
					}
					stop := runReflector(t, NewReflectorWithOptions(source, &object{}, store,
						ReflectorOptions{Strategy: ListStreaming, ErrorHandler: (&heard{}).handle}))
					w := <-streams
					end := &object{}
					end.ResourceVersion = "9"
					end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
					if relist {
						w.Action(watch.Bookmark, at(end.DeepCopy(), "1"))
						status := cachetest.ErrExpired().(interface{ Status() metav1.Status }).Status()
						w.Error(&status)
						sleep(2 * time.Second)
						w = <-streams
					}
					w.Add(at(pod("a", "kept"), "2"))
					w.Add(at(pod("a", "changed"), "3"))
					w.Add(at(pod("a", "gone"), "4"))
					w.Modify(at(pod("a", "changed"), "5"))
					w.Delete(at(pod("a", "gone"), "6"))
					w.Action(watch.Bookmark, at(&object{}, "7"))
					w.Action(watch.Bookmark, end)
					synctest.Wait()
					assert.ElementsMatch(t, []string{"a/kept", "a/changed"}, indexer.ListKeys())
					changed, _, _ := indexer.GetByKey("a/changed")
					assert.Equal(t, "5", receivedOf(changed).ResourceVersion)
					assert.Equal(t, "9", indexer.LastStoreSyncResourceVersion())
					stop()
				})
			})
		}
	}
}

// S5: synthetic events, which a watch from "" or "0" begins with, do not move the
// version; they end at the first that is not Added.
func TestSyntheticEventsDoNotMoveTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		source := &ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { return &metav1.PartialObjectMetadataList{}, nil },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
		}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		reflector := NewReflector(source, nil, indexer, 0)
		stop := runReflector(t, reflector)
		at := func(version string) *object { o := pod("a", version); o.ResourceVersion = version; return o }
		w.Add(at("9"))
		w.Add(at("4"))
		synctest.Wait()
		assert.Empty(t, indexer.LastStoreSyncResourceVersion())
		assert.Empty(t, reflector.LastSyncResourceVersion())
		w.Modify(at("4"))
		synctest.Wait()
		assert.Equal(t, "4", indexer.LastStoreSyncResourceVersion())
		w.Add(at("12"))
		synctest.Wait()
		assert.Equal(t, "12", indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, "12", reflector.LastSyncResourceVersion())
		stop()
	})
}

// S1.
func TestNamesAndDescriptionsHaveDefaults(t *testing.T) {
	store := NewStore(MetaNamespaceKeyFunc)
	example := &unstructured.Unstructured{}
	example.SetAPIVersion("apps/v1")
	example.SetKind("Deployment")
	for want, expected := range map[string]any{
		"<unspecified>":              nil,
		"*v1.PartialObjectMetadata":  &object{},
		"apps/v1, Kind=Deployment":   example,
		"*unstructured.Unstructured": &unstructured.Unstructured{},
	} {
		assert.Equal(t, want, NewReflector(&ListWatch{}, expected, store, 0).TypeDescription())
	}
	assert.Equal(t, "mine", NewNamedReflector("mine", &ListWatch{}, nil, store, 0).Name())
	assert.Regexp(t, `^testing/testing\.go:\d+$`, NewReflector(&ListWatch{}, nil, store, 0).Name(), "the first caller outside this package")
	named := NewReflectorWithOptions(&ListWatch{}, nil, store, ReflectorOptions{TypeDescription: "things"})
	assert.Equal(t, "things", named.TypeDescription())
}

// S12: each class of failure is logged at the level that it deserves.
func TestTheDefaultErrorHandlerLogsEachClassAtItsLevel(t *testing.T) {
	var out bytes.Buffer
	r := NewNamedReflector("r", &ListWatch{}, nil, NewStore(MetaNamespaceKeyFunc), 0)
	for verbosity, rows := range map[int]map[error]string{
		0: {cachetest.ErrExpired(): "", io.EOF: "", io.ErrUnexpectedEOF: "", errBoom: "Mirroring failed"},
		1: {io.ErrUnexpectedEOF: "Watch was cut", cachetest.ErrExpired(): ""},
		4: {cachetest.ErrExpired(): "listing anew", io.EOF: ""},
	} {
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out), textlogger.Verbosity(verbosity)))
		for err, want := range rows {
			out.Reset()
			DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), r, err)
			if want == "" {
				assert.Empty(t, out.String(), "%v at %d", err, verbosity)
				continue
			}
			assert.Contains(t, out.String(), want)
			assert.Equal(t, 1, strings.Count(out.String(), "\n"))
		}
	}
}

// S15: a list that is slow logs its steps.
func TestASlowListLogsItsSteps(t *testing.T) {
	var out bytes.Buffer
	state := klog.CaptureState()
	defer state.Restore()
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	require.NoError(t, flags.Set("v", "2"))
	klog.LogToStderr(false)
	klog.SetOutput(&out)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(11 * time.Second)
		r := newRig(t, source, nil)
		r.run()
		sleep(20 * time.Second)
		r.stop()
	})
	klog.Flush()
	klog.SetOutput(io.Discard)
	assert.Contains(t, out.String(), "Page taken")
	assert.Contains(t, out.String(), `"List" reflector:test`)
}

// The status is a plain value and says where the reflector is.
func TestStatusSaysWhereAReflectorIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Second)
		r := newRig(t, source, nil)
		assert.Equal(t, PhaseIdle, r.status().Phase)
		assert.Equal(t, "test", r.status().Name)
		began := time.Now()
		r.run()
		sleep(500 * time.Millisecond)
		listing := r.status()
		assert.Equal(t, PhaseListing, listing.Phase)
		assert.Equal(t, began, listing.PhaseSince)
		assert.False(t, listing.Synced)
		sleep(time.Second)
		watching := r.status()
		assert.Equal(t, PhaseWatching, watching.Phase)
		assert.True(t, watching.Synced)
		assert.Equal(t, "1", watching.AppliedVersion)
		assert.Equal(t, "1", watching.AcceptedVersion)
		assert.Nil(t, watching.LastFailure)
		assert.Equal(t, PhaseListing, listing.Phase, "a status stays as it was")
		source.FailWatches(cachetest.Forever, errBoom)
		source.FailLists(cachetest.Forever, errBoom)
		source.BreakWatches(errBoom)
		sleep(3 * time.Second)
		assert.Equal(t, PhasePaused, r.status().Phase)
		assert.Greater(t, r.status().ConsecutiveFailures, 1)
		r.stop()
		assert.Equal(t, PhaseStopped, r.status().Phase)
	})
	_, ok := StatusOf("something else")
	assert.False(t, ok)
}

func TestAKeyThatSeveralHoldBackIsListedOnceWithItsNewestVersion(t *testing.T) {
	held := func(key, version string) Quarantined { return Quarantined{Key: key, ResourceVersion: version} }
	assert.Equal(t, []Quarantined{held("a", "10"), held("b", "1"), held("c", "")}, mergeQuarantined(
		[]Quarantined{held("a", "9"), held("c", "")}, []Quarantined{held("a", "10"), held("b", "1")}, nil))
}

func TestErrorsOfAForeignStoreAreToldApart(t *testing.T) {
	object := &ObjectError{Key: "k", Stage: StageIndex, Err: errBoom}
	key := KeyError{pod("a", "b"), errBoom}
	objects, other := splitObjectErrors(errors.Join(object, fmt.Errorf("wrapped: %w", key), errBoom))
	require.Len(t, objects, 2)
	assert.Equal(t, "k", objects[0].Key)
	assert.Equal(t, "a/b", objects[1].Key)
	assert.ErrorIs(t, other, errBoom)
	objects, other = splitObjectErrors(object)
	assert.Len(t, objects, 1)
	assert.NoError(t, other)
}
