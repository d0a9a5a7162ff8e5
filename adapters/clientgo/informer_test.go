package clientgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

func TestAHandlerOfClientGoHearsOfEverything(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0", "web-1")
		informer, _ := podInformer(source)
		handler := &recorder{}
		handle, err := informer.AddEventHandler(handler)
		require.NoError(t, err)
		require.False(t, handle.HasSynced())
		require.False(t, informer.HasSynced())
		run(t, informer)
		require.True(t, handle.HasSynced())
		require.True(t, informer.HasSynced())
		require.ElementsMatch(t, []string{"add web-0, initial true", "add web-1, initial true"}, handler.take())

		require.NoError(t, source.Apply(pod("web-2", ""), pod("web-0", "")))
		_, err = source.Delete("shop", "web-1")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"add web-2, initial false", "update web-0 from 1 to 4", "delete web-1"}, handler.take())
	})
}

func TestATombstoneIsClientGosToAHandlerOfClientGo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0", "web-1")
		informer, ours := podInformer(source)
		adapted, direct := &recorder{}, &recorder{}
		_, err := informer.AddEventHandler(adapted)
		require.NoError(t, err)
		_, err = ours.AddEventHandler(clientgo.ResourceEventHandler(direct))
		require.NoError(t, err)
		var typed []toolscache.DeletedObject[*corev1.Pod]
		_, err = toolscache.NewTypedSharedIndexInformer[*corev1.Pod](informer).AddTypedEventHandler(
			toolscache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
				DeleteFunc: func(gone toolscache.DeletedObject[*corev1.Pod]) { typed = append(typed, gone) },
			})
		require.NoError(t, err)
		run(t, informer)
		adapted.take()
		direct.take()

		loseSightOf(t, source, "web-1")
		require.Equal(t, []string{"tombstone shop/web-1 of web-1"}, adapted.take())
		require.Equal(t, []string{"tombstone shop/web-1 of web-1"}, direct.take())
		require.Len(t, typed, 1)
		require.Equal(t, "shop/web-1", typed[0].FinalStateUnknown.Key)
		require.Equal(t, "web-1", typed[0].OptionalObj.Name)
	})
}

func TestANilHandlerIsRefused(t *testing.T) {
	informer, ours := podInformer(podSource(t))
	for _, handler := range []toolscache.ResourceEventHandler{nil, (*recorder)(nil)} {
		handle, err := informer.AddEventHandler(handler)
		require.ErrorIs(t, err, cache.ErrNilHandler)
		require.True(t, handle == nil, "a handle that is nil and does not look so")
		_, err = ours.AddEventHandler(clientgo.ResourceEventHandler(handler))
		require.ErrorIs(t, err, cache.ErrNilHandler)
	}
}

func TestAHandlersResyncPeriodIsAsInClientGo(t *testing.T) {
	short, negative := time.Millisecond, -time.Second
	for name, test := range map[string]struct {
		add  func(toolscache.SharedIndexInformer, toolscache.ResourceEventHandler) error
		want int // resyncs in the 10 seconds after the first list
	}{
		"the informer's": {func(i toolscache.SharedIndexInformer, h toolscache.ResourceEventHandler) error {
			_, err := i.AddEventHandler(h)
			return err
		}, 2},
		"its own": {func(i toolscache.SharedIndexInformer, h toolscache.ResourceEventHandler) error {
			_, err := i.AddEventHandlerWithResyncPeriod(h, 2*time.Second)
			return err
		}, 5},
		"none": {func(i toolscache.SharedIndexInformer, h toolscache.ResourceEventHandler) error {
			_, err := i.AddEventHandlerWithResyncPeriod(h, 0)
			return err
		}, 0},
		"below the least, which is then used": {func(i toolscache.SharedIndexInformer, h toolscache.ResourceEventHandler) error {
			_, err := i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &short})
			return err
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				informer := clientgo.NewInformer(podSource(t, "web-0"), &corev1.Pod{}, 5*time.Second, nil)
				handler := &recorder{}
				require.NoError(t, test.add(informer, handler))
				run(t, informer)
				handler.take()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.Len(t, handler.take(), test.want)
			})
		})
	}
	informer, _ := podInformer(podSource(t))
	_, err := informer.AddEventHandlerWithResyncPeriod(&recorder{}, negative)
	require.ErrorContains(t, err, "ResyncPeriod is negative")
}

func TestTheStatusOfAnInformerNamesHandlersOfClientGo(t *testing.T) {
	informer, _ := podInformer(podSource(t))
	funcs := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {}}
	for _, handler := range []toolscache.ResourceEventHandler{
		&recorder{}, funcs, toolscache.ResourceEventHandlerFuncs{},
		toolscache.ResourceEventHandlerDetailedFuncs{AddFunc: func(any, bool) {}},
		toolscache.FilteringResourceEventHandler{Handler: funcs}, toolscache.FilteringResourceEventHandler{},
	} {
		_, err := informer.AddEventHandler(handler)
		require.NoError(t, err)
	}
	status, ok := cache.StatusOf(informer)
	require.True(t, ok)
	require.Equal(t, "pods", status.Name)
	var names []string
	for _, handler := range status.Handlers {
		names = append(names, handler.Name)
	}
	const place = "github.com/watchmirror/cache/adapters/clientgo_test.TestTheStatusOfAnInformerNamesHandlersOfClientGo"
	require.Equal(t, []string{
		"*clientgo_test.recorder",
		"cache.ResourceEventHandlerFuncs with " + place + ".func1",
		"cache.ResourceEventHandlerFuncs",
		"cache.ResourceEventHandlerDetailedFuncs with " + place + ".func2",
		"cache.FilteringResourceEventHandler of cache.ResourceEventHandlerFuncs with " + place + ".func1",
		"cache.FilteringResourceEventHandler",
	}, names)
}

func TestAnInformerIsNamedAfterWhoMadeIt(t *testing.T) {
	informer := clientgo.NewInformer(podSource(t), &corev1.Pod{}, 0, nil)
	status, _ := cache.StatusOf(informer)
	require.Regexp(t, `^clientgo/informer_test\.go:\d+$`, status.Name)
	require.Equal(t, "*v1.Pod", status.TypeDescription)
	informer = clientgo.NewInformerWithOptions(podSource(t), &corev1.Pod{}, cache.SharedIndexInformerOptions{
		ReflectorOptions: cache.ReflectorOptions{Name: "mine"},
	})
	status, _ = cache.StatusOf(informer)
	require.Equal(t, "mine", status.Name)
}

func TestATransformOfClientGoIsApplied(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		informer, _ := podInformer(podSource(t, "web-0"))
		require.NoError(t, informer.SetTransform(nil), "as controller-runtime does, where there is none")
		require.NoError(t, informer.SetTransform(func(obj any) (any, error) {
			obj.(*corev1.Pod).Annotations = map[string]string{"seen": "yes"}
			return obj, nil
		}))
		run(t, informer)
		stored, exists, err := informer.GetStore().GetByKey("shop/web-0")
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "yes", stored.(*corev1.Pod).Annotations["seen"])
		require.ErrorIs(t, informer.SetTransform(nil), cache.ErrInformerStarted)
	})
}

func TestWatchErrorHandlersOfClientGoAreGivenAReflectorWithAName(t *testing.T) {
	type failure struct {
		name, what string
		forbidden  bool
	}
	for form, set := range map[string]func(toolscache.SharedIndexInformer, func(*toolscache.Reflector, error)) error{
		"plain": func(i toolscache.SharedIndexInformer, handle func(*toolscache.Reflector, error)) error {
			return i.SetWatchErrorHandler(handle)
		},
		"with context": func(i toolscache.SharedIndexInformer, handle func(*toolscache.Reflector, error)) error {
			return i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
				require.NotNil(t, ctx)
				toolscache.DefaultWatchErrorHandler(ctx, r, err) // reads the name without asking
				handle(r, err)
			})
		},
	} {
		t.Run(form, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				withoutErrorHandlers(t)
				source := podSource(t, "web-0")
				source.FailLists(2, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")))
				informer, _ := podInformer(source)
				var got []failure
				reflectors := map[*toolscache.Reflector]bool{}
				require.NoError(t, set(informer, func(r *toolscache.Reflector, err error) {
					reflectors[r] = true
					got = append(got, failure{r.Name(), r.TypeDescription(), apierrors.IsForbidden(err)})
				}))
				run(t, informer)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []failure{{"pods", "*v1.Pod", true}, {"pods", "*v1.Pod", true}}, got)
				require.Len(t, reflectors, 1, "one informer is one reflector")
				require.True(t, informer.HasSynced())
				require.ErrorIs(t, set(informer, func(*toolscache.Reflector, error) {}), cache.ErrInformerStarted)
			})
		})
	}
	informer, _ := podInformer(podSource(t))
	require.ErrorIs(t, informer.SetWatchErrorHandler(nil), cache.ErrNilHandler)
	require.ErrorIs(t, informer.SetWatchErrorHandlerWithContext(nil), cache.ErrNilHandler)
}

// withoutErrorHandlers takes apimachinery's away. One of them waits out the time since the
// last error of the process, which is decades if that was outside of the bubble.
func withoutErrorHandlers(t *testing.T) {
	t.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// A handler that runs the reflector it is given has made a mistake, and no more.
func TestTheReflectorOfAWatchErrorHandlerMirrorsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t)
		source.FailLists(1, nil)
		informer, _ := podInformer(source)
		var given *toolscache.Reflector
		require.NoError(t, informer.SetWatchErrorHandler(func(r *toolscache.Reflector, _ error) { given = r }))
		run(t, informer)
		require.ErrorContains(t, given.ListAndWatchWithContext(t.Context()), "only has a name")
	})
}

func TestTheControllerOfAnInformerReportsOnIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		informer, _ := podInformer(podSource(t, "web-0"))
		controller := informer.GetController()
		controller.RunWithContext(t.Context()) // does nothing
		controller.Run(nil)
		require.False(t, controller.HasSynced())
		require.False(t, toolscache.IsDone(controller.HasSyncedChecker()))
		run(t, informer)
		require.True(t, controller.HasSynced())
		require.True(t, toolscache.IsDone(controller.HasSyncedChecker()))
		require.Equal(t, "1", controller.LastSyncResourceVersion())
		require.Equal(t, "1", informer.LastSyncResourceVersion())
	})
}

func TestAStoppedInformerTakesNoHandlers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		informer, _ := podInformer(podSource(t))
		run(t, informer)()
		require.True(t, informer.IsStopped())
		_, err := informer.AddEventHandler(&recorder{})
		require.ErrorIs(t, err, cache.ErrInformerStopped)
		require.ErrorIs(t, informer.AddIndexers(toolscache.Indexers{}), cache.ErrInformerStopped)
	})
}

// streamed is a source of client-go's that says that it can stream its first state.
type streamed struct{ toolscache.ListerWatcher }

func (streamed) IsWatchListSemanticsUnSupported() bool { return false }

func TestWhatASourceCanDoIsNotHidden(t *testing.T) {
	firstRequest := func(t *testing.T, adapt func(*cachetest.Source) toolscache.ListerWatcher) (request cachetest.Request) {
		inBubble(t, func(t *testing.T) {
			source := podSource(t, "web-0")
			informer := clientgo.NewInformer(adapt(source), &corev1.Pod{}, 0, nil)
			run(t, informer)
			require.True(t, informer.HasSynced())
			request = source.Requests()[0]
		})
		return request
	}
	streaming := firstRequest(t, func(s *cachetest.Source) toolscache.ListerWatcher { return streamed{s} })
	require.Equal(t, cachetest.VerbWatch, streaming.Verb)
	require.True(t, *streaming.Options.SendInitialEvents)
	plain := firstRequest(t, func(s *cachetest.Source) toolscache.ListerWatcher {
		return &toolscache.ListWatch{ListWithContextFunc: s.ListWithContext, WatchFuncWithContext: s.WatchWithContext}
	})
	require.Equal(t, cachetest.VerbList, plain.Verb)
}

func TestWhatCannotBeAnInformerPanicsAtOnce(t *testing.T) {
	for what, construct := range map[string]func(){
		"the informer is nil":      func() { clientgo.SharedIndexInformer(nil) },
		"the indexer is nil":       func() { clientgo.Indexer(nil) },
		"the lister is nil":        func() { clientgo.GenericLister(nil) },
		"the client is nil":        func() { clientgo.NewListWatchFromClient(nil, "pods", metav1.NamespaceAll, nil) },
		"the ListerWatcher is nil": func() { clientgo.NewInformer(nil, &corev1.Pod{}, 0, nil) },
	} {
		func() {
			defer func() { assert.Contains(t, recover(), what) }()
			construct()
		}()
	}
}
