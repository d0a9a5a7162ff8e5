package calls

import (
	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

// queue is a DeltaFIFO, client-go's or ours, and client-go's RealFIFO for batches.
type queue interface {
	Add(obj any) error
	Update(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// popped is a queue and the function that removes so many changes of it.
type popped struct {
	queue
	pop func(changes int) error
}

func popTheirs(q theircache.Queue) popped {
	process := func(any, bool) error { return nil }
	return popped{queue: q, pop: func(changes int) error {
		for range changes {
			if _, err := q.Pop(process); err != nil {
				return err
			}
		}
		return nil
	}}
}

func popOurs(q *ourcache.DeltaFIFO) popped {
	process := func(any, bool) error { return nil }
	return popped{queue: q, pop: func(changes int) error {
		for range changes {
			if _, err := q.Pop(process); err != nil {
				return err
			}
		}
		return nil
	}}
}

// theirDeltaFIFO makes client-go's queue. known is nil or a store of the known objects.
func theirDeltaFIFO(known theircache.KeyListerGetter) popped {
	return popTheirs(theircache.NewDeltaFIFOWithOptions(theircache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	}))
}

// ourDeltaFIFO makes ours.
func ourDeltaFIFO(known ourcache.KeyListerGetter) popped {
	return popOurs(ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	}))
}

// theirBatches makes client-go's queue with batches, as its informers do.
func theirBatches() popped {
	q := theircache.NewRealFIFOWithOptions(theircache.RealFIFOOptions{
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	})
	count := 0
	batch := func(deltas []theircache.Delta, _ bool) error {
		count += len(deltas)
		return nil
	}
	single := func(any, bool) error {
		count++
		return nil
	}
	return popped{queue: q, pop: func(changes int) error {
		count = 0
		for count < changes {
			if err := q.PopBatch(batch, single); err != nil {
				return err
			}
		}
		return nil
	}}
}

func ourBatches() popped {
	q := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	count := 0
	batch := func(deltas []ourcache.Delta, _ bool) error {
		count += len(deltas)
		return nil
	}
	single := func(any, bool) error {
		count++
		return nil
	}
	return popped{queue: q, pop: func(changes int) error {
		count = 0
		for count < changes {
			if err := q.PopBatch(batch, single); err != nil {
				return err
			}
		}
		return nil
	}}
}
