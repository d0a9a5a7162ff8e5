package guarantees

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// The status counts undelivered changes of a batch, and the age of the oldest unhandled one, which
// is that of the running call: the last call may hang too.
func TestTheStatusCountsPendingChangesDuringEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 11
		source := newBulkSource(objects)
		r := newBulkRig(t, source)
		notified := newReplicaHandler(t)
		step := make(chan struct{})
		notified.before = func(string) { <-step }
		r.handle(notified)
		r.run()
		for n := range objects {
			sleep(time.Second)
			status := r.handlerStatus(0)
			assert.Equal(t, objects-1-n, status.Backlog)
			assert.Equal(t, time.Duration(n+1)*time.Second, status.OldestAge, n)
			step <- struct{}{}
		}
		synctest.Wait()
		assert.Zero(t, r.handlerStatus(0).Backlog)
		assert.Zero(t, r.handlerStatus(0).OldestAge)
		close(step)
		r.cancel()
		<-r.done
	})
}

// A handler that is removed during a call is not called for pending changes, and its registration,
// which the caller may keep, does not retain the log.
func TestAHandlerThatIsRemovedDuringACallIsNotCalledAgain(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, func(t *testing.T) {
		source := newBulkSource(3)
		r := newBulkRig(t, source)
		slow, goOn := stalledReplica(t)
		handle := r.handle(slow)
		r.handle(cache.ResourceEventHandlerFuncs{}) // for whom the log continues
		r.run()
		synctest.Wait()
		require.NoError(t, r.inf.RemoveHandler(handle))
		before := heap()
		for i := range 10_000 {
			source.events <- watch.Event{Type: watch.Modified, Object: kibiObject("0", i+4)}
		}
		synctest.Wait()
		assert.LessOrEqual(t, heap()-before, int64(2<<20))
		goOn()
		synctest.Wait()
		assert.Equal(t, []string{"add a/0@1"}, slow.take())
		runtime.KeepAlive(handle)
		r.cancel()
		<-r.done
	})
}

// callLog is a handler that records its calls.
type callLog struct{ notified []string }

func (e *callLog) OnAdd(obj any, isInInitialList bool) {
	e.notified = append(e.notified, fmt.Sprint("add ", labelOf(obj), " ", isInInitialList))
}

func (e *callLog) OnUpdate(oldObj, newObj any) {
	e.notified = append(e.notified, fmt.Sprint("update ", labelOf(oldObj), " ", labelOf(newObj)))
}

func (e *callLog) OnDelete(obj any) {
	e.notified = append(e.notified, fmt.Sprint("delete ", labelOf(obj)))
}

func labelOf(obj any) string {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return "tombstone " + tombstone.Key
	}
	return obj.(*object).Labels["v"]
}

var (
	redPod  = labelled(pod("a", "1"), "red")
	bluePod = labelled(pod("a", "1"), "blue")
)

func TestAPanicOfAFilterIsAPanicOfTheHandler(t *testing.T) {
	h := cache.FilteringResourceEventHandler{Handler: &callLog{}, FilterFunc: func(any) bool { panic(errBoom) }}
	assert.PanicsWithValue(t, errBoom, func() { h.OnAdd(redPod, true) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnUpdate(redPod, bluePod) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnDelete(redPod) })
}

func TestAHandlersDefaultNameIsItsCallSite(t *testing.T) {
	informer := cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{})
	_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
	require.NoError(t, err)
	require.Regexp(t, `\.go:\d+$`, informer.Status().Handlers[0].Name)
}

// timeLimitedServer is a source that cuts a list 60 s after its request, as API servers do.
func timeLimitedServer(namespace string, objects int, late bool) *itemFuncSource {
	source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}}
	source.list = func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		about, began := metav1.ListMeta{ResourceVersion: itoa(objects)}, time.Now()
		said := about
		if late {
			said = metav1.ListMeta{}
		}
		for i := 1; i <= objects; i++ {
			if time.Since(began) >= time.Minute {
				return said, io.ErrUnexpectedEOF
			}
			if err := take(said, podAt(namespace, itoa(i), itoa(i))); err != nil {
				return said, err
			}
		}
		return about, nil
	}
	return source
}

// slowConsumer is a handler that takes 100 ms for each object.
type slowConsumer struct {
	mu       sync.Mutex
	notified map[string][]string // by namespace
}

func (s *slowConsumer) add(obj any) {
	time.Sleep(100 * time.Millisecond)
	name, _ := cache.ObjectToName(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notified == nil {
		s.notified = map[string][]string{}
	}
	s.notified[name.Namespace] = append(s.notified[name.Namespace], name.Name)
}

// A server cuts a list that is read too slowly, which is then repeated. So reading a list does not
// wait for the handler or Process, which receives all objects once, in the source's order, and
// before it has synced. Fails if a part waits until its handler has returned.
func TestAFirstListIsReadToItsEndWhileAHandlerIsSlow(t *testing.T) {
	const objects = 5000
	want := make([]string, objects)
	for i := range want {
		want[i] = itoa(i + 1)
	}
	for name, configure := range map[string]func(*cache.Config, *slowConsumer){
		"handler": func(c *cache.Config, s *slowConsumer) {
			c.Store = cache.NewStore(cache.MetaNamespaceKeyFunc)
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: s.add}
		},
		"process": func(c *cache.Config, s *slowConsumer) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c.Queue = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
			c.Process = func(obj any, _ bool) error {
				for _, d := range obj.(cache.Deltas) {
					s.add(d.Object)
					must(t, store.Add(d.Object))
				}
				return nil
			}
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %v", name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, consumer, h := timeLimitedServer("a", objects, late), &slowConsumer{}, &errorRecorder{}
					config := cache.Config{ListerWatcher: source, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: h.handle, Strategy: cache.ListUnpaged, MinWatchTimeout: time.Hour}}
					configure(&config, consumer)
					began, stop := time.Now(), runController(t, &config)
					assert.Equal(t, objects*100*time.Millisecond, time.Since(began))
					assert.Equal(t, 1, source.listCalls())
					assert.Empty(t, h.all())
					assert.True(t, slices.Equal(want, consumer.notified["a"]))
					stop()
				})
			})
		}
	}
}

// The same while the handler is notified of another namespace.
func TestAFirstListIsReadToItsEndWhileAHandlerIsNotifiedOfOtherNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const namespaces, objects = 8, 1000
		consumer, h := &slowConsumer{}, &errorRecorder{}
		config := cache.Config{
			Store: cache.NewStore(cache.MetaNamespaceKeyFunc), Handler: cache.ResourceEventHandlerFuncs{AddFunc: consumer.add},
			Namespaces:       map[string]cache.Source{},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: h.handle, Strategy: cache.ListUnpaged, MinWatchTimeout: time.Hour},
		}
		scripts := map[string]*itemFuncSource{}
		for i := range namespaces {
			scripts[itoa(i)] = timeLimitedServer(itoa(i), objects, false)
			config.Namespaces[itoa(i)] = cache.ToListerWatcherWithContext(scripts[itoa(i)])
		}
		began, stop := time.Now(), runController(t, &config)
		assert.Equal(t, namespaces*objects*100*time.Millisecond, time.Since(began))
		assert.Empty(t, h.all())
		for namespace, source := range scripts {
			assert.Equal(t, 1, source.listCalls())
			assert.Len(t, consumer.notified[namespace], objects)
		}
		stop()
	})
}

// The source is not read during writes to the store, although the namespaces share a handler.
func TestPartsOfANamespacesFirstListWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := &itemSource{Source: filledSource(t, 1000)}, make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := cache.New(&cache.Config{
			Store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"slow": func(any) ([]string, error) {
				<-release
				return nil, nil
			}}),
			Handler: &recorder{}, Namespaces: map[string]cache.Source{"a": source},
			ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListUnpaged},
		})
		go func() { defer close(done); c.RunWithContext(ctx) }()
		sleep(time.Hour)
		assert.Less(t, source.acceptedOf(0), 5*partSize)
		close(release)
		synctest.Wait()
		assert.Equal(t, 1000, source.acceptedOf(0))
		assert.True(t, c.HasSynced())
		cancel()
		<-done
		source.Close()
	})
}

// runController runs a controller until it is synced.
func runController(t *testing.T, config *cache.Config) (stop func()) {
	c := cache.New(config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.RunWithContext(ctx) }()
	<-c.HasSyncedChecker().Done()
	return func() {
		cancel()
		<-done
	}
}
