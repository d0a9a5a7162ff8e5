package sides

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// drain receives events from either side's watch until there were enough, or until the
// end of the initial events. What an event holds is looked at as little as can be: that
// it is a pod, by its name.
func drain(ctx context.Context, w watch.Interface, enough int) (int, error) {
	defer w.Stop()
	for n := 0; n < enough; {
		var event watch.Event
		select {
		case <-ctx.Done():
			return n, fmt.Errorf("after %d events: %w", n, ctx.Err())
		case received, ok := <-w.ResultChan():
			if !ok {
				return n, fmt.Errorf("the watch ended after %d events of %d", n, enough)
			}
			event = received
		}
		switch event.Type {
		case watch.Error:
			return n, fmt.Errorf("after %d events: %w", n, apierrors.FromObject(event.Object))
		case watch.Bookmark:
			about, err := meta.Accessor(event.Object)
			if err == nil && about.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				return n, nil
			}
		default:
			if err := named(event.Object); err != nil {
				return n, fmt.Errorf("event %d: %w", n, err)
			}
			n++
		}
	}
	return enough, nil
}

// named says whether something was decoded at all.
func named(object any) error {
	if undecoded, ok := object.(interface{ DecodeError() error }); ok {
		return undecoded.DecodeError()
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if about.GetName() == "" {
		return fmt.Errorf("%T without a name", object)
	}
	return nil
}
