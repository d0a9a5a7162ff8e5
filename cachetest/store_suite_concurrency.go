package cachetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// The checks of several goroutines at one store.

// Enough of them that a missing lock meets the race detector, and a map that is
// written twice at once the runtime's own check.
const (
	writers         = 4
	readers         = 2
	writesOfOne     = 100
	objectsReplaced = 20
)

// reading reads the store in every way until stop is closed, and returns the first
// thing that was wrong.
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

// readWhile reads by several goroutines for as long as write runs.
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
	// Made beforehand: the trial's own counting is for one goroutine.
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

// writeHistory writes one object's states, with a deletion now and then.
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

// checkAtomicReplace has the store hold one of two lists at any time: a reader that
// found objects of both, or of one only a part, would act on a state that never was.
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
