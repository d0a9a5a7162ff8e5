package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// Where the counts are.
const (
	countsNamespace = "capacity"
	nodeLabel       = "capacity.example/node" // on a config map: the node that was counted
	podsKey         = "pods"                  // in its data: the count
	byNode          = "node"                  // the name of both indexes
	fieldManager    = "nodecount"             // the writer of the counts, for the API server
)

// Controller keeps a config map for each node that has pods, with their number.
//
// Handlers only enqueue nodes. The controller reads the two mirrors when it is the node's turn.
type Controller struct {
	client kubernetes.Interface
	pods   cache.TypedSharedIndexInformer[*corev1.Pod]
	counts cache.TypedSharedIndexInformer[*corev1.ConfigMap]
	nodes  workqueue.TypedRateLimitingInterface[string]
}

// NewController makes a controller. It starts the queue's goroutines, which Run ends.
func NewController(client kubernetes.Interface) (*Controller, error) {
	c := &Controller{
		client: client,
		pods:   informerOf(client, sourceOf(client.CoreV1().Pods(metav1.NamespaceAll), ""), &corev1.Pod{}, nodeOfPod),
		counts: informerOf(client, sourceOf(client.CoreV1().ConfigMaps(countsNamespace), nodeLabel), &corev1.ConfigMap{}, nodeOfCount),
		nodes:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	err := errors.Join(enqueue(c, c.pods, nodeOfPod), enqueue(c, c.counts, nodeOfCount))
	if err != nil {
		c.nodes.ShutDown()
		return nil, err
	}
	return c, nil
}

func nodeOfPod(pod *corev1.Pod) string           { return pod.Spec.NodeName }
func nodeOfCount(count *corev1.ConfigMap) string { return count.Labels[nodeLabel] }

// apiObject is a pointer to an API type.
type apiObject interface {
	cache.Object
	runtime.Object
}

// resource is the part of a typed client that a source needs.
type resource[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// sourceOf makes a source of the objects that a label selector selects.
func sourceOf[L runtime.Object](objects resource[L], selector string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return objects.Watch(ctx, options)
		},
	}
}

// informerOf makes an informer with an index by node.
func informerOf[T apiObject](client kubernetes.Interface, lw *cache.ListWatch, example T, nodeOf func(T) string) cache.TypedSharedIndexInformer[T] {
	source := cache.ToListWatcherWithWatchListSemantics(lw, client)
	index := func(obj T) ([]string, error) { return []string{nodeOf(obj)}, nil }
	return cache.NewTypedSharedIndexInformer[T](cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{
		Indexers: cache.TypedIndexersToIndexers(cache.TypedIndexers[T]{byNode: index}),
	}))
}

// enqueue adds a handler that enqueues the nodes of the objects that change.
func enqueue[T apiObject](c *Controller, informer cache.TypedSharedIndexInformer[T], nodeOf func(T) string) error {
	_, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc: func(obj T) { c.enqueue(nodeOf(obj)) },
		UpdateFunc: func(before, after T) {
			c.enqueue(nodeOf(before))
			c.enqueue(nodeOf(after))
		},
		// A deletion that only a list has shown comes with the last state that was known.
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			if deleted.OptionalObj != *new(T) {
				c.enqueue(nodeOf(deleted.OptionalObj))
			}
		},
	})
	return err
}

// enqueue adds a node to the queue. A pod without a node has an empty one.
func (c *Controller) enqueue(node string) {
	if node != "" {
		c.nodes.Add(node)
	}
}

// Run works until ctx ends, and returns nil then.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { c.pods.RunWithContext(ctx) })
	running.Go(func() { c.counts.RunWithContext(ctx) })
	// The queue is dropped: the next run finds its nodes in the first list.
	running.Go(func() {
		<-ctx.Done()
		c.nodes.ShutDown()
	})

	// With half of the pods, each count would be wrong.
	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.pods.HasSynced, c.counts.HasSynced) {
		if ctx.Err() != nil {
			return nil
		}
		return errors.New("the mirrors of pods and counts have not synced")
	}
	for c.next(ctx) {
	}
	return nil
}

// next waits for a node and reconciles it. It returns false when the queue is shut down.
func (c *Controller) next(ctx context.Context) bool {
	node, shutdown := c.nodes.Get()
	if shutdown {
		return false
	}
	defer c.nodes.Done(node)
	switch err := c.reconcile(ctx, node); {
	case err == nil:
		c.nodes.Forget(node)
	case ctx.Err() == nil:
		klog.FromContext(ctx).Error(err, "Could not count the pods", "node", node)
		c.nodes.AddRateLimited(node)
	}
	return true
}

// reconcile makes one node's config map what it should be.
func (c *Controller) reconcile(ctx context.Context, node string) error {
	pods, err := c.pods.GetTypedIndexer().ByTypedIndex(byNode, node)
	if err != nil {
		return fmt.Errorf("looking up the pods: %w", err)
	}
	have, err := c.counts.GetTypedIndexer().ByTypedIndex(byNode, node)
	if err != nil {
		return fmt.Errorf("looking up the count: %w", err)
	}
	counts := c.client.CoreV1().ConfigMaps(countsNamespace)
	want := strconv.Itoa(len(pods))
	switch {
	case len(pods) == 0 && len(have) > 0:
		err := counts.Delete(ctx, countName(node), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	case len(pods) == 0 || len(have) == 1 && have[0].Data[podsKey] == want:
		return nil
	default:
		_, err := counts.Apply(ctx, applycorev1.ConfigMap(countName(node), countsNamespace).
			WithLabels(map[string]string{nodeLabel: node}).
			WithData(map[string]string{podsKey: want}),
			metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	}
}

func countName(node string) string { return "pods-on-" + node }
