package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

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
				toolscache.DefaultWatchErrorHandler(ctx, r, err) // reads the name unconditionally
				handle(r, err)
			})
		},
	} {
		t.Run(form, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				withoutErrorHandlers(t)
				source := podSource(t, "web-0")
				source.FailLists(
					2,
					apierrors.NewForbidden(
						schema.GroupResource{Resource: "pods"}, "", errors.New("no")),
				)
				informer, _ := podInformer(source)
				var got []failure
				reflectors := map[*toolscache.Reflector]bool{}
				require.NoError(t, set(informer, func(r *toolscache.Reflector, err error) {
					reflectors[r] = true
					got = append(
						got, failure{r.Name(), r.TypeDescription(), apierrors.IsForbidden(err)})
				}))
				run(t, informer)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(
					t, []failure{{"pods", "*v1.Pod", true}, {"pods", "*v1.Pod", true}}, got)
				require.Len(t, reflectors, 1, "one informer is one reflector")
				require.True(t, informer.HasSynced())
				require.ErrorContains(
					t, set(informer, func(*toolscache.Reflector, error) {}), "informer has started")
			})
		})
	}
	informer, _ := podInformer(podSource(t))
	require.ErrorContains(t, informer.SetWatchErrorHandler(nil), "handler is nil")
	require.ErrorContains(t, informer.SetWatchErrorHandlerWithContext(nil), "handler is nil")
}

// withoutErrorHandlers removes apimachinery's error handlers. One of them waits according to the
// time since the process's last error, which is decades if that was outside of the bubble.
func withoutErrorHandlers(t *testing.T) {
	t.Helper()
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// A handler that runs the reflector it receives is misuse, without further consequences.
func TestTheReflectorOfAWatchErrorHandlerMirrorsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t)
		source.FailLists(1, nil)
		informer, _ := podInformer(source)
		var given *toolscache.Reflector
		require.NoError(
			t, informer.SetWatchErrorHandler(func(r *toolscache.Reflector, _ error) { given = r }))
		run(t, informer)
		require.ErrorContains(t, given.ListAndWatchWithContext(t.Context()), "only has a name")
	})
}

// Such a handler may count without a lock, since only reflectors call it. The race detector checks
// that.
func TestAWatchErrorHandlerOfClientGoReceivesFailuresOfTheSourceAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		withoutPanicHandlers(t)
		source := podSource(t, "web-0", "web-1")
		source.FailLists(2, nil)
		others := make(chan cache.Cause, 1000)
		informer := clientgo.NewInformerWithOptions(
			source,
			&corev1.Pod{},
			cache.SharedIndexInformerOptions{
				Handlers: cache.HandlerOptions{RecoverPanics: true},
				ReflectorOptions: cache.ReflectorOptions{
					ErrorHandler: func(_ context.Context, r *cache.Reflector, err error) {
						assert.NotNil(t, r)
						others <- cache.CauseOf(err)
					},
				},
				Transform: func(obj any) (any, error) {
					if obj.(*corev1.Pod).Name == "bad" {
						return nil, errors.New("not accepted")
					}
					return obj, nil
				},
			},
		)
		reported := 0
		require.NoError(t, informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) {
			reported++
			assert.Equal(t, cache.CauseInternal, cache.CauseOf(err), "%v", err)
		}))
		for range 3 {
			_, err := informer.AddEventHandler(
				toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("handler") }})
			require.NoError(t, err)
		}
		run(t, informer)
		time.Sleep(time.Minute)
		require.NoError(t, source.Apply(pod("bad", "")))
		synctest.Wait()
		informer.RunWithContext(t.Context()) // again, which is misuse
		synctest.Wait()
		assert.Equal(t, 2, reported)
		close(others)
		counted := map[cache.Cause]int{}
		for cause := range others {
			counted[cause]++
		}
		assert.Equal(
			t, map[cache.Cause]int{"handler-error": 6, "transform-error": 1, "misuse": 1}, counted)
	})
}

func TestWhatAServerDoesNotStreamIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{
			NewList: func() runtime.Object { return &corev1.PodList{} }, NoWatchList: true,
		})
		t.Cleanup(source.Close)
		source.FailLists(1, apierrors.NewBadRequest("a list is refused in earnest"))
		var others, reported []string
		informer := clientgo.NewInformerWithOptions(
			source,
			&corev1.Pod{},
			cache.SharedIndexInformerOptions{
				ReflectorOptions: cache.ReflectorOptions{
					ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
						others = append(others, err.Error())
					},
				},
			},
		)
		require.NoError(t, informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) {
			reported = append(reported, err.Error())
		}))
		run(t, informer)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, informer.HasSynced())
		require.Len(t, others, 1)
		require.Contains(t, others[0], "streaming")
		require.Len(t, reported, 1)
		require.Contains(t, reported[0], "in earnest")
	})
}

// cutSource fails its first list and the watches after it.
type cutSource struct {
	*cachetest.Source
	list    error
	watches []error
}

func (s *cutSource) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	if err := s.list; err != nil {
		s.list = nil
		return nil, err
	}
	return s.Source.ListWithContext(ctx, options)
}

func (s *cutSource) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if len(s.watches) > 0 {
		err := s.watches[0]
		s.watches = s.watches[1:]
		return nil, err
	}
	return s.Source.WatchWithContext(ctx, options)
}

func TestTheEndOfAWatchIsWhatHandlersOfClientGoCompareItWith(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		in := func(err error) error { return &url.Error{Op: "Get", URL: "https://server", Err: err} }
		refused := errors.New("something else")
		source := &cutSource{
			Source:  podSource(t, "web-0"),
			list:    in(io.EOF),
			watches: []error{in(io.EOF), fmt.Errorf("body: %w", io.ErrUnexpectedEOF), refused},
		}
		// The source's ItemLister must not bypass the faults.
		informer := clientgo.NewInformer(marked{&toolscache.ListWatch{
			ListWithContextFunc:  source.ListWithContext,
			WatchFuncWithContext: source.WatchWithContext,
		}, true}, &corev1.Pod{}, 0, nil)
		var reported []error
		require.NoError(
			t,
			informer.SetWatchErrorHandler(
				func(_ *toolscache.Reflector, err error) { reported = append(reported, err) }),
		)
		run(t, informer)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Len(t, reported, 4)
		require.ErrorIs(t, reported[0], io.EOF)
		require.ErrorContains(t, reported[0], "listing", "a list that ends so has failed")
		require.True(t, reported[1] == io.EOF, "%v", reported[1])
		require.True(t, reported[2] == io.ErrUnexpectedEOF, "%v", reported[2])
		require.Equal(t, refused, reported[3])
	})
}
