package soak

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// world is a source, a server and a network before it, and the mirrors of both. All
// but what mirrors and server run for themselves happens on one goroutine.
type world struct {
	source  *cachetest.Source
	server  *cachetest.Server
	api     *kubeapi.ListerWatcher
	mirrors []*mirror
	gate    *gate
	churn   *churn
	faults  *faults
	guests  guests

	// visitors are those that are there, in the order in which they came; visits counts
	// all that ever came.
	visitors []visitor
	visits   int

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWorld(seed uint64) *world {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	w := &world{source: cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		NewObject:        func() runtime.Object { return &object{} },
		NewList:          func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
		StartVersion:     firstVersion, HistoryLimit: historyLimit,
	})}
	w.server = cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: w.source}},
	}))
	api, err := kubeapi.New(kubeapi.Options{
		BaseURL: w.server.URL, Resource: pods, HTTPClient: w.server.Client(), ObjectType: &object{},
	})
	must(err)
	w.api = api
	w.churn = newChurn(w.source, seed)
	w.faults = &faults{source: w.source, network: w.server.Listener, churn: w.churn}
	return w
}

// start makes the mirrors and runs them.
func (w *world) start(ctx context.Context) {
	w.ctx, w.cancel = context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	w.gate = newGate(w.ctx)
	namespaces := map[string]cache.Source{}
	for i := range namespaceCount {
		name := fmt.Sprintf("namespace-%d", i)
		namespaces[name] = w.source.Namespace(name)
	}
	w.mirrors = []*mirror{
		newInformerMirror("informer", w.source, cache.ListAutomatic, w.gate),
		newInformerMirror("informer over HTTP", w.api, cache.ListPaged, w.gate),
		newSharedInformerMirror("shared informer", w.source, cache.ListPaged, w.gate),
		newSharedInformerMirror("shared informer over HTTP", w.api, cache.ListStreaming, w.gate),
		newControllerMirror("controller", cache.ListUnpaged, w.source, nil),
		newControllerMirror("controller over HTTP", cache.ListAutomatic, w.api, nil),
		newControllerMirror("controller of namespaces", cache.ListAutomatic, nil, namespaces),
	}
	for _, mirror := range w.mirrors {
		w.running.Go(func() { mirror.run(w.ctx) })
	}
}

// stop ends everything and waits for it.
func (w *world) stop() {
	w.guests.leave()
	w.cancel()
	w.running.Wait()
	w.server.Close()
	w.source.Close()
}

// rotateVisitors has a handler join each informer; of those that came before, the oldest
// leaves where there are two.
func (w *world) rotateVisitors() {
	w.visits++
	informers := 0
	for _, mirror := range w.mirrors {
		if mirror.add != nil {
			informers++
			w.visitors = append(w.visitors, mirror.visit(w.visits))
		}
	}
	w.dismissVisitors(2 * informers)
}

// dismissVisitors has the oldest visitors leave until there are so many.
func (w *world) dismissVisitors(stay int) {
	for len(w.visitors) > stay {
		w.visitors[0].leave(len(w.visitors)%2 == 0)
		w.visitors = slices.Delete(w.visitors, 0, 1)
	}
}

// relist makes every mirror list anew, and gives them something to find out: objects that
// have ended without a word.
func (w *world) relist() {
	w.churn.hide()
	w.faults.expired()
}

// wrong describes the differences to the source; empty without any.
func (w *world) wrong() string {
	want, owners := map[string]uint64{}, map[string]bool{}
	for _, obj := range w.source.Objects() {
		meta := obj.(*object)
		want[keyOf(meta)] = versionOf(meta)
		owners[meta.Labels[ownerLabel]] = true
	}
	for _, mirror := range w.mirrors {
		if wrong := mirror.difference(want, len(owners)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// guests is an informer that lives for five minutes: nothing of it
// may stay.
type guests struct {
	cancel   context.CancelFunc
	finished chan struct{}
}

func (g *guests) come(w *world, number int) {
	source := []cache.ListerWatcher{w.source, w.api}[number%2]
	var ctx context.Context
	ctx, g.cancel = context.WithCancel(w.ctx)
	// Its stalling handlers stall until the end, so that it ends with a backlog.
	gate := newGate(ctx)
	gate.shut()
	guest := newInformerMirror("guest", source, cache.ListAutomatic, gate)
	finished := make(chan struct{})
	g.finished = finished
	go func() {
		defer close(finished)
		guest.run(ctx)
	}()
}

// leave ends the guest, if there is one, and waits for it.
func (g *guests) leave() {
	if g.cancel == nil {
		return
	}
	g.cancel()
	<-g.finished
	*g = guests{}
}
