package clientgo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

func TestAHandlersResyncPeriodIsAsInClientGo(t *testing.T) {
	short := time.Millisecond
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
		"below 0, which is none": {func(i toolscache.SharedIndexInformer, h toolscache.ResourceEventHandler) error {
			_, err := i.AddEventHandlerWithResyncPeriod(h, -time.Second)
			return err
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				informer := clientgo.NewInformer(
					podSource(t, "web-0"), &corev1.Pod{}, 5*time.Second, nil)
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
}

// A miscalculated period must not prevent a program from starting.
func TestAnInformersResyncPeriodIsAsInClientGo(t *testing.T) {
	for period, want := range map[time.Duration]int{ // resyncs in the 10 seconds after the first list
		-time.Second: 0, 0: 0, time.Millisecond: 10, 5 * time.Second: 2,
	} {
		t.Run(period.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				informer := clientgo.NewInformerFunc(cache.SharedIndexInformerOptions{
					ReflectorOptions: cache.ReflectorOptions{
						Logger:       &logger,
						ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { assert.NoError(t, err) },
					},
				})(podSource(t, "web-0"), &corev1.Pod{}, period, nil)
				logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
				kept := period == 0 || period >= time.Second
				require.Equal(t, !kept, strings.Contains(logged, "resync period"), logged)
				handler := &recorder{}
				_, err := informer.AddEventHandler(handler)
				require.NoError(t, err)
				run(t, informer)
				handler.take()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.Len(t, handler.take(), want)
			})
		})
	}
}

func TestInformersOfOneFunctionShareTheOptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		withoutPanicHandlers(t)
		options := cache.SharedIndexInformerOptions{
			Indexers: cache.Indexers{
				"app":                     byApp,
				toolscache.NamespaceIndex: func(any) ([]string, error) { return nil, errors.New("overruled") },
			},
			Handlers: cache.HandlerOptions{Delivery: cache.OrderedUnbounded, RecoverPanics: true},
		}
		newInformer := clientgo.NewInformerFunc(options)
		delete(options.Indexers, "app") // the map is copied
		for range 2 {
			source := podSource(t, "web-0")
			informer := newInformer(
				source, &corev1.Pod{}, 0,
				toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
			_, err := informer.AddEventHandler(
				toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("handler") }})
			require.NoError(t, err)
			run(t, informer)
			for _, index := range [][2]string{
				{"app", "web-0"}, {toolscache.NamespaceIndex, "shop"},
			} {
				found, err := informer.GetIndexer().ByIndex(index[0], index[1])
				require.NoError(t, err)
				require.Len(t, found, 1)
			}
			require.Len(t, informer.GetIndexer().GetIndexers(), 2)
			status := informer.(cache.StatusReporter).Status()
			require.Equal(t, cache.OrderedUnbounded, status.Handlers[0].Delivery)
			require.EqualValues(t, 1, status.Handlers[0].Panics)
		}
	})
}

// withoutPanicHandlers keeps a test's panics out of the log.
func withoutPanicHandlers(t *testing.T) {
	t.Helper()
	handlers := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	t.Cleanup(func() { utilruntime.PanicHandlers = handlers })
}

func TestAnInformerIsNamedAfterItsTypeOrItsOptions(t *testing.T) {
	informer := clientgo.NewInformer(podSource(t), &corev1.Pod{}, 0, nil)
	status := informer.(cache.StatusReporter).Status()
	require.Regexp(t, `^v1\.Pod(#\d+)?$`, status.Name)
	require.Equal(t, "*v1.Pod", status.TypeDescription)
	informer = clientgo.NewInformerFunc(
		cache.SharedIndexInformerOptions{})(
		podSource(t), &corev1.Pod{}, 0, nil)
	status = informer.(cache.StatusReporter).Status()
	require.Regexp(t, `^v1\.Pod(#\d+)?$`, status.Name)
	informer = clientgo.NewInformerWithOptions(
		podSource(t),
		&corev1.Pod{},
		cache.SharedIndexInformerOptions{
			ReflectorOptions: cache.ReflectorOptions{Name: "mine"},
		},
	)
	status = informer.(cache.StatusReporter).Status()
	require.Equal(t, "mine", status.Name)
}

// marked is a client-go source that declares whether it can stream its first list.
type marked struct {
	toolscache.ListerWatcher
	unsupported bool
}

func (m marked) IsWatchListSemanticsUnSupported() bool { return m.unsupported }

func TestTheFirstStateIsStreamedAsInClientGo(t *testing.T) {
	for name, test := range map[string]struct {
		adapt    func(toolscache.ListerWatcher) toolscache.ListerWatcher
		strategy cache.ListStrategy
		want     cachetest.Verb
	}{
		"the source can": {
			func(lw toolscache.ListerWatcher) toolscache.ListerWatcher { return marked{lw, false} },
			cache.ListAutomatic, cachetest.VerbWatch,
		},
		"the source cannot": {
			func(lw toolscache.ListerWatcher) toolscache.ListerWatcher { return marked{lw, true} },
			cache.ListAutomatic, cachetest.VerbList,
		},
		"the source says nothing": {nil, cache.ListAutomatic, cachetest.VerbWatch},
		"the options say no":      {nil, cache.ListPaged, cachetest.VerbList},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				source := podSource(t, "web-0")
				var lw toolscache.ListerWatcher = &toolscache.ListWatch{
					ListWithContextFunc:  source.ListWithContext,
					WatchFuncWithContext: source.WatchWithContext,
				}
				if test.adapt != nil {
					lw = test.adapt(lw)
				}
				informer := clientgo.NewInformerWithOptions(
					lw,
					&corev1.Pod{},
					cache.SharedIndexInformerOptions{
						ReflectorOptions: cache.ReflectorOptions{Strategy: test.strategy},
					},
				)
				run(t, informer)
				require.True(t, informer.HasSynced())
				first := source.Requests()[0]
				require.Equal(t, test.want, first.Verb)
				require.Equal(
					t, test.want == cachetest.VerbWatch, first.Options.SendInitialEvents != nil)
			})
		})
	}
}

// controller-runtime makes such a source if bookmarks are disabled: a server refuses to stream to
// it.
func TestASourceWithoutBookmarksIsListed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source := podSource(t, "web-0")
		informer := clientgo.NewInformer(&toolscache.ListWatch{
			ListWithContextFunc: source.ListWithContext,
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.AllowWatchBookmarks = false
				return source.WatchWithContext(ctx, options)
			},
		}, &corev1.Pod{}, 0, nil)
		require.NoError(t, informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) {
			t.Errorf("client-go reported an error: %v", err)
		}))
		run(t, informer)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.True(t, informer.HasSynced())
	})
}

func TestWhatCannotBeAnInformerPanicsAtOnce(t *testing.T) {
	for what, construct := range map[string]func(){
		"the informer is nil": func() { clientgo.SharedIndexInformer(nil) },
		"the indexer is nil":  func() { clientgo.Indexer(nil) },
		"the lister is nil":   func() { clientgo.GenericLister(nil) },
		"the client is nil":   func() { clientgo.NewListWatchFromClient(nil, "pods", metav1.NamespaceAll, nil) },
		"the source is nil":   func() { clientgo.NewInformer(nil, &corev1.Pod{}, 0, nil) },
		"ResyncPeriod is set": func() {
			clientgo.NewInformerFunc(cache.SharedIndexInformerOptions{ResyncPeriod: time.Second})
		},
		`index "app" has no function`: func() {
			clientgo.NewInformer(podSource(t), &corev1.Pod{}, 0, toolscache.Indexers{"app": nil})
		},
	} {
		func() {
			defer func() { assert.Contains(t, recover(), what) }()
			construct()
		}()
	}
}
