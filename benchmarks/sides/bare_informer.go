package sides

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/benchmarks/local"
)

// barePage is how many objects the floor asks for at once, as the others do.
const barePage = 500

// bareInformer is the least that mirrors a source: one goroutine that lists, watches,
// writes a map, and calls the handlers itself. It has no index, nobody may read it while
// it runs, an error ends it, and a handler holds it up.
type bareInformer[T Object] struct {
	source   local.ListerWatcher
	handlers []Handler[T]
	objects  map[string]T
	synced   chan struct{}
}

func newBareInformer[T Object](settings Settings[T]) *bareInformer[T] {
	return &bareInformer[T]{source: settings.Source, objects: map[string]T{}, synced: make(chan struct{})}
}

// Handle must be called before Run.
func (b *bareInformer[T]) Handle(handler Handler[T], _ Delivery) error {
	b.handlers = append(b.handlers, handler)
	return nil
}

func (b *bareInformer[T]) Synced() <-chan struct{} { return b.synced }

// Get is for when nothing changes any more.
func (b *bareInformer[T]) Get(key string) T { return b.objects[key] }

// Run panics where anything but the context ends it: a floor without a source is no floor.
func (b *bareInformer[T]) Run(ctx context.Context) {
	if err := b.run(ctx); err != nil && ctx.Err() == nil {
		panic(err)
	}
}

func (b *bareInformer[T]) run(ctx context.Context) error {
	for first := true; ; first = false {
		if err := b.list(ctx); err != nil {
			return err
		}
		if first {
			close(b.synced)
		}
		w, err := b.source.WatchWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = b.follow(ctx, w)
		w.Stop()
		if err != nil {
			return err
		}
	}
}

func (b *bareInformer[T]) list(ctx context.Context) error {
	for options := (metav1.ListOptions{Limit: barePage}); ; {
		page, err := b.source.ListWithContext(ctx, options)
		if err != nil {
			return err
		}
		// A copy of each, or one that stays holds on to the page.
		err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error { return b.put(item) })
		if err != nil {
			return err
		}
		about, err := meta.ListAccessor(page)
		if err != nil || about.GetContinue() == "" {
			return err
		}
		options.Continue = about.GetContinue()
	}
}

// follow returns without an error when the watch has expired.
func (b *bareInformer[T]) follow(ctx context.Context, w watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-w.ResultChan():
			switch {
			case !ok:
				return errors.New("the watch ended")
			case event.Type == watch.Error:
				return nil
			}
			if err := b.put(event.Object); err != nil {
				return err
			}
		}
	}
}

func (b *bareInformer[T]) put(item runtime.Object) error {
	object, ok := item.(T)
	if !ok {
		return fmt.Errorf("%T came", item)
	}
	key := object.GetNamespace() + "/" + object.GetName()
	old, known := b.objects[key]
	if known && old.GetResourceVersion() == object.GetResourceVersion() && old.GetUID() == object.GetUID() {
		return nil
	}
	b.objects[key] = object
	for _, handler := range b.handlers {
		tell := handler.Add
		if known {
			tell = handler.Update
		}
		if tell != nil {
			tell(object)
		}
	}
	return nil
}
