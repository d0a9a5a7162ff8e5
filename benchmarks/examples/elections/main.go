// Elections is a replica of a program that shares objects with others. client-go's leaderelection
// elects a leader for each shard with Lease objects. It prints what it works on, as JSON, until it
// is interrupted.
//
//	go run ./elections -kubeconfig ~/.kube/config -resource /v1/pods    (three times)
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

type options struct {
	kubeconfig    string
	resource      string
	namespace     string
	name          string
	shards        int
	replicas      int
	leaseDuration time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "`file`; without it, the pod's service account")
	flag.StringVar(&o.resource, "resource", "/v1/pods", "`group/version/resource` of the objects")
	flag.StringVar(&o.namespace, "namespace", "default", "of the objects and the leases")
	flag.StringVar(&o.name, "name", "elections", "prefix of the leases' names")
	flag.IntVar(&o.shards, "shards", 6, "number of shards")
	flag.IntVar(&o.replicas, "replicas", 3, "number of replicas")
	flag.DurationVar(&o.leaseDuration, "lease", 15*time.Second, "duration of leases")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "elections:", err)
		os.Exit(1)
	}
}

// Object is an object that the replicas share. Its metadata is enough for them.
type Object = *metav1.PartialObjectMetadata

func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	share := sharding.NewSelector()
	output := newPrinter()
	informer, handle, err := newInformer(config, o, share, output)
	if err != nil {
		return err
	}
	leases, err := newLeases(config, o.leaseDuration)
	if err != nil {
		return err
	}
	elections := &Elections{
		Leases:        leases,
		Namespace:     o.namespace,
		Name:          o.name,
		Identity:      string(uuid.NewUUID()),
		Shards:        o.shards,
		Replicas:      o.replicas,
		LeaseDuration: o.leaseDuration,
		Share:         share,
		Settle: func(ctx context.Context) error {
			if err := share.Wait(ctx); err != nil {
				return err
			}
			// A controller with a work queue also waits until the queue has no older keys.
			return informer.WaitForHandler(ctx, handle, informer.ResourceVersion())
		},
		OnChange: func(shard int, leads bool) { output.print(fmt.Sprint("shard ", shard), !leads) },
	}

	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // longer than the elections
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(running) }()
	err = elections.Run(ctx)
	stop()
	return errors.Join(err, <-ran)
}

func newInformer(
	config *rest.Config, o options, share *sharding.Selector, output *printer,
) (*cache.Informer[Object], cache.ResourceEventHandlerRegistration, error) {
	parts := strings.Split(o.resource, "/")
	if len(parts) != 3 {
		return nil, nil, fmt.Errorf("resource %q is not group/version/resource", o.resource)
	}
	source, err := clientgo.NewSource(config, kubeapi.Options{
		Resource:   schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]},
		Namespace:  o.namespace,
		ObjectType: &metav1.PartialObjectMetadata{},
	})
	if err != nil {
		return nil, nil, err
	}
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Object]{
		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
	})
	handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[Object]{
		AddFunc:    func(obj Object) { output.print(obj.Name, false) },
		DeleteFunc: func(obj cache.DeletedObject[Object]) { output.print(obj.GetName(), true) },
	})
	return informer, handle, err
}

// newLeases returns a client without a limit of requests per second, for which renewals would wait.
// It uses JSON, so that a server may also have Lease objects as custom resources.
func newLeases(config *rest.Config, duration time.Duration) (*coordination.CoordinationV1Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeJSON
	config.Timeout = RequestTimeout(duration)
	return coordination.NewForConfig(config)
}

// printer prints the beginning and end of work as JSON.
type printer struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newPrinter() *printer { return &printer{encoder: json.NewEncoder(os.Stdout)} }

// event reports that work on an object, or the leadership of a shard, has begun or stopped.
type event struct {
	Name    string
	Stopped bool
	At      time.Time
}

func (p *printer) print(name string, stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.encoder.Encode(event{Name: name, Stopped: stopped, At: time.Now()})
}
