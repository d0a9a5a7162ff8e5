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

func TestAKeyQuarantinedTwiceIsListedOnceWithItsNewestVersion(t *testing.T) {
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

// Design: how each failure is answered, in requests. Fails if a row of the table
// of answers changes.
func TestFailuresOfAWatchAreAnsweredByAWatchOrAList(t *testing.T) {
	internal := cachetest.ErrInternal()
	rows := map[string]struct {
		err    error
		times  int
		lists  int
		change func(*Config)
	}{
		"expired":                            {cachetest.ErrExpired(), 1, 2, nil},
		"refused, however often":             {cachetest.ErrConnectionRefused(), 20, 1, nil},
		"429, however often":                 {cachetest.ErrTooManyRequests(0), 20, 1, nil},
		"500 without a retry duration":       {internal, 1, 2, nil},
		"500 within the retry duration":      {internal, 5, 1, retryInternal},
		"something else, a few times":        {errBoom, 9, 1, nil},
		"something else, more than a few":    {errBoom, 10, 2, nil},
		"forbidden is backed off like these": {apierrors.NewForbidden(pods, "", errBoom), 3, 1, nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t, pod("a", "1")), row.change)
				r.source.FailWatches(row.times, row.err)
				r.run()
				sleep(30 * time.Minute)
				assert.Equal(t, row.lists, listsOf(r.source))
				assert.Equal(t, 1, r.source.ActiveWatches())
				r.equalsSource()
				r.stop()
			})
		})
	}
}

// S2: an expired list is answered by a list at "" at once, then after pauses.
func TestAnExpiredListIsAnsweredByTheNewestAtOnceThenPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), nil)
		r.source.FailLists(2, cachetest.ErrExpired())
		start := time.Now()
		r.run()
		sleep(time.Minute)
		var at []time.Duration
		var versions []string
		for _, request := range r.source.Requests() {
			if request.Verb == cachetest.VerbList {
				at, versions = append(at, request.Time.Sub(start)), append(versions, request.Options.ResourceVersion)
			}
		}
		require.Len(t, at, 3)
		assert.Equal(t, []string{"0", "", ""}, versions)
		assert.Zero(t, at[1])
		assert.GreaterOrEqual(t, at[2], 100*time.Millisecond)
		r.stop()
	})
}

// The phase says "absent" or "forbidden" only after three answers in a row, and
// the content is kept meanwhile.
func TestThePhaseSaysAbsentOrForbiddenAfterThreeInARow(t *testing.T) {
	for phase, err := range map[Phase]error{
		PhaseAbsent:    apierrors.NewNotFound(pods, ""),
		PhaseForbidden: apierrors.NewForbidden(pods, "", errBoom),
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newSource(t, pod("a", "1")), func(c *Config) { c.ReflectorOptions.Backoff = steady(time.Second) })
			r.run()
			synctest.Wait()
			r.source.FailLists(cachetest.Forever, err)
			r.source.FailWatches(cachetest.Forever, err)
			r.source.BreakWatches(errBoom)
			synctest.Wait()
			for _, want := range []Phase{PhasePaused, PhasePaused, PhasePaused, phase, phase} {
				assert.Equal(t, want, r.status().Phase)
				sleep(time.Second)
			}
			assert.Len(t, r.indexer.ListKeys(), 1, "content is kept")
			r.source.Heal()
			sleep(2 * time.Second)
			assert.Equal(t, PhaseWatching, r.status().Phase)
			r.stop()
		})
	}
}

// S4: a watch that ends at its timeout is followed by another at once, from the
// last version, without a list and without a report.
func TestAWatchThatEndsAtItsTimeoutIsResumedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), nil)
		r.run()
		sleep(24 * time.Hour)
		assert.Equal(t, 1, r.source.ListCalls())
		for _, request := range r.source.Requests() {
			if request.Verb != cachetest.VerbWatch {
				continue
			}
			require.NotNil(t, request.Options.TimeoutSeconds)
			assert.GreaterOrEqual(t, *request.Options.TimeoutSeconds, int64(300))
			assert.LessOrEqual(t, *request.Options.TimeoutSeconds, int64(600))
			assert.True(t, request.Options.AllowWatchBookmarks)
		}
		assert.Empty(t, r.heard.all())
		assert.Equal(t, 1, r.source.ActiveWatches())
		r.stop()
	})
}

type resyncFails struct{ Indexer }

func (resyncFails) Resync() error { return errBoom }

func TestAResyncThatFailsIsReportedAndEndsTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &heard{}
		reflector := NewReflectorWithOptions(source, &object{}, resyncFails{NewIndexer(MetaNamespaceKeyFunc, nil)},
			ReflectorOptions{ResyncPeriod: time.Minute, ErrorHandler: h.handle})
		require.NoError(t, reflector.ListAndWatchWithContext(t.Context()))
		require.Len(t, h.all(), 1)
		var refused *StoreError
		require.ErrorAs(t, h.all()[0], &refused)
		assert.Equal(t, "Resync", refused.Op)
		assert.ErrorIs(t, refused, errBoom)
		source.Close()
	})
}

// A resync that fails while the reflector pauses or lists is reported there, and
// ends neither. Fails if it ends the pause, or is lost.
func TestAResyncThatFailsMeanwhileEndsNeitherAPauseNorAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &heard{}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		began := time.Now()
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, resyncFails{indexer},
			ReflectorOptions{ResyncPeriod: 20 * time.Second, ErrorHandler: h.handle, Strategy: ListWhole}))
		source.FailWatches(cachetest.Forever, errBoom)
		source.DelayLists(15 * time.Second)
		sleep(30 * time.Minute)
		assert.Equal(t, 90, h.count(causeStore), "one each 20 s")
		first, later := rateSince(source, began.Add(20*time.Second)) // the first resync
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		source.Heal()
		require.NoError(t, source.Apply(pod("a", "2")))
		sleep(2 * time.Minute)
		assert.Len(t, indexer.ListKeys(), 2)
		stop()
		source.Close()
	})
}

// ListAndWatch is one round: nil when the context or the watch ends it, the error
// of a list or a watch request otherwise, which is then not reported as well.
func TestListAndWatchIsOneRound(t *testing.T) {
	newReflector := func(source ListerWatcher, h *heard) *Reflector {
		return NewReflectorWithOptions(source, &object{}, NewIndexer(MetaNamespaceKeyFunc, nil),
			ReflectorOptions{Name: "round", ErrorHandler: h.handle, Strategy: ListPaged})
	}
	t.Run("the context ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t, pod("a", "1")), &heard{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			reflector := newReflector(source, h)
			assert.NoError(t, reflector.ListAndWatchWithContext(ctx))
			assert.Equal(t, "1", reflector.LastSyncResourceVersion())
			assert.Empty(t, h.all())
			source.Close()
		})
	})
	t.Run("a failed watch ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t, pod("a", "1")), &heard{}
			source.BreakNextWatches(1, 0, cachetest.ErrExpired())
			assert.NoError(t, newReflector(source, h).ListAndWatchWithContext(t.Context()))
			assert.Equal(t, []Cause{CauseExpired}, h.causes())
			assert.Equal(t, 1, source.ListCalls())
			source.Close()
		})
	})
	t.Run("a failed list is returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t), &heard{}
			source.FailLists(1, errBoom)
			reflector := newReflector(source, h)
			assert.ErrorIs(t, reflector.ListAndWatchWithContext(t.Context()), errBoom)
			assert.Empty(t, h.all())
			assert.ErrorIs(t, reflector.Status().LastFailure.Err, errBoom)
			source.Close()
		})
	})
	t.Run("a failed watch request is returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t), &heard{}
			source.FailWatches(1, errBoom)
			assert.ErrorIs(t, newReflector(source, h).ListAndWatchWithContext(t.Context()), errBoom)
			assert.Empty(t, h.all())
			source.Close()
		})
	})
}

// Sources with defects of every kind get a clear error, and the reflector goes on.
func TestBadAnswersOfASourceAreClearErrors(t *testing.T) {
	lists := map[string]struct {
		answer apiruntime.Object
		want   error
	}{
		"nil":               {nil, errNilList},
		"nil pointer":       {(*metav1.PartialObjectMetadataList)(nil), errNilList},
		"table":             {&metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}, errTableList},
		"not a list at all": {pod("a", "1"), nil},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				source := &ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
					return list.answer, nil
				}, WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, nil }}
				indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
				require.NoError(t, indexer.Add(pod("kept", "1")))
				err := NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{Name: "n", TypeDescription: "pods", ErrorHandler: h.handle}).
					ListAndWatchWithContext(t.Context())
				require.Error(t, err)
				assert.Contains(t, err.Error(), "pods")
				if list.want != nil {
					assert.ErrorIs(t, err, list.want)
				}
				assert.Len(t, indexer.ListKeys(), 1, "nothing that was stored is lost")
			})
		})
	}
	t.Run("no watch and no error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				return &metav1.PartialObjectMetadataList{}, nil
			}, WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return nil, nil }}
			err := NewReflector(source, nil, NewIndexer(MetaNamespaceKeyFunc, nil), 0).ListAndWatchWithContext(t.Context())
			assert.ErrorIs(t, err, errNilWatch)
		})
	})
	t.Run("no functions", func(t *testing.T) {
		_, err := (&ListWatch{}).List(metav1.ListOptions{})
		assert.ErrorIs(t, err, errNoListFunc)
		_, err = (&ListWatch{}).Watch(metav1.ListOptions{})
		assert.ErrorIs(t, err, errNoWatchFunc)
	})
}

// S19: each method of a ListWatch calls the form of its own kind, and the other
// where its own is missing.
func TestAListWatchCallsWhicheverFormOfAFunctionItHas(t *testing.T) {
	var called string
	list := func(string) func(metav1.ListOptions) (apiruntime.Object, error) {
		return func(metav1.ListOptions) (apiruntime.Object, error) { called = "plain"; return nil, nil }
	}("")
	listWith := func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		called = "context"
		return nil, nil
	}
	watchPlain := func(metav1.ListOptions) (watch.Interface, error) { called = "plain"; return nil, nil }
	watchWith := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		called = "context"
		return nil, nil
	}
	for _, row := range []struct {
		lw          ListWatch
		plain, with string
	}{
		{ListWatch{ListFunc: list, WatchFunc: watchPlain}, "plain", "plain"},
		{ListWatch{ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "context", "context"},
		{ListWatch{ListFunc: list, WatchFunc: watchPlain, ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "plain", "context"},
	} {
		_, err := row.lw.List(metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.plain, called)
		_, err = row.lw.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.with, called)
		_, err = row.lw.Watch(metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.plain, called)
		_, err = row.lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.with, called)
	}
}

// deaf is a source without contexts.
type deaf struct{ lists, watches int }

func (d *deaf) List(metav1.ListOptions) (apiruntime.Object, error) { d.lists++; return nil, errBoom }
func (d *deaf) Watch(metav1.ListOptions) (watch.Interface, error)  { d.watches++; return nil, errBoom }

// half is one that takes a context for its lists only.
type half struct{ deaf }

func (h *half) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return nil, nil
}

func TestSourcesWithoutContextsAreAdapted(t *testing.T) {
	d := &deaf{}
	with := ToListerWatcherWithContext(d)
	_, err := with.ListWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	_, err = with.WatchWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, deaf{1, 1}, *d)

	h := &half{}
	_, err = ToListerWatcherWithContext(h).ListWithContext(t.Context(), metav1.ListOptions{})
	assert.NoError(t, err, "the method with a context is preferred where there is one")
	assert.Zero(t, h.lists)

	lw := &ListWatch{}
	assert.Same(t, lw, ToListerWatcherWithContext(lw))
	assert.Same(t, lw, ToListerWithContext(lw))
	assert.Same(t, lw, ToWatcherWithContext(lw))
}

type marked bool

func (m marked) IsWatchListSemanticsUnSupported() bool { return bool(m) }

// A ListWatch is streamed only if it says of its client that it can; what that
// says is found through the wrapper, as is DisableChunking.
func TestOnlyAMarkedSourceIsStreamed(t *testing.T) {
	store := NewStore(MetaNamespaceKeyFunc)
	lw := &ListWatch{DisableChunking: true}
	for _, row := range []struct {
		source ListerWatcher
		stream bool
	}{
		{lw, false},
		{ToListWatcherWithWatchListSemantics(lw, nil), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(false)), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(true)), false},
	} {
		r := NewReflector(row.source, nil, store, 0)
		assert.Equal(t, row.stream, r.streams)
		assert.True(t, r.wholeLists)
	}
}
