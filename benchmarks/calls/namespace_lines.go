package calls

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	ourcache "github.com/watchmirror/cache"
)

const (
	fewNamespaces  = 2
	manyNamespaces = 1000
	// eventsPerRound is the number of events before the other informer's turn.
	eventsPerRound = 200
)

// namespaceLines are of ours only: client-go has no informer of several namespaces. The other
// side's figure is that of an informer of two namespaces.
func namespaceLines() []Line {
	return []Line{{
		Name:     "D8 event of one of 1,000 namespaces (other: of 2)",
		Unit:     usPerEvent,
		Goal:     0.8,
		TimeOnly: true,
		measure:  namespaceEvents,
	}}
}

// namespaceEvents sends events of one namespace, one at a time, to informers of few and of many. The
// CPU time of the process counts, since other goroutines apply them.
func namespaceEvents(s Scale) (Result, error) {
	few, err := startNamespaced(fewNamespaces)
	if err != nil {
		return Result{}, err
	}
	defer few.stop()
	many, err := startNamespaced(manyNamespaces)
	if err != nil {
		return Result{}, err
	}
	defer many.stop()
	informers := [2]*namespaced{few, many}
	return interleaved(s.Rounds, func(side int) (float64, error) {
		before := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)
		informers[side].sendAll()
		spent := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) - before
		return float64(spent) / eventsPerRound, nil
	})
}

// namespaced is an informer of several namespaces that runs, and the events of the first one.
type namespaced struct {
	events    chan watch.Event
	delivered chan struct{}
	version   int
	stop      func()
}

// startNamespaced returns when the first lists are in the store.
func startNamespaced(namespaces int) (*namespaced, error) {
	n := &namespaced{events: make(chan watch.Event), delivered: make(chan struct{}), version: 1}
	sources := map[string]ourcache.Source{}
	for i := range namespaces {
		o := newObject(i*perNamespace, nameLength, 1)
		events := make(chan watch.Event)
		if i == 0 {
			events = n.events
		}
		sources[o.Namespace] = &ourcache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				list := &metav1.PartialObjectMetadataList{Items: []object{*o}}
				list.ResourceVersion = o.ResourceVersion
				return list, nil
			},
			WatchFuncWithContext: func(
				context.Context, metav1.ListOptions,
			) (watch.Interface, error) {
				return watch.NewProxyWatcher(events), nil
			},
		}
	}
	config := ourcache.InformerConfig[*object]{Namespaces: sources}
	informer := ourcache.NewTypedInformer[*object](nil, config)
	handler := ourcache.TypedResourceEventHandlerFuncs[*object]{
		UpdateFunc: func(_, _ *object) { n.delivered <- struct{}{} },
	}
	if _, err := informer.AddHandler(handler); err != nil {
		return nil, fmt.Errorf("handler: %w", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = informer.Run(ctx) })
	n.stop = func() {
		cancel()
		running.Wait()
	}
	if err := informer.WaitSynced(ctx); err != nil {
		n.stop()
		return nil, fmt.Errorf("first lists: %w", err)
	}
	return n, nil
}

// sendAll sends an event when the handler has received the one before.
func (n *namespaced) sendAll() {
	for range eventsPerRound {
		n.version++
		o := newObject(0, nameLength, n.version)
		n.events <- watch.Event{Type: watch.Modified, Object: o}
		<-n.delivered
	}
}
