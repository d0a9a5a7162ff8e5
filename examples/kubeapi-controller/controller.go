package main

import (
	"context"
	"errors"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// Where the counts are.
const (
	countsNamespace = "capacity"
	nodeLabel       = "capacity.example/node" // on a config map: whose count it is
	podsKey         = "pods"                  // in its data: the count
	byNode          = "node"                  // the name of both indexes
)

// Controller keeps a config map for each node that has pods, with their number.
//
// Handlers only say which node to look at. What there is to be done is read from the two
// mirrors when it is the node's turn, so it does not matter how often, or why, a node is
// looked at; and a count that somebody else has changed is put right.
type Controller struct {
	api    api
	pods   *cache.Informer[*Pod]
	counts *cache.Informer[*ConfigMap]
	nodes  *queue
}

// NewController makes a controller that works on the API that the options reach.
func NewController(options kubeapi.Options) (*Controller, error) {
	c := &Controller{api: api{options}, nodes: newQueue()}
	var err error
	c.pods, err = mirror(c.api, "pods", cache.InformerConfig[*Pod]{
		ObjectType: &Pod{},
		Indexes: cache.TypedIndexers[*Pod]{byNode: func(pod *Pod) ([]string, error) {
			return values(pod.Spec.NodeName), nil
		}},
	}, nil)
	if err != nil {
		return nil, err
	}
	c.counts, err = mirror(c.api, "configmaps", cache.InformerConfig[*ConfigMap]{
		ObjectType: &ConfigMap{},
		Indexes: cache.TypedIndexers[*ConfigMap]{byNode: func(count *ConfigMap) ([]string, error) {
			return values(count.Labels[nodeLabel]), nil
		}},
	}, func(o *kubeapi.Options) {
		o.Namespace, o.LabelSelector = countsNamespace, nodeLabel
	})
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.handlePods(), c.handleCounts())
}

// values are those of an index: none for an object that has none.
func values(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// coalesced is how both handlers want to hear of changes: a node is looked at once,
// however many of its pods have changed.
var coalesced = cache.HandlerOptions{Delivery: cache.Coalesced}

func (c *Controller) handlePods() error {
	_, err := c.pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*Pod]{
		AddFunc: func(pod *Pod) { c.nodes.add(pod.Spec.NodeName) },
		UpdateFunc: func(before, after *Pod) {
			if before.Spec.NodeName != after.Spec.NodeName {
				c.nodes.add(before.Spec.NodeName)
				c.nodes.add(after.Spec.NodeName)
			}
		},
		DeleteFunc: func(gone cache.DeletedObject[*Pod]) {
			// It need not be the final state: a node is none that a pod leaves.
			if last, known := gone.Last(); known {
				c.nodes.add(last.Spec.NodeName)
			}
		},
	}, coalesced)
	return err
}

func (c *Controller) handleCounts() error {
	_, err := c.counts.AddHandler(cache.TypedResourceEventHandlerFuncs[*ConfigMap]{
		AddFunc:    func(count *ConfigMap) { c.nodes.add(count.Labels[nodeLabel]) },
		UpdateFunc: func(_, count *ConfigMap) { c.nodes.add(count.Labels[nodeLabel]) },
		DeleteFunc: func(gone cache.DeletedObject[*ConfigMap]) {
			if last, known := gone.Last(); known {
				c.nodes.add(last.Labels[nodeLabel])
			}
		},
	}, coalesced)
	return err
}

// Run works until ctx ends, and returns nil then.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var informers sync.WaitGroup
	defer informers.Wait()
	defer cancel()
	// Run's error is that it was run before, which the wait below would say as well.
	informers.Go(func() { _ = c.pods.Run(ctx) })
	informers.Go(func() { _ = c.counts.Run(ctx) })

	// With half of the pods, each count would be wrong.
	if err := cache.WaitForDone(ctx, c.pods.HasSyncedChecker(), c.counts.HasSyncedChecker()); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for {
		node, ok := c.nodes.next(ctx)
		if !ok {
			return nil
		}
		err := c.reconcile(ctx, node)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not count the pods", "node", node)
		}
		c.nodes.done(node, err)
	}
}

// reconcile makes one node's config map what it should be.
func (c *Controller) reconcile(ctx context.Context, node string) error {
	pods, err := c.pods.ByIndex(byNode, node)
	if err != nil {
		return err
	}
	have, exists := c.counts.Lookup(countsNamespace + "/" + countName(node))
	switch want := strconv.Itoa(len(pods)); {
	case len(pods) == 0 && exists:
		return c.api.remove(ctx, countsNamespace, countName(node))
	case len(pods) == 0 || exists && have.Data[podsKey] == want:
		return nil
	default:
		return c.api.apply(ctx, &ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: countsNamespace, Name: countName(node), Labels: map[string]string{nodeLabel: node}},
			Data:       map[string]string{podsKey: want},
		})
	}
}

func countName(node string) string { return "pods-on-" + node }
