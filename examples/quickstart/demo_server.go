package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

const (
	// changeEvery is the pace of the changes: faster than one can read each, slow
	// enough to see them come.
	changeEvery = 100 * time.Millisecond
	// slowPage is how long the demonstration's server takes for a page of a list;
	// without it the first list would be over before it could be seen.
	slowPage = 200 * time.Millisecond
	// maxHistory is how many changes the server remembers: those of eight minutes,
	// where a watch that was cut goes on after seconds.
	maxHistory = 5_000
	// fleetSeed fixes what happens to the pods. Any other number will do.
	fleetSeed = 1
)

// pods is what the demonstration serves.
var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// demoServer is a Kubernetes-style API with pods that change all the time.
type demoServer struct {
	network network
	source  *cachetest.Source
	http    *http.Server
	// served is closed when the server accepts no more, and failure says why.
	served  chan struct{}
	failure error

	endChanges context.CancelFunc
	// changed is closed when the changes have ended; lastChange is nil, or why
	// they ended by themselves.
	changed    chan struct{}
	lastChange error
}

// startDemoServer serves on the network until close. Nothing changes yet.
func startDemoServer(network network) (*demoServer, *fleet, error) {
	source := cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		// A number of the size that a real server would have by now.
		StartVersion: 40_000,
		HistoryLimit: maxHistory,
	})
	fleet, err := newFleet(source, fleetSeed)
	if err != nil {
		return nil, nil, fmt.Errorf("filling the demonstration's server: %w", err)
	}
	source.DelayLists(slowPage)
	s := &demoServer{
		network: network,
		source:  source,
		http: &http.Server{
			Handler: cachetest.NewHandler(cachetest.HandlerOptions{
				Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: source}},
			}),
			// Connections are cut on purpose here; that is no news.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		served: make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		s.failure = s.http.Serve(network)
	}()
	return s, fleet, nil
}

// startChanges changes the fleet at a steady pace until stopChanges.
func (s *demoServer) startChanges(f *fleet) {
	ctx, end := context.WithCancel(context.Background())
	s.endChanges, s.changed = end, make(chan struct{})
	go func() {
		defer close(s.changed)
		s.lastChange = keepChanging(ctx, f)
	}()
}

func keepChanging(ctx context.Context, f *fleet) error {
	ticker := time.NewTicker(changeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := f.step(); err != nil {
				return fmt.Errorf("changing the demonstration's pods: %w", err)
			}
		}
	}
}

// stopChanges waits until the last change was made. It may be called again.
func (s *demoServer) stopChanges() error {
	s.endChanges()
	<-s.changed
	return s.lastChange
}

// cut breaks every connection and refuses new ones until heal.
func (s *demoServer) cut() {
	s.network.RefuseConnections(true)
	s.network.CutConnections()
}

func (s *demoServer) heal() { s.network.RefuseConnections(false) }

// lists is how many lists the server has answered, in how many pages, and how many more lists
// of one pod, by which the mirror checks after a cut that the server's version has not gone back.
func (s *demoServer) lists() (lists, pages, checks int) {
	for _, request := range s.source.Requests() {
		switch {
		case request.Verb != cachetest.VerbList:
		case request.Options.Limit == 1:
			checks++
		default:
			pages++
			if request.Page == 1 {
				lists++
			}
		}
	}
	return lists, pages, checks
}

// watches is how many watches the server was asked for.
func (s *demoServer) watches() int { return s.source.WatchCalls() }

// objects is the server's content, for the final check.
func (s *demoServer) objects() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, obj := range s.source.Objects() {
		objects = append(objects, obj.(*unstructured.Unstructured))
	}
	return objects
}

// close ends the server and waits for its requests. The client has ended its own
// by then; the limit is for one that has not.
func (s *demoServer) close() error {
	s.source.Close()
	s.network.Client().CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	<-s.served
	if errors.Is(s.failure, http.ErrServerClosed) || errors.Is(s.failure, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("the demonstration's server: %w", s.failure)
}
