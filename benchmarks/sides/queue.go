package sides

import (
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/local"
)

// Out is how a queue's consumer takes what there is.
type Out string

// The ways out.
const (
	Singly    Out = "Pop"
	InBatches Out = "PopBatch"
)

// Queue is one queue of changes.
type Queue interface {
	// Put queues a change of an object.
	Put(object *local.Small) error
	// Take takes so many changes out, of as many objects.
	Take(changes int) error
}

// NewQueue makes a side's queue. client-go's has batches in its RealFIFO only, which is
// made as an informer makes it; without batches it is compared by its DeltaFIFO.
func NewQueue(side Side, out Out) (Queue, error) {
	switch {
	case side == Floor:
		return &bareQueue{}, nil
	case side == Ours && out == Singly:
		queue := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
		return poppedQueue[ourcache.PopProcessFunc]{queue, func(any, bool) error { return nil }}, nil
	case side == ClientGo && out == Singly:
		queue := theircache.NewDeltaFIFOWithOptions(theircache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
		return poppedQueue[theircache.PopProcessFunc]{queue, func(any, bool) error { return nil }}, nil
	case side == Ours && out == InBatches:
		return newBatches[ourcache.ProcessBatchFunc, ourcache.PopProcessFunc, ourcache.Delta](
			ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})), nil
	case side == ClientGo && out == InBatches:
		return newBatches[theircache.ProcessBatchFunc, theircache.PopProcessFunc, theircache.Delta](
			theircache.NewRealFIFOWithOptions(theircache.RealFIFOOptions{
				AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
			})), nil
	}
	return nil, fmt.Errorf("%q has no queue with %q", side, out)
}

// KnownQueue is a DeltaFIFO beside a store of the known objects.
type KnownQueue interface {
	// Replace queues a list of everything.
	Replace(list []any, version string) error
	// Resync queues everything that is known.
	Resync() error
	// Take takes so many objects' changes out, and does not change the known objects.
	Take(changes int) error
}

// NewKnownQueue makes a side's DeltaFIFO that knows the objects.
func NewKnownQueue(side Side, objects []any) (KnownQueue, error) {
	process := func(any, bool) error { return nil }
	switch side {
	case Ours:
		known := ourcache.NewStore(ourcache.MetaNamespaceKeyFunc)
		queue := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		return knownQueue{poppedQueue[ourcache.PopProcessFunc]{queue, process}, queue}, known.Replace(objects, "1")
	case ClientGo:
		known := theircache.NewStore(theircache.MetaNamespaceKeyFunc)
		queue := theircache.NewDeltaFIFOWithOptions(theircache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		return knownQueue{poppedQueue[theircache.PopProcessFunc]{queue, process}, queue}, known.Replace(objects, "1")
	}
	return nil, fmt.Errorf("%q has no queue beside a store", side)
}

type knownQueue struct {
	taker interface{ Take(changes int) error }
	queue interface {
		Replace(list []any, version string) error
		Resync() error
	}
}

func (q knownQueue) Replace(list []any, version string) error { return q.queue.Replace(list, version) }

func (q knownQueue) Resync() error { return q.queue.Resync() }

func (q knownQueue) Take(changes int) error { return q.taker.Take(changes) }

// poppedQueue is either side's DeltaFIFO.
type poppedQueue[Process ~func(any, bool) error] struct {
	queue interface {
		Update(obj any) error
		Pop(process Process) (any, error)
	}
	process Process
}

func (q poppedQueue[Process]) Put(object *local.Small) error { return q.queue.Update(object) }

func (q poppedQueue[Process]) Take(changes int) error {
	for range changes {
		if _, err := q.queue.Pop(q.process); err != nil {
			return err
		}
	}
	return nil
}

// batchQueue is a queue of either side's that hands out batches.
type batchQueue[Batch ~func([]Delta, bool) error, Process ~func(any, bool) error, Delta any] struct {
	queue interface {
		Update(obj any) error
		PopBatch(batch Batch, process Process) error
	}
	batch   Batch
	process Process
	popped  int
}

func newBatches[Batch ~func([]Delta, bool) error, Process ~func(any, bool) error, Delta any](queue interface {
	Update(obj any) error
	PopBatch(batch Batch, process Process) error
}) Queue {
	q := &batchQueue[Batch, Process, Delta]{queue: queue}
	q.batch = func(deltas []Delta, _ bool) error {
		q.popped += len(deltas)
		return nil
	}
	q.process = func(any, bool) error {
		q.popped++
		return nil
	}
	return q
}

func (q *batchQueue[Batch, Process, Delta]) Put(object *local.Small) error {
	return q.queue.Update(object)
}

func (q *batchQueue[Batch, Process, Delta]) Take(changes int) error {
	for q.popped = 0; q.popped < changes; {
		if err := q.queue.PopBatch(q.batch, q.process); err != nil {
			return err
		}
	}
	return nil
}

// bareQueue is a slice, without keys.
type bareQueue struct{ objects []*local.Small }

func (q *bareQueue) Put(object *local.Small) error {
	q.objects = append(q.objects, object)
	return nil
}

func (q *bareQueue) Take(changes int) error {
	for n, object := range q.objects[:changes] {
		if object == nil {
			return fmt.Errorf("nothing in place %d", n)
		}
		q.objects[n] = nil
	}
	q.objects = append(q.objects[:0], q.objects[changes:]...)
	return nil
}
