package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

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
		assert.Equal(t, 90, h.count(CauseStore), "one each 20 s")
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
		"nil":               {nil, ErrNilList},
		"nil pointer":       {(*metav1.PartialObjectMetadataList)(nil), ErrNilList},
		"table":             {&metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}, ErrTableList},
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
			assert.ErrorIs(t, err, ErrNilWatch)
		})
	})
	t.Run("no functions", func(t *testing.T) {
		_, err := (&ListWatch{}).List(metav1.ListOptions{})
		assert.ErrorIs(t, err, ErrNoListFunc)
		_, err = (&ListWatch{}).Watch(metav1.ListOptions{})
		assert.ErrorIs(t, err, ErrNoWatchFunc)
	})
}
