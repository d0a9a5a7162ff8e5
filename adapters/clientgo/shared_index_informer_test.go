package clientgo_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

func TestAHandlerOfClientGoReceivesEveryEvent(t *testing.T) {
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
		require.ElementsMatch(
			t, []string{"add web-0, initial true", "add web-1, initial true"}, handler.take())

		require.NoError(t, source.Apply(pod("web-2", ""), pod("web-0", "")))
		_, err = source.Delete("shop", "web-1")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(
			t, []string{"add web-2, initial false", "update web-0 from 1 to 4", "delete web-1"},
			handler.take())
	})
}

func TestATombstoneIsClientGosToAHandlerOfClientGo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0", "web-1")
		informer, ours := podInformer(source)
		adapted := &recorder{}
		direct := &recorder{}
		_, err := informer.AddEventHandler(adapted)
		require.NoError(t, err)
		_, err = ours.AddEventHandler(clientgo.ResourceEventHandler(direct))
		require.NoError(t, err)
		var typed []toolscache.DeletedObject[*corev1.Pod]
		_, err = toolscache.NewTypedSharedIndexInformer[*corev1.Pod](informer).AddTypedEventHandler(
			toolscache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
				DeleteFunc: func(deleted toolscache.DeletedObject[*corev1.Pod]) { typed = append(typed, deleted) },
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
		require.ErrorContains(t, err, "handler is nil")
		require.True(t, handle == nil, "a handle that is nil and does not look so")
		_, err = ours.AddEventHandler(clientgo.ResourceEventHandler(handler))
		require.ErrorContains(t, err, "handler is nil")
	}
}

func TestTheStatusOfAnInformerNamesHandlersOfClientGo(t *testing.T) {
	informer, _ := podInformer(podSource(t))
	funcs := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {}}
	for _, handler := range []toolscache.ResourceEventHandler{
		&recorder{}, funcs, toolscache.ResourceEventHandlerFuncs{},
		toolscache.ResourceEventHandlerDetailedFuncs{AddFunc: func(any, bool) {}},
		toolscache.FilteringResourceEventHandler{Handler: funcs},
		toolscache.FilteringResourceEventHandler{},
	} {
		_, err := informer.AddEventHandler(handler)
		require.NoError(t, err)
	}
	status := informer.(cache.StatusReporter).Status()
	require.Equal(t, "pods", status.Name)
	var names []string
	for _, handler := range status.Handlers {
		names = append(names, handler.Name)
	}
	const place = "github.com/watchmirror/cache/adapters/clientgo_test.TestTheStatusOfAnInformerNamesHandlersOfClientGo"
	require.Equal(t, []string{
		"*clientgo_test.recorder",
		place + ".func1",
		"cache.ResourceEventHandlerFuncs",
		place + ".func2",
		place + ".func1",
		"cache.FilteringResourceEventHandler",
	}, names)
}

func TestTheControllerOfAnInformerHasItsStatus(t *testing.T) {
	informer, _ := podInformer(podSource(t))
	status := informer.GetController().(cache.StatusReporter).Status()
	require.Equal(t, "pods", status.Name)
}

// withoutStatus is an informer of another package.
type withoutStatus struct{ cache.SharedIndexInformer }

func (w withoutStatus) GetController() cache.Controller {
	//lint:ignore SA1019 the interface has it
	return struct{ cache.Controller }{w.SharedIndexInformer.GetController()}
}

func TestAnInformerWithoutAStatusIsNotSaidToHaveOne(t *testing.T) {
	_, ours := podInformer(podSource(t))
	informer := clientgo.SharedIndexInformer(withoutStatus{ours})
	require.NotImplements(t, (*cache.StatusReporter)(nil), informer)
	require.NotImplements(t, (*cache.StatusReporter)(nil), informer.GetController())
}

func TestATransformOfClientGoIsApplied(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		informer, _ := podInformer(podSource(t, "web-0"))
		require.NoError(
			t, informer.SetTransform(nil), "as controller-runtime does, where there is none")
		require.NoError(t, informer.SetTransform(func(obj any) (any, error) {
			obj.(*corev1.Pod).Annotations = map[string]string{"seen": "yes"}
			return obj, nil
		}))
		run(t, informer)
		stored, exists, err := informer.GetStore().GetByKey("shop/web-0")
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "yes", stored.(*corev1.Pod).Annotations["seen"])
		require.ErrorContains(t, informer.SetTransform(nil), "informer has started")
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
