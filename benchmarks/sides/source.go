package sides

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Side is the library that reads.
type Side string

// The two sides.
const (
	ClientGo Side = "client-go"
	Ours     Side = "ours"
)

// Encoding is what pods are sent in.
type Encoding string

// The encodings that both sides read.
const (
	JSON     Encoding = "JSON"
	Protobuf Encoding = "protobuf"
)

// Objects is what pods are decoded into.
type Objects string

// The forms of a pod.
const (
	Typed        Objects = "typed"
	Unstructured Objects = "unstructured"
)

// Strategy is how a cache gets its first state.
type Strategy string

// The ways that are measured. client-go has no option for it: if the server refuses to stream, it
// asks for pages of 500, which a server may ignore. The server has to be configured for what is
// wanted of it.
const (
	Pages Strategy = "pages"
	Whole Strategy = "whole"
)

// Target says which objects are read, and how.
type Target struct {
	// URL is where the API begins.
	URL      string
	Encoding Encoding
	Objects  Objects
	// Projected has ours name the fields that it needs, and drop all others on the wire.
	// client-go has no such thing.
	Projected bool
}

// Fields are those that are needed of a pod where the others are dropped.
var Fields = []string{"spec.nodeName", "status.phase", "status.podIP"}

// Source reads pods as one side does. Its methods are called one at a time.
type Source interface {
	// List reads the list, or its first pages, in pages of so many items, decodes
	// each item, keeps none, and returns how many there were. Pages 0 is all of them,
	// a limit of 0 one page.
	List(ctx context.Context, limit int64, pages int) (int, error)

	// Watch opens a watch at a version and returns when so many events have come, or
	// the one that ends the initial events. It returns how many pods came.
	Watch(ctx context.Context, options metav1.ListOptions, events int) (int, error)

	// Fill runs a cache of all pods, with a transform and an index by namespace, and
	// returns when it has synced. The cache runs on until the context ends.
	Fill(ctx context.Context, strategy Strategy, strip func(any) (any, error)) (*Cache, error)
}

const namespaceIndex = "namespace"

// Cache is a filled cache.
type Cache struct {
	indexer interface {
		ListKeys() []string
		IndexKeys(indexName, indexedValue string) ([]string, error)
	}
	done chan struct{}
}

// Len is how many pods it has.
func (c *Cache) Len() int { return len(c.indexer.ListKeys()) }

// InNamespace is how many of them its index has in a namespace.
func (c *Cache) InNamespace(namespace string) (int, error) {
	keys, err := c.indexer.IndexKeys(namespaceIndex, namespace)
	return len(keys), err
}

// Wait returns when the cache has ended, with its context.
func (c *Cache) Wait() { <-c.done }

// filling is a cache that begins to run.
type filling struct {
	cache *Cache
	run   func(ctx context.Context)
	// synced is closed when the cache is filled.
	synced <-chan struct{}
	failed chan error
}

// report keeps the first failure of a reflector.
func (f *filling) report(err error) {
	select {
	case f.failed <- err:
	default:
	}
}

// fill returns when the cache has synced, or failed once.
func (f *filling) fill(ctx context.Context) (*Cache, error) {
	go func() {
		defer close(f.cache.done)
		f.run(ctx)
	}()
	select {
	case <-f.synced:
		return f.cache, nil
	case err := <-f.failed:
		return nil, fmt.Errorf("the first failure of the reflector: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Open makes a side's source.
func (s Side) Open(target Target) (Source, error) {
	switch {
	case target.Encoding == Protobuf && target.Objects != Typed:
		return nil, fmt.Errorf("protobuf cannot be decoded into %s objects", target.Objects)
	case s == Ours:
		return openOurs(target)
	case s == ClientGo:
		return openClientGo(target)
	}
	return nil, fmt.Errorf("%q is neither %q nor %q", s, ClientGo, Ours)
}
