package cache

import (
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// InformerName is the name under which a program's informers publish metrics. There is
// one of a name at a time in a process, and under it each resource is published by
// one informer: two would overwrite each other's values.
//
// All methods may be called concurrently, and on nil, which is a name that publishes
// nothing, as the zero value is.
type InformerName struct {
	name string

	mu sync.Mutex
	// resources are those that are published, each with the flag that the
	// InformerNameAndResource of it shares. nil: there is no name, or it was released.
	resources map[schema.GroupVersionResource]*atomic.Bool
}

// NewInformerName takes the name. It fails if the name is empty or in use in this
// process. Release gives it back.
func NewInformerName(name string) (*InformerName, error) {
	if name == "" {
		return nil, errors.New("informer name is empty: choose one, for it tells this program's metrics from those of others")
	}
	n := &InformerName{name: name, resources: map[schema.GroupVersionResource]*atomic.Bool{}}
	if err := informerNames.take(n); err != nil {
		return nil, err
	}
	return n, nil
}

// Name returns the name, after Release too.
func (n *InformerName) Name() string {
	if n == nil {
		return ""
	}
	return n.name
}

// WithResource returns what an informer of the resource is to be given. The first call
// for a resource gets one that is reserved and so publishes; later ones, until Release,
// get one that does not, and so does every call after Release. The second for a
// resource is logged as an error, for the metrics that somebody expects will be missing.
func (n *InformerName) WithResource(gvr schema.GroupVersionResource) InformerNameAndResource {
	identity := InformerNameAndResource{name: n.Name(), gvr: gvr}
	if n == nil {
		return identity
	}
	var second bool
	identity.reserved, second = n.reserve(gvr)
	if second {
		klog.Background().Error(nil, "Second informer of the same name and resource: only the first publishes metrics", "informerName", n.name, "resource", gvr.String())
	}
	return identity
}

// reserve returns the flag for a resource, nil if it is not to be published. second is
// true if that is because another has it.
func (n *InformerName) reserve(gvr schema.GroupVersionResource) (reserved *atomic.Bool, second bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resources == nil {
		return nil, false
	}
	if _, second = n.resources[gvr]; second {
		return nil, true
	}
	reserved = new(atomic.Bool)
	reserved.Store(true)
	n.resources[gvr] = reserved
	return reserved, false
}

// Release gives the name back: from then on nothing publishes under this InformerName,
// and NewInformerName can take the name anew. A second call does nothing.
func (n *InformerName) Release() {
	if n == nil {
		return
	}
	n.unreserve()
	// Only now, so that nobody publishes under the name of the next.
	informerNames.giveBack(n)
}

func (n *InformerName) unreserve() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, reserved := range n.resources {
		reserved.Store(false)
	}
	n.resources = nil
}

// InformerNameAndResource says under which name and for which resource an informer
// publishes metrics. InformerName.WithResource makes one. The zero value publishes
// nothing.
type InformerNameAndResource struct {
	name     string
	gvr      schema.GroupVersionResource
	reserved *atomic.Bool
}

// Name returns the informer's name.
func (n InformerNameAndResource) Name() string { return n.name }

// GroupVersionResource returns the resource.
func (n InformerNameAndResource) GroupVersionResource() schema.GroupVersionResource { return n.gvr }

// Reserved says whether metrics are to be published: true from WithResource until
// the InformerName is released. It takes no lock, so that instruments can ask it at each
// value.
func (n InformerNameAndResource) Reserved() bool {
	return n.reserved != nil && n.reserved.Load()
}
