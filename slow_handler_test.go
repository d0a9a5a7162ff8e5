package cache

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// impatient is a server that cuts a list 60 s after it was asked for, as API servers
// do.
func impatient(namespace string, objects int, late bool) *itemScript {
	source := &itemScript{scripted: scripted{watch: silentWatch}}
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

// slowConsumer is told of objects, and takes 100 ms for each.
type slowConsumer struct {
	mu   sync.Mutex
	told map[string][]string // by namespace
}

func (s *slowConsumer) add(obj any) {
	time.Sleep(100 * time.Millisecond)
	name, _ := ObjectToName(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string][]string{}
	}
	s.told[name.Namespace] = append(s.told[name.Namespace], name.Name)
}

// A server cuts a list that is read too slowly, and then it is made again. So it is
// read at the store's pace, whatever the handler or Process needs; that is told of
// everything in the source's order, once, and synced waits for it. Fails if a part
// waits until its handler has returned.
func TestAFirstListIsReadToItsEndWhileAHandlerIsSlow(t *testing.T) {
	const objects = 5000
	want := make([]string, objects)
	for i := range want {
		want[i] = itoa(i + 1)
	}
	for name, configure := range map[string]func(*Config, *slowConsumer){
		"handler": func(c *Config, s *slowConsumer) {
			c.Store = NewStore(MetaNamespaceKeyFunc)
			c.Handler = ResourceEventHandlerFuncs{AddFunc: s.add}
		},
		"process": func(c *Config, s *slowConsumer) {
			store := NewStore(MetaNamespaceKeyFunc)
			c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
			c.Process = func(obj any, _ bool) error {
				for _, d := range obj.(Deltas) {
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
					source, consumer, h := impatient("a", objects, late), &slowConsumer{}, &heard{}
					config := Config{ListerWatcher: source, ReflectorOptions: ReflectorOptions{ErrorHandler: h.handle, Strategy: ListWhole, MinWatchTimeout: time.Hour}}
					configure(&config, consumer)
					began, stop := time.Now(), runController(t, &config)
					assert.Equal(t, objects*100*time.Millisecond, time.Since(began))
					assert.Equal(t, 1, source.lists)
					assert.Empty(t, h.all())
					assert.True(t, slices.Equal(want, consumer.told["a"]))
					stop()
				})
			})
		}
	}
}

// Likewise where it is the handler's turn to be told of another namespace.
func TestAFirstListIsReadToItsEndWhileAHandlerIsToldOfOtherNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const namespaces, objects = 8, 1000
		consumer, h := &slowConsumer{}, &heard{}
		config := Config{
			Store: NewStore(MetaNamespaceKeyFunc), Handler: ResourceEventHandlerFuncs{AddFunc: consumer.add},
			Namespaces:       map[string]ListerWatcher{},
			ReflectorOptions: ReflectorOptions{ErrorHandler: h.handle, Strategy: ListWhole, MinWatchTimeout: time.Hour},
		}
		for i := range namespaces {
			config.Namespaces[itoa(i)] = impatient(itoa(i), objects, false)
		}
		began, stop := time.Now(), runController(t, &config)
		assert.Equal(t, namespaces*objects*100*time.Millisecond, time.Since(began))
		assert.Empty(t, h.all())
		for namespace, source := range config.Namespaces {
			assert.Equal(t, 1, source.(*itemScript).lists)
			assert.Len(t, consumer.told[namespace], objects)
		}
		stop()
	})
}

// While the store is written to the source is not read, though the consumers share a
// handler. Fails if what is said of the wait for the handler's turn holds beyond it.
func TestPartsOfANamespacesFirstListWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := &itemSource{Source: filledSource(t, 1000)}, make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := New(&Config{
			Store: NewIndexer(MetaNamespaceKeyFunc, Indexers{"slow": func(any) ([]string, error) {
				<-release
				return nil, nil
			}}),
			Handler: &recorder{}, Namespaces: map[string]ListerWatcher{"a": source},
			ReflectorOptions: ReflectorOptions{Strategy: ListWhole},
		})
		go func() { defer close(done); c.RunWithContext(ctx) }()
		sleep(time.Hour)
		assert.Less(t, source.takenOf(0), 5*partSize)
		close(release)
		synctest.Wait()
		assert.Equal(t, 1000, source.takenOf(0))
		assert.True(t, c.HasSynced())
		cancel()
		<-done
		source.Close()
	})
}

// runController runs a controller until it is synced.
func runController(t *testing.T, config *Config) (stop func()) {
	c := New(config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.RunWithContext(ctx) }()
	<-c.HasSyncedChecker().Done()
	return func() {
		cancel()
		<-done
	}
}
