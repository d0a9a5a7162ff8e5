package sides

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Side is the library that reads.
type Side string

// The two sides.
const (
	ClientGo Side = "client-go"
	Ours     Side = "ours"
)

// Format is what pods are sent in, and decoded into.
type Format string

// The formats that both sides read.
const (
	JSONTyped        Format = "JSON typed"
	JSONUnstructured Format = "JSON unstructured"
	ProtobufTyped    Format = "protobuf typed"
)

// Formats are all of them.
var Formats = []Format{ProtobufTyped, JSONTyped, JSONUnstructured}

// Strategy is how a cache gets its first state. client-go has no option for it: if the server
// refuses to stream, it asks for pages, which a server may ignore.
type Strategy string

// The strategies that are measured.
const (
	Pages Strategy = "pages of 500"
	Whole Strategy = "one body"
)

// PageSize is the default of both sides.
const PageSize = 500

// Target says which pods are read, and how.
type Target struct {
	// URL is where the API begins.
	URL    string
	Format Format
	// Projected has ours name the fields that it needs, and drop all others on the wire. client-go
	// has no such thing.
	Projected bool
}

// projection has the fields that are named.
var projection = []string{"spec.nodeName", "status.phase", "status.podIP"}

// Source reads pods as one side does. Its methods are called one at a time.
type Source struct{ reader reader }

// reader is what differs between the sides.
type reader interface {
	// listPage calls take for each item of a page, and returns the token of the next one.
	listPage(
		ctx context.Context, options metav1.ListOptions, take func(item runtime.Object) error,
	) (next string, err error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// newCache makes a cache with an index by namespace. It calls onFailure for each failure of its
	// reflector.
	newCache(strategy Strategy, transform transform, onFailure func(err error)) (*Cache, error)
}

type transform = func(object any) (any, error)

// Open makes a side's source.
func (s Side) Open(target Target) (*Source, error) {
	open, known := map[Side]func(Target) (reader, error){ClientGo: openTheirs, Ours: openOurs}[s]
	if !known {
		return nil, fmt.Errorf("%q is neither %q nor %q", s, ClientGo, Ours)
	}
	reader, err := open(target)
	return &Source{reader: reader}, err
}

// List reads so many pages, or all that there are, decodes each item, keeps none, and returns
// their number.
func (s *Source) List(ctx context.Context, pages int) (int, error) {
	items := 0
	count := func(item runtime.Object) error {
		items++
		return named(item)
	}
	options := metav1.ListOptions{Limit: PageSize}
	for page := 1; ; page++ {
		next, err := s.reader.listPage(ctx, options, count)
		if err != nil || next == "" || page == pages {
			return items, err
		}
		options.Continue = next
	}
}

// Watch opens a watch and returns when so many events have come, or the one that ends the initial
// events. It returns how many pods came.
func (s *Source) Watch(ctx context.Context, options metav1.ListOptions, events int) (int, error) {
	w, err := s.reader.watch(ctx, options)
	if err != nil {
		return 0, err
	}
	return drain(ctx, w, events)
}

// Fill runs a cache of all pods and returns when it has synced. The cache runs until the context
// ends.
func (s *Source) Fill(ctx context.Context, strategy Strategy, transform transform) (*Cache, error) {
	failed := make(chan error, 1)
	onFailure := func(err error) {
		select {
		case failed <- err:
		default: // the first one counts
		}
	}
	cache, err := s.reader.newCache(strategy, transform, onFailure)
	if err != nil {
		return nil, err
	}
	cache.running.Go(func() { cache.run(ctx) })
	select {
	case <-cache.synced:
		return cache, nil
	case err := <-failed:
		return nil, fmt.Errorf("the first failure of the reflector: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const namespaceIndex = "namespace"

// Cache is a cache of pods.
type Cache struct {
	run     func(ctx context.Context)
	running sync.WaitGroup
	// synced is closed when the cache is filled.
	synced <-chan struct{}
	store  interface {
		ListKeys() []string
		IndexKeys(indexName, indexedValue string) ([]string, error)
	}
}

// Len is how many pods it has.
func (c *Cache) Len() int { return len(c.store.ListKeys()) }

// Wait returns when the cache has ended, with its context.
func (c *Cache) Wait() { c.running.Wait() }
