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
	nodeLabel       = "capacity.example/node" // on a config map: whose count it is
	podsKey         = "pods"                  // in its data: the count
	byNode          = "node"                  // the name of both indexes
	fieldManager    = "nodecount"             // who the API server says wrote the counts
)

// Controller keeps a config map for each node that has pods, with their number.
//
// Handlers only put into the queue which node to look at. What there is to be done is
// read from the two mirrors when it is the node's turn.
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
		pods: informerOf(client, podsOf(client), &corev1.Pod{}, func(pod *corev1.Pod) ([]string, error) {
			return []string{pod.Spec.NodeName}, nil
		}),
		counts: informerOf(client, countsOf(client), &corev1.ConfigMap{}, func(count *corev1.ConfigMap) ([]string, error) {
			return []string{count.Labels[nodeLabel]}, nil
		}),
		nodes: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	err := errors.Join(c.handlePods(), c.handleCounts())
	if err != nil {
		c.nodes.ShutDown()
		return nil, err
	}
	return c, nil
}

// apiObject is a pointer to an API type.
type apiObject interface {
	cache.Object
	runtime.Object
}

// informerOf makes an informer with an index by node.
func informerOf[T apiObject](client kubernetes.Interface, lw *cache.ListWatch, example T, nodeOf cache.TypedIndexFunc[T]) cache.TypedSharedIndexInformer[T] {
	source := cache.ToListWatcherWithWatchListSemantics(lw, client)
	return cache.NewTypedSharedIndexInformer[T](cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{
		Indexers: cache.TypedIndexersToIndexers(cache.TypedIndexers[T]{byNode: nodeOf}),
	}))
}

func podsOf(client kubernetes.Interface) *cache.ListWatch {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, options)
		},
	}
}

func countsOf(client kubernetes.Interface) *cache.ListWatch {
	counts := client.CoreV1().ConfigMaps(countsNamespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = nodeLabel
			return counts.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = nodeLabel
			return counts.Watch(ctx, options)
		},
	}
}

func (c *Controller) handlePods() error {
	_, err := c.pods.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(pod *corev1.Pod) { c.look(pod.Spec.NodeName) },
		UpdateFunc: func(before, after *corev1.Pod) {
			if before.Spec.NodeName != after.Spec.NodeName {
				c.look(before.Spec.NodeName)
				c.look(after.Spec.NodeName)
			}
		},
		// A deletion that only a list has shown comes with the last state that was known.
		DeleteFunc: func(gone cache.DeletedObject[*corev1.Pod]) {
			if gone.OptionalObj != nil {
				c.look(gone.OptionalObj.Spec.NodeName)
			}
		},
	})
	return err
}

func (c *Controller) handleCounts() error {
	_, err := c.counts.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
		AddFunc:    func(count *corev1.ConfigMap) { c.look(count.Labels[nodeLabel]) },
		UpdateFunc: func(_, count *corev1.ConfigMap) { c.look(count.Labels[nodeLabel]) },
		DeleteFunc: func(gone cache.DeletedObject[*corev1.ConfigMap]) {
			if gone.OptionalObj != nil {
				c.look(gone.OptionalObj.Labels[nodeLabel])
			}
		},
	})
	return err
}

// look has a node looked at. A pod that has found none has an empty one.
func (c *Controller) look(node string) {
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
	// What waits in the queue is given up: the next run finds it in the first list.
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

// next looks at the node whose turn it is. It waits for one; false means that the queue
// is shut down.
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
