package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

const (
	// latePause is how long a writer and a reader wait between two of their steps: a
	// machine of two cores must have time for the measured work.
	latePause = 100 * time.Microsecond
	// lateWarmUp is how many changes are made before the handler is added.
	lateWarmUp = 100
)

// late adds a handler to an informer of as many objects as the task has items, while one
// of them changes all the time and somebody reads it, and says what the slowest change and
// the slowest look took. Both go on for the task's window, however long the handler takes
// to receive everything: a longer measurement has a slower slowest.
func (t Task) late(ctx context.Context) (Result, error) {
	l := &lateHandler{source: local.NewSource(t.Items, 0), fleet: newFleet(ctx)}
	defer l.stop()
	var early, late atomic.Int64
	var err error
	l.informer, err = l.add(t, l.source, sides.Handler[*corev1.ConfigMap]{
		Add:    func(*corev1.ConfigMap) { early.Add(1) },
		Update: func(object *corev1.ConfigMap) { l.seen.Store(&object.ResourceVersion) },
	})
	if err != nil {
		return Result{}, err
	}
	items := int64(t.Items)
	if err := l.until(func() bool { return early.Load() == items }, "the handler's first list"); err != nil {
		return Result{}, err
	}
	for range lateWarmUp {
		if err := l.change(); err != nil {
			return Result{}, err
		}
	}
	l.result = Result{Items: t.Items}

	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	err = l.during(t.Window, func() error {
		handler := sides.Handler[*corev1.ConfigMap]{Add: func(*corev1.ConfigMap) { late.Add(1) }}
		if err := l.join(t, l.informer, handler); err != nil {
			return err
		}
		return l.until(func() bool { return late.Load() >= items }, "the late handler's list")
	})
	return l.result, errors.Join(err, finish())
}

// lateHandler is the writer, the reader and the handler that was there before.
type lateHandler struct {
	*fleet
	source   *local.Source
	informer sides.Informer[*corev1.ConfigMap]
	// seen is the version that the handler received last.
	seen   atomic.Pointer[string]
	result Result
}

// change changes one object and waits until the store has that, and the handler knows.
func (l *lateHandler) change() error {
	began := time.Now()
	version, err := l.source.Update(l.ctx, 0)
	if err != nil {
		return err
	}
	if err := l.stored(l.informer, version); err != nil {
		return err
	}
	l.result.StoreDelay = max(l.result.StoreDelay, time.Since(began).Seconds())
	if err := l.until(func() bool { seen := l.seen.Load(); return seen != nil && *seen == version }, "the handler's call"); err != nil {
		return err
	}
	l.result.HandlerDelay = max(l.result.HandlerDelay, time.Since(began).Seconds())
	return nil
}

// look reads the store once.
func (l *lateHandler) look() error {
	began := time.Now()
	l.informer.Get(local.Key(0))
	l.result.ReadDelay = max(l.result.ReadDelay, time.Since(began).Seconds())
	return nil
}

// during does something while changes are made and looked at, which begin in a window. What
// begins in it counts, though it may end after it.
func (l *lateHandler) during(window time.Duration, something func() error) error {
	began := time.Now()
	var others sync.WaitGroup
	failed := make([]error, 2)
	for n, step := range []func() error{l.change, l.look} {
		others.Go(func() {
			for {
				if failed[n] = step(); failed[n] != nil || time.Since(began) >= window {
					return
				}
				time.Sleep(latePause)
			}
		})
	}
	err := something()
	l.result.Join = time.Since(began).Seconds()
	others.Wait()
	l.result.Seconds = time.Since(began).Seconds()
	return errors.Join(err, errors.Join(failed...))
}
