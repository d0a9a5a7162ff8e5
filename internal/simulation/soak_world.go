package simulation

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

// soakWorld is a source, a server and a network before it, and the mirrors of both. All
// but what mirrors and server run for themselves happens on one goroutine.
type soakWorld struct {
	source  *cachetest.Source
	server  *cachetest.Server
	api     *kubeapi.ListerWatcher
	mirrors []*soakMirror
	gate    *soakGate
	churn   *soakChurn
	faults  *soakFaults
	guests  soakGuests

	// visitors are those that are there, in the order in which they came; visits counts
	// all that ever came.
	visitors []soakVisitor
	visits   int

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newSoakWorld(seed uint64) *soakWorld {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	w := &soakWorld{source: cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		NewObject:        func() runtime.Object { return &soakObject{} },
		NewList:          func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
		StartVersion:     soakFirstVersion, HistoryLimit: soakHistory,
	})}
	w.server = cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: w.source}},
	}))
	api, err := kubeapi.New(kubeapi.Options{
		BaseURL: w.server.URL, Resource: pods, HTTPClient: w.server.Client(), ObjectType: &soakObject{},
	})
	soakMust(err)
	w.api = api
	w.churn = newSoakChurn(w.source, seed)
	w.faults = &soakFaults{source: w.source, network: w.server.Listener, churn: w.churn}
	return w
}

// start makes the mirrors and runs them.
func (w *soakWorld) start(ctx context.Context) {
	w.ctx, w.cancel = context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	w.gate = newSoakGate(w.ctx)
	namespaces := map[string]cache.Source{}
	for i := range soakNamespaces {
		name := fmt.Sprintf("namespace-%d", i)
		namespaces[name] = w.source.Namespace(name)
	}
	w.mirrors = []*soakMirror{
		newSoakInformer("informer", w.source, cache.ListAutomatic, w.gate),
		newSoakInformer("informer over HTTP", w.api, cache.ListPaged, w.gate),
		newSoakSharedInformer("shared informer", w.source, cache.ListPaged, w.gate),
		newSoakSharedInformer("shared informer over HTTP", w.api, cache.ListStreaming, w.gate),
		newSoakController("controller", cache.ListUnpaged, w.source, nil),
		newSoakController("controller over HTTP", cache.ListAutomatic, w.api, nil),
		newSoakController("controller of namespaces", cache.ListAutomatic, nil, namespaces),
	}
	for _, mirror := range w.mirrors {
		w.running.Go(func() { mirror.run(w.ctx) })
	}
}

// stop ends everything and waits for it.
func (w *soakWorld) stop() {
	w.guests.leave()
	w.cancel()
	w.running.Wait()
	w.server.Close()
	w.source.Close()
}

// rotateVisitors has a handler join each informer; of those that came before, the oldest
// leaves where there are two.
func (w *soakWorld) rotateVisitors() {
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
func (w *soakWorld) dismissVisitors(stay int) {
	for len(w.visitors) > stay {
		w.visitors[0].leave(len(w.visitors)%2 == 0)
		w.visitors = slices.Delete(w.visitors, 0, 1)
	}
}

// relist makes every mirror list anew, and gives them something to find out: objects that
// have ended without a word.
func (w *soakWorld) relist() {
	w.churn.hide()
	w.faults.expired()
}

// wrong describes the differences to the source; empty without any.
func (w *soakWorld) wrong() string {
	want, owners := map[string]uint64{}, map[string]bool{}
	for _, obj := range w.source.Objects() {
		meta := obj.(*soakObject)
		want[soakKey(meta)] = soakVersion(meta)
		owners[meta.Labels[soakOwner]] = true
	}
	for _, mirror := range w.mirrors {
		if wrong := mirror.difference(want, len(owners)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// soakGuests is an informer that lives for five minutes: nothing of it
// may stay.
type soakGuests struct {
	cancel   context.CancelFunc
	finished chan struct{}
}

func (g *soakGuests) come(w *soakWorld, number int) {
	source := []cache.ListerWatcher{w.source, w.api}[number%2]
	var ctx context.Context
	ctx, g.cancel = context.WithCancel(w.ctx)
	// Its stalling handlers stall until the end, so that it ends with a backlog.
	gate := newSoakGate(ctx)
	gate.shut()
	guest := newSoakInformer("guest", source, cache.ListAutomatic, gate)
	finished := make(chan struct{})
	g.finished = finished
	go func() {
		defer close(finished)
		guest.run(ctx)
	}()
}

// leave ends the guest, if there is one, and waits for it.
func (g *soakGuests) leave() {
	if g.cancel == nil {
		return
	}
	g.cancel()
	<-g.finished
	*g = soakGuests{}
}
