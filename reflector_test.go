package cache

import (
	"bytes"
	"context"
	"flag"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// runReflector runs a reflector in the bubble until the returned function ends it.
func runReflector(t *testing.T, r *Reflector) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// The classic signatures do what those with a context do.
func TestRunAndListAndWatchTakeAStopChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		indexer, reflector := NewNamespaceKeyedIndexerAndReflector(source, &object{}, 0)
		for _, run := range []func(<-chan struct{}){
			reflector.Run,
			func(stop <-chan struct{}) { assert.NoError(t, reflector.ListAndWatch(stop)) },
		} {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { defer close(done); run(stop) }()
			synctest.Wait()
			found, err := indexer.ByIndex(NamespaceIndex, "a")
			require.NoError(t, err)
			assert.Len(t, found, 1)
			close(stop)
			<-done
		}
		source.Close()
	})
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
	assert.Contains(t, out.String(), "Page applied")
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
		source.DelayLists(0)
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

// describedSource says what it lists.
type describedSource struct{ *cachetest.Source }

func (describedSource) TypeDescription() string { return "apps/v1 deployments" }

func TestWhereAnythingIsExpectedTheSourceSaysWhatItIs(t *testing.T) {
	source := describedSource{cachetest.NewSource(cachetest.Options{})}
	store := NewStore(MetaNamespaceKeyFunc)
	assert.Equal(t, "apps/v1 deployments", NewReflector(source, nil, store, 0).TypeDescription())
	assert.Equal(t, "*unstructured.Unstructured", NewReflector(source, &unstructured.Unstructured{}, store, 0).TypeDescription())
	options := ReflectorOptions{TypeDescription: "mine"}
	assert.Equal(t, "mine", NewReflectorWithOptions(source, nil, store, options).TypeDescription())
}

// What a reflector remembers from one state to the next, each with the test that
// would notice if it forgot.

// S2: after a list at "0" came in pages, pages stay: that server has no cache to
// spare. They ask for a state at least as new, which a limit alone would not mean.
func TestPagingStaysOnAfterAListAtZeroCameInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 501 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) {
			c.ReflectorOptions.Strategy = ListAutomatic
			c.ListerWatcher = &ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext}
		})
		r.run()
		synctest.Wait()
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		var relist metav1.ListOptions
		for _, request := range source.Requests() {
			if request.Verb == cachetest.VerbList && request.Options.Continue == "" {
				relist = request.Options
			}
		}
		assert.Equal(t, metav1.ListOptions{
			ResourceVersion: "501", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 500,
		}, relist)
		r.equalsSource()
		r.stop()
	})
}

// S7: there is nothing to resync before there is a first state.
func TestNothingIsResyncedBeforeTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Hour)
		h := &heard{}
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, resyncFails{NewIndexer(MetaNamespaceKeyFunc, nil)},
			ReflectorOptions{ResyncPeriod: time.Minute, ErrorHandler: h.handle, Strategy: ListWhole}))
		sleep(59 * time.Minute)
		assert.Empty(t, h.all())
		sleep(2 * time.Minute)
		assert.NotEmpty(t, h.all())
		stop()
		source.Close()
	})
}

// "In a row" means in a row.
func TestAbsentNeedsThreeAnswersInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t), func(c *Config) { c.ReflectorOptions.Backoff = steady(time.Second) })
		absent := apierrors.NewNotFound(pods, "")
		for _, err := range []error{absent, absent, errBoom, absent, absent} {
			r.source.FailLists(1, err)
		}
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		for range 8 {
			synctest.Wait()
			assert.NotEqual(t, PhaseAbsent, r.status().Phase)
			sleep(time.Second)
		}
		assert.Equal(t, 9, r.status().ConsecutiveFailures)
		r.stop()
	})
}

// A reflector that fills its store itself is synced with its first list, not
// before, and says in its status where the store is.
func TestAReflectorByItselfSaysWhenItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Second)
		r := NewReflectorWithOptions(source, &object{}, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: ListWhole})
		stop := runReflector(t, r)
		assert.False(t, r.Status().Synced)
		assert.Empty(t, r.Status().AppliedVersion)
		sleep(2 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, "1", r.Status().AppliedVersion)
		stop()
		source.Close()

		withForeign := NewReflectorWithOptions(source, &object{}, &foreign{}, ReflectorOptions{})
		assert.Empty(t, withForeign.Status().AppliedVersion)
	})
}

// B8, re-creation: what a transform leaves of an object does not decide whether
// it is another one; what was received does.
func TestARecreatedObjectIsSeenThroughATransformThatDropsItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, func(c *Config) {
			c.Transform = func(obj any) (any, error) {
				o := obj.(*object).DeepCopy()
				o.UID = ""
				return o, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		_, err := source.DeleteSilently("a", "1")
		require.NoError(t, err)
		require.NoError(t, source.Apply(pod("a", "1")))
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, []string{"tombstone a/1", "add a/1@3"}, r.handler.take())
		r.stop()
	})
}
