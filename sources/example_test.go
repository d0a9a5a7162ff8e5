package sources_test

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sources"
)

// Machine is a type of the program's own.
type Machine struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Address string
}

// DeepCopyObject implements runtime.Object.
func (m *Machine) DeepCopyObject() runtime.Object {
	copied := *m
	copied.ObjectMeta = *m.ObjectMeta.DeepCopy()
	return &copied
}

// inventory stands for a database or an HTTP API without a watch.
type inventory struct {
	mu        sync.Mutex
	addresses map[string]string
}

func (i *inventory) set(name, address string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.addresses[name] = address
}

func (i *inventory) machines(context.Context) (machines []*Machine, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, address := range i.addresses {
		machines = append(machines, &Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Address: address})
	}
	return machines, nil
}

func ExampleNewPollingSource() {
	stock := &inventory{addresses: map[string]string{"web": "10.0.0.1"}}
	source := sources.NewPollingSource(stock.machines, sources.PollingOptions[*Machine]{}) // every 30 s
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*Machine]{})
	changes := make(chan string)
	_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*Machine]{
		AddFunc:    func(m *Machine) { changes <- fmt.Sprint("added ", m.Name, " ", m.Address) },
		UpdateFunc: func(_, m *Machine) { changes <- fmt.Sprint("updated ", m.Name, " ", m.Address) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx) })

	fmt.Println(<-changes)
	stock.set("web", "10.0.0.2")
	if err := source.Poll(ctx); err != nil { // a program that knows of a change need not wait for the interval
		fmt.Println(err)
	}
	fmt.Println(<-changes)
	cancel()
	running.Wait()
	// Output:
	// added web 10.0.0.1
	// updated web 10.0.0.2
}
