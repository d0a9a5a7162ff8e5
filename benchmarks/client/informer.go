package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// fleet are informers that run, until stop.
type fleet struct {
	running sync.WaitGroup
	cancel  context.CancelFunc
	ctx     context.Context
}

func newFleet(ctx context.Context) *fleet {
	ctx, cancel := context.WithCancel(ctx)
	return &fleet{ctx: ctx, cancel: cancel}
}

// add makes the task's informer of a source, with its handlers, and runs it.
func (f *fleet) add(
	t Task, source *local.Source, handlers ...sides.Handler[*corev1.ConfigMap],
) (sides.Informer[*corev1.ConfigMap], error) {
	settings := sides.Settings[*corev1.ConfigMap]{Source: source, Example: &corev1.ConfigMap{}}
	return started(f, t, settings, handlers...)
}

// addSmall does the same with small objects and any number of handlers. By namespace they
// are indexed by a function of the program's own, which in the typed form is a typed one.
func (f *fleet) addSmall(t Task, source *local.SmallSource, handlers ...sides.Handler[*local.Small]) (sides.Informer[*local.Small], error) {
	return started(f, t, smallSettings(t.Form, source), handlers...)
}

// smallSettings leave the typed form its own index, which is the same.
func smallSettings(form sides.Form, source local.ListerWatcher) sides.Settings[*local.Small] {
	settings := sides.Settings[*local.Small]{Source: source, Example: &local.Small{}}
	if form != sides.TypedInformer {
		settings.ByNamespace = local.ByNamespace
	}
	return settings
}

func started[T sides.Object](f *fleet, t Task, settings sides.Settings[T], handlers ...sides.Handler[T]) (sides.Informer[T], error) {
	informer, err := sides.NewInformer(t.Side, t.Form, settings)
	if err != nil {
		return nil, err
	}
	for _, handler := range handlers {
		if err := informer.Handle(handler, t.Delivery); err != nil {
			return nil, err
		}
	}
	f.running.Go(func() { informer.Run(f.ctx) })
	return informer, nil
}

// stop ends all informers and waits for them.
func (f *fleet) stop() {
	f.cancel()
	f.running.Wait()
}

// synced waits for the informer's first list.
func (f *fleet) synced(informer interface{ Synced() <-chan struct{} }) error {
	return f.wait(informer.Synced(), "the first list")
}

// wait waits for a channel that is closed, or sent to, when it has happened.
func (f *fleet) wait(happened <-chan struct{}, what string) error {
	select {
	case <-happened:
		return nil
	case <-f.ctx.Done():
		return fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
	}
}

// lookPause is how often it is looked whether something has happened, where nobody tells.
const lookPause = 20 * time.Microsecond

// until looks until something has happened.
func (f *fleet) until(happened func() bool, what string) error {
	for !happened() {
		if f.ctx.Err() != nil {
			return fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
		}
		time.Sleep(lookPause)
	}
	return nil
}

// stored waits until the store has object 0 at a version.
func (f *fleet) stored(informer sides.Informer[*corev1.ConfigMap], version string) error {
	return f.until(func() bool {
		object := informer.Get(local.Key(0))
		return object != nil && object.ResourceVersion == version
	}, "the last change")
}
