package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// Checks of concurrent use.

// Enough for the race detector to find a missing lock, and for the runtime to find concurrent map writes.
const (
	writers         = 4
	readers         = 2
	writesOfOne     = 100
	objectsReplaced = 20
)

// reading reads the store by all methods until stop is closed, and returns the first error.
func (t *storeTrial) reading(stop <-chan struct{}, look func([]any) error) error {
	reader := t.store.(storeReader)
	for {
		list := reader.List()
		if slices.ContainsFunc(list, isNil) {
			return errors.New("List has a nil: a reader would dereference it")
		}
		if err := look(list); err != nil {
			return err
		}
		for _, key := range reader.ListKeys() {
			item, exists, err := reader.GetByKey(key)
			if err != nil || exists == isNil(item) {
				return fmt.Errorf("GetByKey(%q) = %v, %v, %v", key, item, exists, err)
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// readWhile reads in several goroutines while write runs.
func (t *storeTrial) readWhile(look func([]any) error, write func() error) error {
	stop, failures := make(chan struct{}), make(chan error, readers)
	for range readers {
		go func() { failures <- guarded(func() error { return t.reading(stop, look) }) }()
	}
	err := t.inTime("writing to the store while it is read", write)
	close(stop)
	for range readers {
		err = errors.Join(err, t.inTime("reading the store", func() error { return <-failures }))
	}
	return err
}

func checkConcurrency(t *storeTrial) error {
	// Made in advance, because t.object is not for concurrent use.
	var histories [writers][]any
	var want []string
	for n := range histories {
		name := string(rune('a' + n))
		for mark := range writesOfOne {
			histories[n] = append(histories[n], t.object(name+"="+strconv.Itoa(mark)))
		}
		want = append(want, name+"="+strconv.Itoa(writesOfOne-1))
	}
	err := t.readWhile(func([]any) error { return nil }, func() error {
		var all sync.WaitGroup
		errs := make([]error, writers)
		for n, history := range histories {
			all.Go(func() { errs[n] = guarded(func() error { return t.writeHistory(history) }) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	return t.after(strconv.Itoa(writers)+" writers at once", want...)
}

// writeHistory writes one object's states, with some deletions.
func (t *storeTrial) writeHistory(history []any) error {
	for at, obj := range history {
		if at%10 == 5 {
			if err := t.store.Delete(obj); err != nil {
				return fmt.Errorf("Delete: %w", err)
			}
		}
		if err := t.store.Update(obj); err != nil {
			return fmt.Errorf("Update: %w", err)
		}
	}
	return nil
}

// checkAtomicReplace replaces one list by another repeatedly: a reader must see either as a whole.
func checkAtomicReplace(t *storeTrial) error {
	texts := func(mark string) (texts []string) {
		for n := range objectsReplaced {
			texts = append(texts, fmt.Sprintf("%c=%s", 'a'+n, mark))
		}
		return texts
	}
	if err := t.replace("1", texts("0")...); err != nil {
		return err
	}
	look := func(list []any) error {
		if len(list) != objectsReplaced {
			return fmt.Errorf("a reader found %d objects, where every Replace had %d", len(list), objectsReplaced)
		}
		first := t.config.Mark(list[0])
		for _, obj := range list {
			if mark := t.config.Mark(obj); mark != first {
				return fmt.Errorf("a reader found objects of two Replaces at once, with the marks %s and %s", first, mark)
			}
		}
		return nil
	}
	return t.readWhile(look, func() error {
		for n := 1; n <= writesOfOne; n++ {
			if err := t.replace(strconv.Itoa(n+1), texts(strconv.Itoa(n))...); err != nil {
				return err
			}
		}
		return nil
	})
}
