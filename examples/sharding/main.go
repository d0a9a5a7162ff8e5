// Sharding runs three processes that share 30,000 objects, kills one, and starts another. A registry checks each report of the
// processes: no object may be at two of them at any time.
//
//	go run ./examples/sharding
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sharding/kubelease"
)

const objects, leaseDuration = 30_000, 3 * time.Second

var orders = schema.GroupVersionResource{Group: "shop.example", Version: "v1", Resource: "orders"}

func main() {
	id, server := flag.String("replica", "", "be this replica"), flag.String("server", "", "of this server")
	if flag.Parse(); *id != "" {
		replica(*id, *server)
	} else {
		demonstrate()
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sharding:", err)
		os.Exit(1) // replicas end with their standard input
	}
}

// registry knows which replica works on which object.
type registry struct {
	source *cachetest.Source
	mu     sync.Mutex
	owners map[types.UID]string
}

func (r *registry) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var said report
	must(json.NewDecoder(request.Body).Decode(&said))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range said.Begun {
		if owner := r.owners[uid]; owner != "" {
			must(fmt.Errorf("%s has begun with %s, which %s works on", said.Replica, uid, owner))
		}
		r.owners[uid] = said.Replica
	}
	for _, uid := range said.Stopped {
		delete(r.owners, uid)
	}
}

// await waits until so many replicas work on all objects of the source, and on nothing else.
func (r *registry) await(what string, replicas int) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		counts, owned := map[string]int{}, 0
		r.mu.Lock()
		all, claims := r.source.Objects(), len(r.owners)
		for _, obj := range all {
			if owner := r.owners[obj.(Order).UID]; owner != "" {
				counts[owner]++
				owned++
			}
		}
		r.mu.Unlock()
		if len(counts) == replicas && owned == claims && (owned == len(all) || replicas == 0) {
			fmt.Printf("%s: %v after %.1f s\n", what, counts, time.Since(began).Seconds())
			return
		}
		if time.Since(began) > 20*time.Second {
			must(fmt.Errorf("%s: %v after 20 s", what, counts))
		}
	}
}

func (r *registry) create(first, last int) {
	for i := first; i < last; i++ {
		uid := types.UID(fmt.Sprintf("%016x-%016x", rand.Uint64(), rand.Uint64()))
		name := fmt.Sprint("order-", i)
		must(r.source.Apply(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}}))
	}
}

// start starts a replica, which leaves once stdin is closed.
func start(id, server string) (cmd *exec.Cmd, stdin io.Closer) {
	program, err := os.Executable()
	must(err)
	cmd = exec.Command(program, "-replica", id, "-server", server)
	cmd.Stderr = os.Stderr
	stdin, err = cmd.StdinPipe()
	must(err)
	must(cmd.Start())
	return cmd, stdin
}

func demonstrate() {
	source := cachetest.NewSourceOf[Order]()
	known := &registry{source: source, owners: map[types.UID]string{}}
	known.create(0, objects)
	mux := http.NewServeMux()
	mux.Handle("/report", known)
	mux.Handle("/apis/coordination.k8s.io/", &kubelease.Handler{})
	api := cachetest.Resource{GroupVersionResource: orders, Kind: "Order", Source: source}
	mux.Handle("/", cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{api}}))
	server := httptest.NewServer(mux)

	a, aInput := start("a", server.URL)
	b, _ := start("b", server.URL)
	c, cInput := start("c", server.URL)
	known.await("three replicas", 3)
	known.create(objects, objects+500)
	known.await("500 objects were added", 3)

	must(b.Process.Kill())
	_ = b.Wait()    // "signal: killed"
	known.mu.Lock() // a process that is dead works on nothing
	maps.DeleteFunc(known.owners, func(_ types.UID, owner string) bool { return owner == "b" })
	known.mu.Unlock()
	known.await("b was killed", 2)
	d, dInput := start("d", server.URL)
	known.await("d has started", 3)

	must(aInput.Close()) // a leaves in good order
	must(a.Wait())
	known.await("a has left", 2)
	must(errors.Join(cInput.Close(), dInput.Close(), c.Wait(), d.Wait()))
	known.await("all have left", 0)
}

// Order is what the replicas share: the metadata alone.
type Order = *metav1.PartialObjectMetadata

// report says which objects a replica has begun and stopped to work on.
type report struct {
	mu             sync.Mutex
	Replica        string
	Begun, Stopped []types.UID
}

func (r *report) add(list *[]types.UID, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, uid)
}

// send reports to the registry, and returns once that knows it.
func (r *report) send(server string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, _ := json.Marshal(r) // of strings alone
	response, err := http.Post(server+"/report", "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Begun, r.Stopped = nil, nil
	return response.Body.Close()
}

// replica is a process of the program: it works on its share until its standard input ends.
func replica(id, server string) {
	ctx := context.Background() // until the process ends
	api := kubeapi.Options{BaseURL: server, Resource: orders, Namespace: "shop", ObjectType: &metav1.PartialObjectMetadata{}}
	source, err := kubeapi.New(api)
	must(err)
	leases, err := kubelease.New(api, "orders")
	must(err)
	share, work := sharding.NewSelector(), &report{Replica: id}
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Order]{ReflectorOptions: cache.ReflectorOptions{ShardSelector: share}})
	handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[Order]{
		AddFunc: func(order Order) { work.add(&work.Begun, order.UID) },
		DeleteFunc: func(deleted cache.DeletedObject[Order]) {
			order, _ := deleted.Object()
			work.add(&work.Stopped, order.UID)
		},
	})
	must(err)
	coordinator := sharding.NewCoordinator(sharding.CoordinatorOptions{
		Leases: leases, ID: id, LeaseDuration: leaseDuration,
		Apply: func(ctx context.Context, ranges sharding.Ranges) error {
			if err := share.Apply(ctx, ranges); err != nil {
				return err
			}
			if err := informer.WaitForHandler(ctx, handle, informer.ResourceVersion()); err != nil {
				return err
			}
			return work.send(server) // nothing else is worked on from here on
		},
	})
	coordinating, leave := context.WithCancel(ctx)
	go func() { must(informer.Run(ctx)) }()
	must(informer.WaitSynced(ctx))
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) { // changes of objects
			_ = work.send(server)
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	must(coordinator.Run(coordinating))
}
