package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// byNode is the name of the index of pods by their node.
const byNode = "node"

// Controller reports the number of pods of a node whenever it may have changed. Its handler only enqueues nodes; the number is read
// from the informer when the node is processed.
type Controller struct {
	pods   *cache.Informer[*corev1.Pod]
	nodes  workqueue.TypedRateLimitingInterface[string]
	report func(ctx context.Context, node string, pods int) error
}

// NewController makes a controller of the source's pods. report receives the number; if it fails, the node is retried. The queue has
// goroutines, which Run ends.
func NewController(source cache.Source, report func(ctx context.Context, node string, pods int) error) (*Controller, error) {
	c := &Controller{
		pods: cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
			Name: "pods",
			Indexes: cache.TypedIndexers[*corev1.Pod]{
				byNode: func(pod *corev1.Pod) ([]string, error) { return []string{pod.Spec.NodeName}, nil },
			},
		}),
		nodes:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		report: report,
	}
	_, err := c.pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: c.enqueue,
		UpdateFunc: func(before, after *corev1.Pod) {
			if before.Spec.NodeName != after.Spec.NodeName {
				c.enqueue(before)
				c.enqueue(after)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*corev1.Pod]) {
			if pod, known := deleted.Object(); known { // of a deletion that only a relist has shown, the last known state
				c.enqueue(pod)
			}
		},
	}, cache.HandlerOptions{Name: "controller", Delivery: cache.Coalesced}) // it matters that a pod has changed, not how often
	if err != nil {
		c.nodes.ShutDown()
		return nil, err
	}
	return c, nil
}

func (c *Controller) enqueue(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		c.nodes.Add(pod.Spec.NodeName)
	}
}

// Run runs the controller until ctx ends, and then returns nil. It runs once.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var ran error
	running.Go(func() {
		defer c.nodes.ShutDown()
		ran = c.pods.Run(ctx)
	})
	// With a part of the pods the numbers would be wrong.
	if err := c.pods.WaitSynced(ctx); err != nil {
		if ctx.Err() != nil { // cancelled, or past its deadline
			err = nil
		}
		cancel()
		running.Wait()
		return errors.Join(err, ran)
	}
	for c.next(ctx) {
	}
	return nil
}

// next waits for the next node and reports its number. It returns false once the queue is shut down.
func (c *Controller) next(ctx context.Context) bool {
	node, shutdown := c.nodes.Get()
	if shutdown {
		return false
	}
	defer c.nodes.Done(node)
	pods, err := c.pods.ByIndex(byNode, node)
	if err == nil {
		err = c.report(ctx, node, len(pods))
	}
	switch {
	case err == nil:
		c.nodes.Forget(node)
	case ctx.Err() == nil:
		klog.FromContext(ctx).Error(fmt.Errorf("reporting the pods of a node: %w", err), "Will retry", "node", node)
		c.nodes.AddRateLimited(node)
	}
	return true
}
