package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

func TestAHandlerIsRemovedByItsHandle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0")
		informer, _ := podInformer(source)
		removed := &recorder{}
		kept := &recorder{}
		handles := map[toolscache.ResourceEventHandlerRegistration]*recorder{}
		for _, handler := range []*recorder{removed, kept} {
			handle, err := informer.AddEventHandler(handler)
			require.NoError(t, err)
			handles[handle] = handler
		}
		require.Len(t, handles, 2, "handles are compared, and are different")
		run(t, informer)
		removed.take()
		kept.take()
		for handle, handler := range handles {
			if handler == removed {
				require.NoError(t, informer.RemoveEventHandler(handle))
				require.NoError(t, informer.RemoveEventHandler(handle), "twice is no error")
				require.NoError(t, toolscache.ShutDownEventHandler(informer, handle))
			}
		}
		require.NoError(t, source.Apply(pod("web-1", "")))
		synctest.Wait()
		require.Empty(t, removed.take())
		require.Len(t, kept.take(), 1)
	})
}

// theirHandle is a handle of another implementation.
type theirHandle struct {
	toolscache.ResourceEventHandlerRegistration
}

func TestAForeignHandleRemovesNothing(t *testing.T) {
	informer, _ := podInformer(podSource(t))
	other, _ := podInformer(podSource(t))
	handle, err := other.AddEventHandler(&recorder{})
	require.NoError(t, err)
	for _, foreign := range []toolscache.ResourceEventHandlerRegistration{
		handle, theirHandle{}, nil,
	} {
		require.ErrorIs(t, informer.RemoveEventHandler(foreign), cache.ErrForeignRegistration)
		require.ErrorIs(
			t, toolscache.ShutDownEventHandler(informer, foreign), cache.ErrForeignRegistration)
	}
	status := other.(cache.StatusReporter).Status()
	require.Len(t, status.Handlers, 1)
}

// slow is a handler that signals when it is called, and waits until it may return.
type slow struct {
	recorder
	called, mayReturn chan struct{}
}

func (s *slow) OnAdd(any, bool) {
	s.called <- struct{}{}
	<-s.mayReturn
}

func TestShutDownEventHandlerOfClientGoWaitsForTheCallThatIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		informer, _ := podInformer(podSource(t, "web-0", "web-1"))
		handler := &slow{called: make(chan struct{}, 2), mayReturn: make(chan struct{})}
		handle, err := informer.AddEventHandler(handler)
		require.NoError(t, err)
		run(t, informer)
		<-handler.called
		over := make(chan error)
		go func() { over <- toolscache.ShutDownEventHandler(informer, handle) }()
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("it has not waited")
		default:
		}
		close(handler.mayReturn)
		require.NoError(t, <-over)
		require.Empty(t, handler.called, "it was called again")
		require.NoError(t, toolscache.ShutDownEventHandler(informer, handle), "twice is no error")
	})
}

func TestAHandlerRemovesItselfWithoutADeadlock(t *testing.T) {
	for name, remove := range map[string]func(toolscache.SharedInformer, toolscache.ResourceEventHandlerRegistration) error{
		"RemoveEventHandler": func(i toolscache.SharedInformer, h toolscache.ResourceEventHandlerRegistration) error {
			return i.RemoveEventHandler(h)
		},
		"ShutDownEventHandler": toolscache.ShutDownEventHandler, // client-go's own informers wait forever
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				informer, _ := podInformer(podSource(t, "web-0", "web-1"))
				handles := make(chan toolscache.ResourceEventHandlerRegistration, 1)
				var calls []error
				handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
					AddFunc: func(any) { calls = append(calls, remove(informer, <-handles)) },
				})
				require.NoError(t, err)
				handles <- handle
				run(t, informer)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []error{nil}, calls)
			})
		})
	}
}

func TestAHandleThatIsNotRemovedIsNotShutDown(t *testing.T) {
	informer, _ := podInformer(podSource(t))
	handle, err := informer.AddEventHandler(&recorder{})
	require.NoError(t, err)
	select {
	case <-handle.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan():
		t.Fatal("it looks shut down")
	default:
	}
	status := informer.(cache.StatusReporter).Status()
	require.Len(t, status.Handlers, 1)
}

func TestCheckersAreDoneOnlyIfTheyComeTrue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0")
		source.HangLists(1)
		informer, _ := podInformer(source)
		kept, err := informer.AddEventHandler(&recorder{})
		require.NoError(t, err)
		removed, err := informer.AddEventHandler(&recorder{})
		require.NoError(t, err)
		run(t, informer)
		require.NoError(t, informer.RemoveEventHandler(removed))

		checkers := []toolscache.DoneChecker{informer.HasSyncedChecker(), kept.HasSyncedChecker()}
		require.Equal(t, "informer pods (*v1.Pod)", checkers[0].Name())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, toolscache.WaitFor(ctx, "", checkers...))
		source.Heal()
		require.True(t, toolscache.WaitFor(t.Context(), "", checkers...))
		require.False(t, toolscache.IsDone(removed.HasSyncedChecker()))
		require.False(t, removed.HasSynced())
	})
}

// A generated factory does this when its context ends before the informers have synced.
func TestTheCheckerOfAnInformerThatStoppedBeforeItSyncedIsNotDone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t)
		source.HangLists(1)
		informer, _ := podInformer(source)
		handle, err := informer.AddEventHandler(&recorder{})
		require.NoError(t, err)
		run(t, informer)()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, toolscache.WaitFor(ctx, "", informer.HasSyncedChecker()))
		require.False(t, toolscache.WaitFor(ctx, "", handle.HasSyncedChecker()))
		require.False(t, informer.HasSynced())
	})
}

// oneChannel is the checker of another package's informer, without a channel that only success
// closes.
type oneChannel struct {
	done chan struct{}
	err  error
}

func (c *oneChannel) Name() string          { return "one channel" }
func (c *oneChannel) Done() <-chan struct{} { return c.done }
func (c *oneChannel) Err() error            { return c.err }

// withChecker is an informer with such a checker.
type withChecker struct {
	cache.SharedIndexInformer
	checker cache.DoneChecker
}

func (w withChecker) HasSyncedChecker() cache.DoneChecker { return w.checker }

func TestACheckerThatCanEndInVainIsDoneOnlyIfItComesTrue(t *testing.T) {
	for name, err := range map[string]error{"comes true": nil, "in vain": errors.New("in vain")} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, early %t", name, early), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					_, ours := podInformer(podSource(t))
					foreign := &oneChannel{done: make(chan struct{})}
					checker := clientgo.SharedIndexInformer(
						withChecker{ours, foreign}).HasSyncedChecker()
					require.Equal(t, "one channel", checker.Name())
					if !early {
						require.False(t, toolscache.IsDone(checker))
					}
					foreign.err = err
					close(foreign.done)
					if !early {
						synctest.Wait()
					}
					require.Equal(t, err == nil, toolscache.IsDone(checker))
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					require.Equal(t, err == nil, toolscache.WaitFor(ctx, "", checker))
				})
			})
		}
	}
}

// neverInVain is a checker like client-go's, which knows no failure.
type neverInVain struct{ done chan struct{} }

func (neverInVain) Name() string            { return "plain" }
func (c neverInVain) Done() <-chan struct{} { return c.done }

func TestACheckerThatCannotEndInVainIsLeftAsItIs(t *testing.T) {
	_, ours := podInformer(podSource(t))
	plain := neverInVain{make(chan struct{})}
	checker := clientgo.SharedIndexInformer(withChecker{ours, plain}).HasSyncedChecker()
	require.False(t, toolscache.IsDone(checker))
	close(plain.done)
	require.True(t, toolscache.IsDone(checker))
}

func TestInformersOfTheFunctionAreNamedAfterTheirType(t *testing.T) {
	unstructuredPod := &unstructured.Unstructured{}
	unstructuredPod.SetGroupVersionKind(
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	for want, example := range map[string]runtime.Object{
		`v1\.Pod`: &corev1.Pod{}, `Deployment\.apps`: unstructuredPod,
	} {
		informer := clientgo.NewInformer(&toolscache.ListWatch{}, example, 0, nil)
		require.Regexp(t, `^informer `+want+`(#\d+)? \(`, informer.HasSyncedChecker().Name())
	}
}
