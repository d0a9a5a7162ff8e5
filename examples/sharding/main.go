// Sharding runs three processes that share 30,000 objects, kills one, and starts another, while objects are created, changed and
// deleted. A registry checks the history of each object: it was never at two processes, and at none only for a hand-over.
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
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
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

// interval is the time in which a replica worked on an object; to is zero while it does.
type interval struct {
	replica  string
	from, to time.Time
}

// registry knows who has worked on each object, and when: all processes have one clock.
type registry struct {
	source *cachetest.Source
	mu     sync.Mutex
	work   map[types.UID][]interval
	// changing is held by each change of the source.
	changing sync.Mutex
	changes  int
}

func (r *registry) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var said report
	must(json.NewDecoder(request.Body).Decode(&said))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range said.Events {
		if !e.Stopped {
			r.work[e.UID] = append(r.work[e.UID], interval{replica: said.Replica, from: e.At})
			continue
		}
		r.stopLocked(e.UID, said.Replica, e.At)
	}
}

func (r *registry) stopLocked(uid types.UID, replica string, at time.Time) {
	for i, last := range r.work[uid] {
		if last.replica == replica && last.to.IsZero() {
			r.work[uid][i].to = at
		}
	}
}

// died ends the work of a replica that was killed.
func (r *registry) died(replica string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.work {
		r.stopLocked(uid, replica, at)
	}
}

// await lets the source change for a while, and then waits until so many replicas work on all its objects, and on nothing else.
// Then it checks the whole history: no object was at two replicas at any time, and none was at nobody for too long.
func (r *registry) await(what string, replicas int, busy time.Duration) {
	began := time.Now()
	time.Sleep(busy)
	r.changing.Lock()
	defer r.changing.Unlock()
	for ; ; time.Sleep(50 * time.Millisecond) {
		counts, owned, claims := map[string]int{}, 0, 0
		objects := r.source.Objects()
		r.mu.Lock()
		for _, obj := range objects {
			if work := r.work[obj.(Order).UID]; len(work) > 0 && work[len(work)-1].to.IsZero() {
				counts[work[len(work)-1].replica]++
				owned++
			}
		}
		for _, work := range r.work {
			for _, one := range work {
				if one.to.IsZero() {
					claims++
				}
			}
		}
		r.mu.Unlock()
		if len(counts) == replicas && owned == claims && (owned == len(objects) || replicas == 0) {
			fmt.Printf("%s: %v after %.1f s and %d changes of objects\n", what, counts, time.Since(began).Seconds(), r.changes)
			r.check()
			return
		}
		if time.Since(began) > 30*time.Second {
			must(fmt.Errorf("%s: %v of %d objects, %d claims after 30 s", what, counts, len(objects), claims))
		}
	}
}

// longestHandOver is how long an object may be at nobody: until the lease of a dead replica has expired, a sixth of it until that is
// noticed, and the list of the new share.
const longestHandOver = leaseDuration + leaseDuration/6 + 3*time.Second

func (r *registry) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	handOvers, longest := 0, time.Duration(0)
	for uid, work := range r.work {
		slices.SortFunc(work, func(a, b interval) int { return a.from.Compare(b.from) })
		for i := 1; i < len(work); i++ {
			before, after := work[i-1], work[i]
			gap := after.from.Sub(before.to)
			if before.to.IsZero() || gap < 0 || gap > longestHandOver {
				must(fmt.Errorf("object %s was at %s from %v to %v and at %s from %v", uid, before.replica, before.from, before.to, after.replica, after.from))
			}
			handOvers, longest = handOvers+1, max(longest, gap)
		}
	}
	fmt.Printf("  %d hand-overs of objects, none overlaps, the longest took %.1f s\n", handOvers, longest.Seconds())
}

func (r *registry) create(first, last int) {
	for i := first; i < last; i++ {
		uid := types.UID(fmt.Sprintf("%016x-%016x", rand.Uint64(), rand.Uint64()))
		must(r.source.Apply(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("order-", i), UID: uid}}))
	}
}

// change creates, updates and deletes objects for ever.
func (r *registry) change() {
	for ; ; time.Sleep(5 * time.Millisecond) {
		r.changing.Lock()
		r.create(objects+r.changes, objects+r.changes+1)
		_, err := r.source.Delete("shop", fmt.Sprint("order-", r.changes))
		must(err)
		updated := r.source.Objects()[0].(Order).DeepCopy()
		updated.Labels = map[string]string{"change": fmt.Sprint(r.changes)}
		must(r.source.Apply(updated))
		r.changes++
		r.changing.Unlock()
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
	known := &registry{source: source, work: map[types.UID][]interval{}}
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
	known.await("three replicas", 3, 0)
	go known.change()
	known.await("objects have changed", 3, time.Second)

	must(b.Process.Kill())
	_ = b.Wait() // "signal: killed"
	known.died("b", time.Now())
	known.await("b was killed", 2, leaseDuration)
	d, dInput := start("d", server.URL)
	known.await("d has started", 3, time.Second)

	must(aInput.Close()) // a leaves in good order
	must(a.Wait())
	known.await("a has left", 2, time.Second)
	must(errors.Join(cInput.Close(), dInput.Close(), c.Wait(), d.Wait()))
	known.await("all have left", 0, 0)
}

// Order is what the replicas share: the metadata alone.
type Order = *metav1.PartialObjectMetadata

// report says which objects a replica has begun and stopped to work on.
type report struct {
	mu      sync.Mutex
	Replica string
	Events  []event
}

type event struct {
	UID     types.UID
	At      time.Time
	Stopped bool
}

func (r *report) add(uid types.UID, stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Events = append(r.Events, event{uid, time.Now(), stopped})
}

// send reports to the registry.
func (r *report) send(server string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, _ := json.Marshal(r) // of texts and times alone
	response, err := http.Post(server+"/report", "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Events = nil
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
		AddFunc: func(order Order) { work.add(order.UID, false) },
		DeleteFunc: func(deleted cache.DeletedObject[Order]) {
			order, _ := deleted.Object()
			work.add(order.UID, true)
		},
	})
	must(err)
	coordinator := sharding.NewCoordinator(sharding.CoordinatorOptions{
		Leases: leases, ID: id, LeaseDuration: leaseDuration,
		Apply: func(ctx context.Context, ranges sharding.Ranges) error {
			if err := share.Apply(ctx, ranges); err != nil {
				return err
			}
			return informer.WaitForHandler(ctx, handle, informer.ResourceVersion()) // nothing else is worked on from here on
		},
	})
	coordinating, leave := context.WithCancel(ctx)
	go func() { must(informer.Run(ctx)) }()
	must(informer.WaitSynced(ctx))
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) {
			_ = work.send(server)
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	must(coordinator.Run(coordinating))
	must(work.send(server))
}
