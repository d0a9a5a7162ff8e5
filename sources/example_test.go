package sources_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sources"
)

// Machine is a type of the program.
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

// inventory represents a database or an HTTP API without a watch.
type inventory struct {
	mu   sync.Mutex
	rows []row
}

type row struct{ Name, Address string }

func (i *inventory) set(rows ...row) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rows = rows
}

func (i *inventory) machines(context.Context) ([]row, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.rows, nil
}

func ExampleNewPollingSource() {
	stock := &inventory{rows: []row{{"web", "10.0.0.1"}}}
	list := func(ctx context.Context) ([]*Machine, error) {
		rows, err := stock.machines(ctx) // any client of any backend
		if err != nil {
			return nil, err // reported; the mirror keeps its content
		}
		machines := make([]*Machine, 0, len(rows))
		for _, row := range rows {
			machines = append(machines, &Machine{ObjectMeta: metav1.ObjectMeta{Name: row.Name}, Address: row.Address})
		}
		return machines, nil
	}
	source := sources.NewPollingSource(list, sources.PollingOptions[*Machine]{Interval: 10 * time.Second})
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
	stock.set(row{"web", "10.0.0.2"})
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

// Disk is a plain struct, without metadata.
type Disk struct {
	Serial string
	Size   int
}

// rack represents any client of any backend.
type rack []Disk

func (r rack) Disks(context.Context) ([]Disk, error) { return r, nil }

// A plain struct is the value of an Entry, which has the metadata.
func ExampleEntry() {
	client := rack{{"A1", 100}}
	source := sources.NewPollingSource(func(ctx context.Context) ([]*sources.Entry[Disk], error) {
		disks, err := client.Disks(ctx)
		if err != nil {
			return nil, err // reported; the mirror keeps its content
		}
		entries := make([]*sources.Entry[Disk], 0, len(disks))
		for _, disk := range disks {
			meta := metav1.ObjectMeta{Name: disk.Serial}
			entries = append(entries, &sources.Entry[Disk]{ObjectMeta: meta, Value: disk})
		}
		return entries, nil
	})
	disks := cache.NewTypedInformer[*sources.Entry[Disk]](source)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { disks.Run(ctx) })
	if err := disks.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}
	disk, err := disks.Get("A1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(disk.Name, disk.Value.Size)
	cancel()
	running.Wait()
	// Output:
	// A1 100
}
