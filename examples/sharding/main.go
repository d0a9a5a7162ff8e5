// Sharding runs three processes that share 30,000 objects, kills one and starts another, while objects are created, updated and
// deleted. A registry checks the history of each object: it never had two processes, and none only during a hand-over.
//
//	go run ./examples/sharding
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/sharding/kubelease"
)

const objects = 30_000

// leaseDuration is long enough for a busy machine: a replica that leaves needs less for the list of its empty share.
const leaseDuration = 20 * time.Second

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

// registry records which replica worked on each object at which time; all processes have the same clock.
type registry struct {
	source   *cachetest.Source
	changing sync.Mutex // held by each change of the source
	changes  int

	mu   sync.Mutex
	work map[string][]interval
}

// note records an event of a replica.
func (r *registry) note(replica string, e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.Stopped {
		r.work[e.Name] = append(r.work[e.Name], interval{replica: replica, from: e.At})
	}
	for i, one := range r.work[e.Name] {
		if e.Stopped && one.replica == replica && one.to.IsZero() {
			r.work[e.Name][i].to = e.At
		}
	}
}

// await lets the source change for a while, and then waits until exactly its objects are worked on, by so many replicas.
func (r *registry) await(what string, replicas int, busy time.Duration) {
	began := time.Now()
	time.Sleep(busy)
	r.changing.Lock()
	defer r.changing.Unlock()
	for ; ; time.Sleep(50 * time.Millisecond) {
		idle, counts, others := map[string]bool{}, map[string]int{}, 0
		for _, obj := range r.source.Objects() {
			idle[obj.(Order).Name] = replicas > 0
		}
		r.mu.Lock()
		for name, work := range r.work {
			for _, one := range work {
				switch {
				case !one.to.IsZero():
				case idle[name]:
					counts[one.replica]++
					delete(idle, name)
				default:
					others++
				}
			}
		}
		r.mu.Unlock()
		if len(counts) == replicas && others == 0 && (len(idle) == 0 || replicas == 0) {
			fmt.Printf("%s: %v after %.1f s and %d changes\n", what, counts, time.Since(began).Seconds(), r.changes)
			r.check()
			return
		}
		if time.Since(began) > longestHandOver+busy {
			must(fmt.Errorf("%s: %v, %d without a replica, %d with two, after %v", what, counts, len(idle), others, time.Since(began)))
		}
	}
}

// longestHandOver is the longest time without a replica: the lease of a dead replica, a sixth of that until its end is noticed,
// and the list of the new share on a busy machine.
const longestHandOver = leaseDuration + leaseDuration/6 + 2*time.Minute

// check checks the whole history: no object ever had two replicas, or none for too long.
func (r *registry) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	handOvers, longest := 0, time.Duration(0)
	for name, work := range r.work {
		slices.SortFunc(work, func(a, b interval) int { return a.from.Compare(b.from) })
		for i := range len(work) - 1 {
			gap := work[i+1].from.Sub(work[i].to)
			if work[i].to.IsZero() || gap < 0 || gap > longestHandOver {
				must(fmt.Errorf("%s was handed over in %v: %+v", name, gap, work[i:i+2]))
			}
			handOvers, longest = handOvers+1, max(longest, gap)
		}
	}
	fmt.Printf("  %d hand-overs so far, none overlaps, the longest took %.1f s\n", handOvers, longest.Seconds())
}

// put creates or changes an object.
func (r *registry) put(i int, mark string) {
	name := fmt.Sprint("order-", i)
	uid := types.UID(fmt.Sprintf("%x", sha256.Sum256([]byte(name)))) // distributed like random UIDs
	about := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Labels: map[string]string{"mark": mark}}
	must(r.source.Apply(&metav1.PartialObjectMetadata{ObjectMeta: about}))
}

// change creates, updates and deletes objects forever.
func (r *registry) change() {
	for ; ; time.Sleep(5 * time.Millisecond) {
		r.changing.Lock()
		r.put(objects+r.changes, "new")
		r.put(objects+r.changes, "changed")
		_, err := r.source.Delete("shop", fmt.Sprint("order-", r.changes))
		must(err)
		r.changes++
		r.changing.Unlock()
	}
}

// process is a replica, which leaves the group once input is closed.
type process struct {
	*exec.Cmd
	input, output io.Closer
	read          chan struct{}
}

// start starts a replica, which prints its events.
func (r *registry) start(id, server string) *process {
	program, err := os.Executable()
	must(err)
	events, output := io.Pipe()
	p := &process{Cmd: exec.Command(program, "-replica", id, "-server", server), output: output, read: make(chan struct{})}
	p.Stdout, p.Stderr = output, os.Stderr
	p.input, err = p.StdinPipe()
	must(err)
	must(p.Start())
	go func() {
		defer close(p.read)
		for decoder, e := json.NewDecoder(events), (event{}); decoder.Decode(&e) == nil; r.note(id, e) {
		}
	}()
	return p
}

// end waits until the process has ended and its last event is noted.
func (p *process) end() error {
	defer func() { <-p.read }()
	defer p.output.Close()
	return p.Wait()
}

func demonstrate() {
	source := cachetest.NewSourceOf[Order]()
	known := &registry{source: source, work: map[string][]interval{}}
	for i := range objects {
		known.put(i, "new")
	}
	mux := http.NewServeMux()
	mux.Handle("/apis/coordination.k8s.io/", &kubelease.Handler{})
	api := cachetest.Resource{GroupVersionResource: orders, Kind: "Order", Source: source}
	mux.Handle("/", cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{api}}))
	server := httptest.NewServer(mux)

	a, b, c := known.start("a", server.URL), known.start("b", server.URL), known.start("c", server.URL)
	known.await("three replicas", 3, 0)
	go known.change()
	known.await("objects have changed", 3, time.Second)

	killed := time.Now()
	must(b.Process.Kill())
	_ = b.end() // "signal: killed"
	known.mu.Lock()
	all := slices.Collect(maps.Keys(known.work))
	known.mu.Unlock()
	for _, name := range all {
		known.note("b", event{name, true, killed})
	}
	known.await("b was killed", 2, leaseDuration)
	d := known.start("d", server.URL)
	known.await("d has started", 3, time.Second)

	must(a.input.Close()) // a leaves in good order
	must(a.end())
	known.await("a has left", 2, time.Second)
	must(errors.Join(c.input.Close(), d.input.Close(), c.end(), d.end()))
	known.await("all have left", 0, 0)
}
