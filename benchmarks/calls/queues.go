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

// process is the consumer of each queue.
func process(any, bool) error { return nil }

// popKeys calls pop, which removes the only change of a key, for so many changes.
func popKeys(pop func() error) func(changes int) error {
	return func(changes int) error {
		for range changes {
			if err := pop(); err != nil {
				return err
			}
		}
		return nil
	}
}

// popBatches calls popBatch until it has passed so many changes to the two functions.
func popBatches[Delta any](
	popBatch func(batch func([]Delta, bool) error, single func(any, bool) error) error,
) func(changes int) error {
	count := 0
	batch := func(deltas []Delta, _ bool) error {
		count += len(deltas)
		return nil
	}
	single := func(any, bool) error {
		count++
		return nil
	}
	return func(changes int) error {
		count = 0
		for count < changes {
			if err := popBatch(batch, single); err != nil {
				return err
			}
		}
		return nil
	}
}

// theirDeltaFIFO makes client-go's queue. known is nil or a store of the known objects.
func theirDeltaFIFO(known theircache.KeyListerGetter) popped {
	q := theircache.NewDeltaFIFOWithOptions(theircache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	})
	return popped{queue: q, pop: popKeys(func() error {
		_, err := q.Pop(process)
		return err
	})}
}

// ourDeltaFIFO makes ours.
func ourDeltaFIFO(known ourcache.KeyListerGetter) popped {
	q := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	})
	return popped{queue: q, pop: popKeys(func() error {
		_, err := q.Pop(process)
		return err
	})}
}

// theirBatches makes client-go's queue with batches, as its informers do.
func theirBatches() popped {
	q := theircache.NewRealFIFOWithOptions(theircache.RealFIFOOptions{
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	})
	popBatch := func(
		batch func([]theircache.Delta, bool) error, single func(any, bool) error,
	) error {
		return q.PopBatch(batch, single)
	}
	return popped{queue: q, pop: popBatches(popBatch)}
}

func ourBatches() popped {
	q := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	popBatch := func(
		batch func([]ourcache.Delta, bool) error, single func(any, bool) error,
	) error {
		return q.PopBatch(batch, single)
	}
	return popped{queue: q, pop: popBatches(popBatch)}
}
