package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/apiserver"
	"github.com/watchmirror/cache/kubeapi"
)

type object = unstructured.Unstructured

// patience is how long a cache may take to converge where a test has no limit of its own: a minute
// and a list (G1), on a machine that others use too.
const patience = 2 * time.Minute

// budget is how many requests a failing source may receive since a time (G13): 20 in the first
// minute, 11 in each further one.
func budget(since time.Time) int { return 20 + 11*int(time.Since(since).Minutes()) }

// rig is a custom resource of a cluster with objects in one namespace.
type rig struct {
	cluster   *apiserver.Cluster
	resource  schema.GroupVersionResource
	namespace string
	client    dynamic.ResourceInterface
}

// newRig is a namespace of the resource that tests share.
func newRig(t *testing.T, namespace string) *rig { return common.in(t, namespace) }

// ownRig is a resource in a cluster of the test's own, which the test may stop.
func ownRig(t *testing.T) *rig {
	cluster, err := apiserver.Start(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	resource, err := cluster.Define(t.Context(), "things")
	require.NoError(t, err)
	return (&rig{cluster: cluster, resource: resource}).in(t, "shop")
}

// in is the same resource with another namespace.
func (r *rig) in(t *testing.T, namespace string) *rig {
	client, err := dynamic.NewForConfig(r.cluster.Config())
	require.NoError(t, err)
	return &rig{cluster: r.cluster, resource: r.resource, namespace: namespace, client: client.Resource(r.resource).Namespace(namespace)}
}

func (r *rig) object(name string, spec map[string]any) *object {
	return &object{Object: map[string]any{
		"apiVersion": r.resource.GroupVersion().String(), "kind": apiserver.Kind(r.resource),
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// name is that of the n-th object.
func name(n int) string { return fmt.Sprintf("object-%04d", n) }

// create creates the objects from first to before last.
func (r *rig) create(t *testing.T, first, last int) {
	for i := first; i < last; i++ {
		_, err := r.client.Create(t.Context(), r.object(name(i), map[string]any{"color": "blue", "count": int64(0)}), metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// paint gives an object a color, which is a field of its spec and a label.
func (r *rig) paint(t *testing.T, n int, color string) *object {
	obj, err := r.client.Get(t.Context(), name(n), metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(obj.Object, color, "spec", "color"))
	obj.SetLabels(map[string]string{"color": color})
	obj, err = r.client.Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	return obj
}

func (r *rig) delete(t *testing.T, n int) {
	require.NoError(t, r.client.Delete(t.Context(), name(n), metav1.DeleteOptions{}))
}

// key is that of the n-th object in a cache.
func (r *rig) key(n int) string { return r.namespace + "/" + name(n) }

// objects are the server's, by key. Options may select.
func (r *rig) objects(t *testing.T, options metav1.ListOptions) map[string]*object {
	list, err := r.client.List(t.Context(), options)
	require.NoError(t, err)
	objects := map[string]*object{}
	for i := range list.Items {
		objects[r.namespace+"/"+list.Items[i].GetName()] = &list.Items[i]
	}
	return objects
}

// churn creates, updates and deletes objects at random, with pauses, until the returned function is
// called. The server may be away meanwhile.
func (r *rig) churn(t *testing.T, objects int, pause time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	random := rand.New(rand.NewPCG(1, uint64(objects)))
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			// A call that is given up may be committed after the churn has ended.
			r.change(context.Background(), random, objects)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return stop
}

// change makes one random change. Failures of a server that is away do not matter: the next change
// is another.
func (r *rig) change(ctx context.Context, random *rand.Rand, objects int) {
	target := name(random.IntN(objects))
	obj, err := r.client.Get(ctx, target, metav1.GetOptions{})
	switch {
	case errors.IsNotFound(err):
		_, _ = r.client.Create(ctx, r.object(target, map[string]any{"color": "green", "count": int64(0)}), metav1.CreateOptions{})
	case err != nil:
	case random.IntN(5) == 0:
		_ = r.client.Delete(ctx, target, metav1.DeleteOptions{})
	default:
		count, _, _ := unstructured.NestedInt64(obj.Object, "spec", "count")
		_ = unstructured.SetNestedField(obj.Object, count+1, "spec", "count")
		_, _ = r.client.Update(ctx, obj, metav1.UpdateOptions{})
	}
}

// source is the library's own client of the server, over HTTP/2.
func (r *rig) source(t *testing.T, change func(*kubeapi.Options)) *kubeapi.ListerWatcher {
	config := r.cluster.Config()
	options := kubeapi.Options{BaseURL: config.Host, Resource: r.resource, Namespace: r.namespace}
	if change != nil {
		change(&options)
	}
	if options.BaseURL == config.Host && options.HTTPClient == nil {
		options.HTTPClient = r.httpClient(t)
	}
	source, err := kubeapi.New(options)
	require.NoError(t, err)
	return source
}

func (r *rig) httpClient(t *testing.T) *http.Client {
	client, err := kubeapi.ClientWithCA(r.cluster.Config().CAFile)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// through is the configuration of a client that reaches the server by a proxy.
func through(url string) *rest.Config { return &rest.Config{Host: url, QPS: -1} }

// run runs an informer until the test's end.
func run[T cache.Object](t *testing.T, informer *cache.Informer[T]) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- informer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
