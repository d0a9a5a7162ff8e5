package guarantees

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
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

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The methods with a stop channel behave like those with a context.
func TestRunAndListAndWatchTakeAStopChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		indexer, reflector := cache.NewNamespaceKeyedIndexerAndReflector(source, &object{}, 0)
		for _, run := range []func(<-chan struct{}){
			reflector.Run,
			func(stop <-chan struct{}) { assert.NoError(t, reflector.ListAndWatch(stop)) },
		} {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { defer close(done); run(stop) }()
			synctest.Wait()
			found, err := indexer.ByIndex(cache.NamespaceIndex, "a")
			require.NoError(t, err)
			assert.Len(t, found, 1)
			close(stop)
			<-done
		}
		source.Close()
	})
}

// S5: the synthetic events at the beginning of a watch from "" or "0" do not advance the version;
// they end at the first event that is not Added.
func TestSyntheticEventsDoNotMoveTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		source := &cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { return &metav1.PartialObjectMetadataList{}, nil },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
		}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		reflector := cache.NewReflector(source, nil, indexer, 0)
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

// S12: each class of failure is logged at its level.
func TestTheDefaultErrorHandlerLogsEachClassAtItsLevel(t *testing.T) {
	var out bytes.Buffer
	r := cache.NewNamedReflector("r", &cache.ListWatch{}, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	for verbosity, rows := range map[int]map[error]string{
		0: {cachetest.ErrExpired(): "", io.EOF: "", io.ErrUnexpectedEOF: "", errBoom: "List or watch failed"},
		1: {io.ErrUnexpectedEOF: "Watch connection lost", cachetest.ErrExpired(): ""},
		4: {cachetest.ErrExpired(): "relisting", io.EOF: ""},
	} {
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out), textlogger.Verbosity(verbosity)))
		for err, want := range rows {
			out.Reset()
			cache.DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), r, err)
			if want == "" {
				assert.Empty(t, out.String(), "%v at %d", err, verbosity)
				continue
			}
			assert.Contains(t, out.String(), want)
			assert.Equal(t, 1, strings.Count(out.String(), "\n"))
		}
	}
}

// Fails if an outage fills the log, if its end is not logged, or if a line is long.
func TestAnOutageIsLoggedOnceAMinuteAndItsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
		source := newSource(t, pod("a", "1"))
		long := errors.New("Get \"https://" + strings.Repeat("long.", 60) + "example/api/v1/pods\": connection refused")
		source.FailRequests(cachetest.Forever, long)
		reflector := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{
				Name: "pods", Logger: &logger, Strategy: cache.ListPaged, Random: func() float64 { return 0.5 },
			})
		stop := runReflector(t, reflector)
		sleep(10 * time.Minute)
		status := reflector.Status()
		source.Heal()
		sleep(time.Minute)
		stop()

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2+8+1, out.String())
		logged := 0
		for i, line := range lines[:len(lines)-1] {
			_, afterHead, _ := strings.Cut(line, "] ")
			assert.LessOrEqual(t, len([]rune(afterHead)), 200, line)
			assert.Contains(t, line, "List or watch failed")
			assert.Contains(t, line, "connection refused")
			repeated := regexp.MustCompile(`repeated=(\d+)`).FindStringSubmatch(line)
			if i < 2 {
				assert.Nil(t, repeated, line)
				logged++
				continue
			}
			count, err := strconv.Atoi(repeated[1])
			require.NoError(t, err)
			logged += count
			assert.Contains(t, line, fmt.Sprintf("failures=%d", logged))
		}
		assert.Contains(t, lines[len(lines)-1], `"Source works again" reflector="pods"`)
		assert.Contains(t, lines[len(lines)-1], fmt.Sprintf("failures=%d lasted=", status.ConsecutiveFailures))
	})
}

// Fails if a long name, type, key or text makes a line long, or if the line no longer names them.
func TestALineAboutAnObjectIsShort(t *testing.T) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	long := strings.Repeat("long-", 50)
	reflector := cache.NewReflectorWithOptions(newSource(t), nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
		cache.ReflectorOptions{Name: "pods" + long, TypeDescription: "v1 " + long})
	refused := &cache.ObjectError{Key: "shop/" + long + "7", Stage: "transform", Err: errors.New(long + "no quota")}
	cache.DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), reflector, refused)

	_, line, _ := strings.Cut(strings.TrimSpace(out.String()), "] ")
	assert.LessOrEqual(t, len([]rune(line)), 200, line)
	for _, want := range []string{`"Object refused" err="long`, `no quota"`, ` reflector="pods`, ` type="v1`, ` key="shop/`, `7"`} {
		assert.Contains(t, line, want)
	}
}

// S15: a list that is slow logs its steps.
func TestASlowListLogsItsSteps(t *testing.T) {
	var out bytes.Buffer
	state := klog.CaptureState()
	defer state.Restore()
	klog.ClearLogger()
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

// The status is a plain value with the reflector's phase.
func TestStatusSaysWhereAReflectorIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Second)
		r := newRig(t, source, nil)
		assert.Equal(t, cache.PhaseIdle, r.status().Phase)
		assert.Equal(t, "test", r.status().Name)
		began := time.Now()
		r.run()
		sleep(500 * time.Millisecond)
		listing := r.status()
		assert.Equal(t, cache.PhaseListing, listing.Phase)
		assert.Equal(t, began, listing.PhaseSince)
		assert.False(t, listing.Synced)
		sleep(time.Second)
		watching := r.status()
		assert.Equal(t, cache.PhaseWatching, watching.Phase)
		assert.True(t, watching.Synced)
		assert.Equal(t, "1", watching.AppliedVersion)
		assert.Equal(t, "1", watching.ReceivedVersion)
		assert.Nil(t, watching.LastFailure)
		assert.Equal(t, cache.PhaseListing, listing.Phase, "a status stays as it was")
		source.FailWatches(cachetest.Forever, errBoom)
		source.FailLists(cachetest.Forever, errBoom)
		source.DelayLists(0)
		source.BreakWatches(errBoom)
		sleep(3 * time.Second)
		assert.Equal(t, cache.PhasePaused, r.status().Phase)
		assert.Greater(t, r.status().ConsecutiveFailures, 1)
		r.stop()
		assert.Equal(t, cache.PhaseStopped, r.status().Phase)
	})
}

func TestInformersMadeByOneLineHaveDifferentNames(t *testing.T) {
	names := map[string]bool{}
	for range 3 {
		informer := cache.NewTypedInformer[*unstructured.Unstructured](cachetest.NewSource())
		name := informer.Status().Name
		assert.Regexp(t, `guarantees/reflector_test\.go:\d+(#\d+)?$`, name)
		names[name] = true
	}
	assert.Len(t, names, 3)
}

type entry[V any] struct{ metav1.PartialObjectMetadata }

func TestTypeParametersAreNamedWithoutFolders(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	source := cachetest.NewSource()
	reflector := cache.NewReflector(source, &entry[map[string]cachetest.Options]{}, store, 0)
	want := "*guarantees.entry[map[string]cachetest.Options]"
	assert.Equal(t, want, reflector.TypeDescription())
}

// describedSource describes the type that it lists.
type describedSource struct{ *cachetest.Source }

func (describedSource) TypeDescription() string { return "apps/v1 deployments" }

func TestWithoutAnExpectedTypeTheSourceDescribesIt(t *testing.T) {
	source := describedSource{cachetest.NewSource(cachetest.Options{})}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	assert.Equal(t, "apps/v1 deployments", cache.NewReflector(source, nil, store, 0).TypeDescription())
	anyKind := cache.NewReflector(source, &unstructured.Unstructured{}, store, 0)
	assert.Equal(t, "apps/v1 deployments", anyKind.TypeDescription())
	typed := cache.NewReflector(source, &metav1.APIGroup{}, store, 0)
	assert.Equal(t, "*v1.APIGroup", typed.TypeDescription())
	options := cache.ReflectorOptions{TypeDescription: "mine"}
	assert.Equal(t, "mine", cache.NewReflectorWithOptions(source, nil, store, options).TypeDescription())
}

// S2: after a list at "0" came in pages, later lists are paged too, since that server has no watch
// cache. They request a version not older than the last, which a limit alone would not.
func TestPagingStaysOnAfterAListAtZeroCameInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 501 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *cache.Config) {
			c.ReflectorOptions.Strategy = cache.ListAutomatic
			c.ListerWatcher = &cache.ListWatch{ListWithContextFunc: source.ListWithContext, WatchFuncWithContext: source.WatchWithContext}
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
		r.assertEqualsSource()
		r.stop()
	})
}

// S7: there is no resync before the first state.
func TestNothingIsResyncedBeforeTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Hour)
		h := &errorRecorder{}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, resyncFails{cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)},
			cache.ReflectorOptions{ResyncPeriod: time.Minute, ErrorHandler: h.handle, Strategy: cache.ListUnpaged}))
		sleep(59 * time.Minute)
		assert.Empty(t, h.all())
		sleep(2 * time.Minute)
		assert.NotEmpty(t, h.all())
		stop()
		source.Close()
	})
}

// Only consecutive answers count.
func TestAbsentNeedsThreeAnswersInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t), func(c *cache.Config) { c.ReflectorOptions.Backoff = steady(time.Second) })
		absent := apierrors.NewNotFound(pods, "")
		for _, err := range []error{absent, absent, errBoom, absent, absent} {
			r.source.FailLists(1, err)
		}
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		for range 8 {
			synctest.Wait()
			assert.NotEqual(t, cache.PhaseNotFound, r.status().Phase)
			sleep(time.Second)
		}
		assert.Equal(t, 9, r.status().ConsecutiveFailures)
		r.stop()
	})
}

// A reflector without a controller has synced with its first list, and its status has the store's
// version.
func TestAReflectorByItselfSaysWhenItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayLists(time.Second)
		r := cache.NewReflectorWithOptions(source, &object{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: cache.ListUnpaged})
		stop := runReflector(t, r)
		assert.False(t, r.Status().Synced)
		assert.Empty(t, r.Status().AppliedVersion)
		sleep(2 * time.Second)
		assert.True(t, r.Status().Synced)
		assert.Equal(t, "1", r.Status().AppliedVersion)
		stop()
		source.Close()

		withForeign := cache.NewReflectorWithOptions(source, &object{}, &foreignStore{}, cache.ReflectorOptions{})
		assert.Empty(t, withForeign.Status().AppliedVersion)
	})
}

// B8: re-creation is detected by the received UID, not by the transformed object's.
func TestARecreatedObjectIsSeenThroughATransformThatDropsItsUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, func(c *cache.Config) {
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

// The requests that follow each failure of a watch. Fails if an entry of watchActions changes.
func TestFailuresOfAWatchAreAnsweredByAWatchOrAList(t *testing.T) {
	internal := cachetest.ErrInternal()
	rows := map[string]struct {
		err    error
		times  int
		lists  int
		change func(*cache.Config)
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
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// S2: an expired list is followed by a list at "" at once, and by later ones after pauses.
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

// The phase is "absent" or "forbidden" only after three consecutive answers; the content is kept.
func TestThePhaseSaysAbsentOrForbiddenAfterThreeInARow(t *testing.T) {
	for phase, err := range map[cache.Phase]error{
		cache.PhaseNotFound:  apierrors.NewNotFound(pods, ""),
		cache.PhaseForbidden: apierrors.NewForbidden(pods, "", errBoom),
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newSource(t, pod("a", "1")), func(c *cache.Config) { c.ReflectorOptions.Backoff = steady(time.Second) })
			r.run()
			synctest.Wait()
			r.source.FailLists(cachetest.Forever, err)
			r.source.FailWatches(cachetest.Forever, err)
			r.source.BreakWatches(errBoom)
			synctest.Wait()
			for _, want := range []cache.Phase{cache.PhasePaused, cache.PhasePaused, cache.PhasePaused, phase, phase} {
				assert.Equal(t, want, r.status().Phase)
				sleep(time.Second)
			}
			assert.Len(t, r.indexer.ListKeys(), 1, "content is kept")
			r.source.Heal()
			sleep(2 * time.Second)
			assert.Equal(t, cache.PhaseWatching, r.status().Phase)
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
		assert.Empty(t, r.errors.all())
		assert.Equal(t, 1, r.source.ActiveWatches())
		r.stop()
	})
}

type resyncFails struct{ cache.Indexer }

func (resyncFails) Resync() error { return errBoom }

func TestAResyncThatFailsIsReportedAndEndsTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &errorRecorder{}
		reflector := cache.NewReflectorWithOptions(source, &object{}, resyncFails{cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)},
			cache.ReflectorOptions{ResyncPeriod: time.Minute, ErrorHandler: h.handle})
		require.NoError(t, reflector.ListAndWatchWithContext(t.Context()))
		require.Len(t, h.all(), 1)
		var refused *cache.StoreError
		require.ErrorAs(t, h.all()[0], &refused)
		assert.Equal(t, "Resync", refused.Op)
		assert.ErrorIs(t, refused, errBoom)
		source.Close()
	})
}

// A resync that fails during a pause or a list is reported and ends neither. Fails if it ends the
// pause, or is lost.
func TestAResyncThatFailsMeanwhileEndsNeitherAPauseNorAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		h := &errorRecorder{}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		began := time.Now()
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, resyncFails{indexer},
			cache.ReflectorOptions{ResyncPeriod: 20 * time.Second, ErrorHandler: h.handle, Strategy: cache.ListUnpaged}))
		source.FailWatches(cachetest.Forever, errBoom)
		source.DelayLists(15 * time.Second)
		sleep(30 * time.Minute)
		assert.Equal(t, 90, h.count(causeStoreError), "one each 20 s")
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

// ListAndWatch is one round: it returns nil if the context or the watch ends it, otherwise the
// error of a list or watch request, which is then not reported.
func TestListAndWatchIsOneRound(t *testing.T) {
	newReflector := func(source cache.ListerWatcher, h *errorRecorder) *cache.Reflector {
		return cache.NewReflectorWithOptions(source, &object{}, cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil),
			cache.ReflectorOptions{Name: "round", ErrorHandler: h.handle, Strategy: cache.ListPaged})
	}
	t.Run("the context ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t, pod("a", "1")), &errorRecorder{}
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
			source, h := newSource(t, pod("a", "1")), &errorRecorder{}
			source.BreakNextWatches(1, 0, cachetest.ErrExpired())
			assert.NoError(t, newReflector(source, h).ListAndWatchWithContext(t.Context()))
			assert.Equal(t, []cache.Cause{cache.CauseExpired}, h.causes())
			assert.Equal(t, 1, source.ListCalls())
			source.Close()
		})
	})
	t.Run("a failed list is returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t), &errorRecorder{}
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
			source, h := newSource(t), &errorRecorder{}
			source.FailWatches(1, errBoom)
			assert.ErrorIs(t, newReflector(source, h).ListAndWatchWithContext(t.Context()), errBoom)
			assert.Empty(t, h.all())
			source.Close()
		})
	})
}

// S19: the methods of a ListWatch call the function with or without a context, or the other one if
// it is missing.
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
		lw          cache.ListWatch
		plain, with string
	}{
		{cache.ListWatch{ListFunc: list, WatchFunc: watchPlain}, "plain", "plain"},
		{cache.ListWatch{ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "context", "context"},
		{cache.ListWatch{ListFunc: list, WatchFunc: watchPlain, ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "plain", "context"},
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

// contextlessSource is a source without contexts.
type contextlessSource struct{ lists, watches int }

func (d *contextlessSource) List(metav1.ListOptions) (apiruntime.Object, error) {
	d.lists++
	return nil, errBoom
}

func (d *contextlessSource) Watch(metav1.ListOptions) (watch.Interface, error) {
	d.watches++
	return nil, errBoom
}

// listContextSource is a source with a context for lists only.
type listContextSource struct{ contextlessSource }

func (h *listContextSource) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return nil, nil
}

func TestSourcesWithoutContextsAreAdapted(t *testing.T) {
	d := &contextlessSource{}
	with := cache.ToListerWatcherWithContext(d)
	_, err := with.ListWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	_, err = with.WatchWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, contextlessSource{1, 1}, *d)

	h := &listContextSource{}
	_, err = cache.ToListerWatcherWithContext(h).ListWithContext(t.Context(), metav1.ListOptions{})
	assert.NoError(t, err, "the method with a context is preferred where there is one")
	assert.Zero(t, h.lists)

	lw := &cache.ListWatch{}
	assert.Same(t, lw, cache.ToListerWatcherWithContext(lw))
	assert.Same(t, lw, cache.ToListerWithContext(lw))
	assert.Same(t, lw, cache.ToWatcherWithContext(lw))
}

// Objects of the wrong type or kind, nil ones and those without metadata are reported and skipped,
// in lists and events.
func TestObjectsOfWrongTypesAreReportedAndSkipped(t *testing.T) {
	noMeta := &metav1.Status{Status: "no metadata of its own"}
	wrongType := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "a", "name": "wrong", "resourceVersion": "8", "uid": "w"},
	}}
	t.Run("event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := newSource(t, pod("a", "1"))
			r := newRig(t, source, nil)
			r.run()
			synctest.Wait()
			unknown := pod("a", "unknown")
			unknown.ResourceVersion = "9"
			source.Inject(watch.Event{Type: watch.Added, Object: wrongType})
			source.Inject(watch.Event{Type: watch.Modified, Object: noMeta})
			source.Inject(watch.Event{Type: watch.Modified, Object: nil})
			source.Inject(watch.Event{Type: "GONE", Object: unknown})
			synctest.Wait()
			stages := map[string]int{}
			for _, err := range r.errors.all() {
				var object *cache.ObjectError
				require.ErrorAs(t, err, &object)
				require.NotEmpty(t, object.Key)
				stages[object.Stage]++
			}
			assert.Equal(t, 2, stages[stageType])
			assert.Equal(t, 2, stages[stageMetadata])
			assert.Equal(t, "9", r.ctlr.LastSyncResourceVersion(), "their versions count")
			require.NoError(t, source.Apply(pod("a", "2")))
			synctest.Wait()
			assert.Contains(t, r.versions(), "a/2")
			assert.Equal(t, 1, source.ListCalls())
			r.stop()
		})
	})
	t.Run("list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			items := []apiruntime.Object{pod("a", "1"), wrongType, noMeta, nil, (*object)(nil), pod("a", "2")}
			h := &errorRecorder{}
			source := &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
				return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: slices.Clone(items)}, nil
			}, WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewFake()
				context.AfterFunc(ctx, w.Stop)
				return w, nil
			}}
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
			previous := pod("a", "wrong")
			require.NoError(t, indexer.Add(previous))
			// A first list deletes no object stored before; after a committed one
			// the next is a relist.
			require.NoError(t, indexer.Replace([]any{previous}, "1"))
			reflector := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{Name: "n", ErrorHandler: h.handle})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); reflector.RunWithContext(ctx) }()
			synctest.Wait()
			assert.ElementsMatch(t, []string{"a/1", "a/2", "a/wrong"}, indexer.ListKeys(), "the previous state of a refused object stays")
			assert.Len(t, h.all(), 4)
			assert.Len(t, reflector.Status().Quarantined, 4)
			assert.Equal(t, "10", indexer.LastStoreSyncResourceVersion())
			cancel()
			<-done
		})
	})
	t.Run("wrong kind", func(t *testing.T) {
		example := &unstructured.Unstructured{}
		example.SetAPIVersion("v1")
		example.SetKind("Pod")
		one, other := example.DeepCopy(), example.DeepCopy()
		one.SetName("1")
		other.SetKind("Node")
		other.SetName("n")
		synctest.Test(t, func(t *testing.T) {
			h, store := &errorRecorder{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
			source := &funcSource{list: func(metav1.ListOptions) (apiruntime.Object, error) {
				return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []apiruntime.Object{one, other}}, nil
			}, watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(), nil }}
			r := cache.NewReflectorWithOptions(source, example, store, cache.ReflectorOptions{ErrorHandler: h.handle})
			assert.Equal(t, "/v1, Kind=Pod", r.TypeDescription())
			runReflector(t, r)()
			assert.Equal(t, []string{"1"}, store.ListKeys())
			require.Len(t, h.all(), 1)
			var unexpected *cache.UnexpectedTypeError
			require.ErrorAs(t, h.all()[0], &unexpected)
			assert.Contains(t, unexpected.Actual, "Node")
		})
	})
}

// Fails if the pause is computed only after the failure was reported.
func TestAFailureIsReportedWithTheTimeOfTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
		source := newSource(t, pod("a", "1"))
		source.FailRequests(cachetest.Forever, errBoom)
		var announced []time.Time
		reflector := cache.NewReflectorWithOptions(
			source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
				Name: "pods", Logger: &logger, Strategy: cache.ListPaged, Random: func() float64 { return 0.5 },
				ErrorHandler: func(ctx context.Context, r *cache.Reflector, err error) {
					announced = append(announced, r.Status().NextAttempt)
					cache.DefaultWatchErrorHandler(ctx, r, err)
				},
			})
		stop := runReflector(t, reflector)
		sleep(70 * time.Second)
		stop()

		requests := source.Requests()
		for i, request := range requests[1:] {
			assert.Equal(t, announced[i], request.Time)
		}
		var retries []string
		for _, match := range regexp.MustCompile(`retryIn="([^"]*)"`).FindAllStringSubmatch(out.String(), -1) {
			retries = append(retries, match[1])
		}
		assert.Equal(t, []string{"150ms", "225ms", "52s"}, retries, out.String())
	})
}
