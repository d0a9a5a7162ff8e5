package cache

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// deathVariable tells a process that it is a child of a test, and which way to die.
const deathVariable = "CACHE_TEST_DEATH"

// deaths are informers and sets one of whose goroutines panics 10 s after the start, while
// something hangs that Run waits for. Each is started in a bubble of a process of its own.
var deaths = map[string]func(*testing.T){
	"a handler beside one that hangs": func(t *testing.T) {
		inf := dyingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside one that hangs and was removed": func(t *testing.T) {
		inf := dyingInformer(newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		handle := addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
		synctest.Wait()
		must(t, inf.RemoveHandler(handle))
	},
	"a handler whose source ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		inf := dyingInformer(source)
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler beside an error handler that hangs": func(t *testing.T) {
		inf := NewInformerFor(newSource(t, pod("a", "1"), pod("a", "bad")), InformerConfig[*object]{
			Indexes:          TypedIndexers[*object]{"picky": failingFor("bad")},
			ReflectorOptions: ReflectorOptions{Strategy: ListPaged, ErrorHandler: func(context.Context, *Reflector, error) { select {} }},
		})
		addPanicking(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a controller's handler beside a source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatchesIgnoringContext(1)
		go New(&Config{
			ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc), ReflectorOptions: ReflectorOptions{Strategy: ListPaged},
			Handler: ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a handler of one namespace beside another's source that ignores its context": func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		hangs := newSource(t)
		hangs.HangListsIgnoringContext(1)
		go New(&Config{
			Namespaces: map[string]ListerWatcher{"a": source.Namespace("a"), "b": hangs.Namespace("b")},
			Store:      NewStore(MetaNamespaceKeyFunc), ReflectorOptions: ReflectorOptions{Strategy: ListPaged},
			Handler: ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				time.Sleep(10 * time.Second)
				deliberatePanic(obj)
			}},
		}).RunWithContext(t.Context())
	},
	"a controller's source beside a handler that hangs": func(t *testing.T) {
		go New(&Config{
			ListerWatcher: panickingSource(t), Store: NewStore(MetaNamespaceKeyFunc),
			Handler: ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }},
		}).RunWithContext(t.Context())
	},
	"a source beside a handler that hangs": func(t *testing.T) {
		inf := dyingInformer(panickingSource(t))
		addHanging(t, inf)
		go func() { _ = inf.Run(t.Context()) }()
	},
	"a handler of a set beside one of another informer that hangs": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of its own informer that hangs": func(t *testing.T) {
		var set InformerSet
		inf, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, inf)
		addHanging(t, inf)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside another source that ignores its context": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		source := newSource(t)
		source.HangListsIgnoringContext(1)
		_, _, err := InformerOf(&set, source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{Strategy: ListPaged}})
		must(t, err)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a source of a set beside a handler of another informer that hangs": func(t *testing.T) {
		var set InformerSet
		podInformerOf(t, &set, panickingSource(t))
		hangs, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
	},
	"a handler of a set beside one of a released informer that hangs": func(t *testing.T) {
		var set InformerSet
		panics, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addPanicking(t, panics)
		hangs, release := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		addHanging(t, hangs)
		go func() { _ = set.Run(t.Context()) }()
		synctest.Wait()
		release()
	},
}

// A panic that is not survived must not be kept from ending the process by something
// that hangs: 30 s after it, it goes on where it was. That ends the process, so that each
// case is a child that is a bubble. Fails if one lives, dies earlier or of something else.
func TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs(t *testing.T) {
	if way := os.Getenv(deathVariable); way != "" {
		die(t, deaths[way])
	}
	program, err := os.Executable()
	must(t, err)
	for way := range deaths {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), program, "-test.run=^TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs$", "-test.timeout=1m")
			child.Env = append(os.Environ(), deathVariable+"="+way)
			var stdout, stderr bytes.Buffer
			child.Stdout, child.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			require.ErrorAs(t, child.Run(), &exit, stdout.String())
			assert.Equal(t, 2, exit.ExitCode(), "that of a panic")
			assert.Equal(t, "alive\n", stdout.String(), "it dies after 30 s, not earlier or later")
			assert.Contains(t, stderr.String(), "panic: ")
			assert.Contains(t, stderr.String(), errBoom.Error())
			assert.Contains(t, stderr.String(), "cache.deliberatePanic", "the stack of the place that panicked")
		})
	}
}

// die starts what panics 10 s later, in virtual time, and says what it lives to see.
func die(t *testing.T, start func(*testing.T)) {
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, nil // what is printed is the process's own
	synctest.Test(t, func(t *testing.T) {
		start(t)
		sleep(10*time.Second + 29*time.Second)
		fmt.Println("alive")
		sleep(2 * time.Second)
		fmt.Println("survived")
		os.Exit(0)
	})
}

func dyingInformer(source ListerWatcher) *Informer[*object] {
	return NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{
		Strategy: ListPaged, ErrorHandler: (&heard{}).handle,
	}})
}

func addPanicking(t *testing.T, inf *Informer[*object]) {
	_, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		time.Sleep(10 * time.Second)
		deliberatePanic(obj)
	}})
	must(t, err)
}

func addHanging(t *testing.T, inf *Informer[*object]) ResourceEventHandlerRegistration {
	handle, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(any) { select {} }})
	must(t, err)
	return handle
}

// panickingSource lists an object, and panics in the watch that follows.
func panickingSource(t *testing.T) ListerWatcher {
	lists := newSource(t, pod("a", "1"))
	return &ListWatch{ListFunc: lists.List, WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
		time.Sleep(10 * time.Second)
		deliberatePanic(nil)
		return nil, nil
	}}
}

// failingFor is an index function that fails for the object with that name.
func failingFor(name string) TypedIndexFunc[*object] {
	return func(o *object) ([]string, error) {
		if o.Name == name {
			return nil, errBoom
		}
		return nil, nil
	}
}
