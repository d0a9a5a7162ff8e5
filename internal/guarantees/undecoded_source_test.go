package guarantees

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// undecodedObject stands for an object that could not be decoded, as a source returns it.
type undecodedObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	decodeError func() error
}

func (u *undecodedObject) DecodeError() error { return u.decodeError() }

func (u *undecodedObject) DeepCopyObject() apiruntime.Object { return u }

// newUndecoded returns an undecodable object of which only the identity was readable.
func newUndecoded(o *object) *undecodedObject {
	return &undecodedObject{
		TypeMeta: o.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		decodeError: func() error { return errBoom },
	}
}

// badDecoder is a source that fails to decode bad objects.
type badDecoder struct {
	*cachetest.Source
	fail func(any) error
}

func (d *badDecoder) decode(obj apiruntime.Object) apiruntime.Object {
	if o, ok := obj.(*object); ok && isBad(o) {
		u := newUndecoded(o)
		u.decodeError = func() error { return d.fail(o) }
		return u
	}
	return obj
}

func (d *badDecoder) ListWithContext(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
	list, err := d.Source.ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	version, token, err := listMetadata(list)
	if err != nil {
		return nil, err
	}
	decoded := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: token}}
	return decoded, eachItem(list, func(item apiruntime.Object) error {
		decoded.Items = append(decoded.Items, d.decode(item))
		return nil
	})
}

func (d *badDecoder) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	sent, err := d.Source.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &decodedWatch{Interface: sent, events: make(chan watch.Event), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer close(w.events)
		for event := range sent.ResultChan() {
			event.Object = d.decode(event.Object)
			select {
			case w.events <- event:
			case <-ctx.Done():
			}
		}
	}()
	return w, nil
}

// decodedWatch is the watch of a badDecoder.
type decodedWatch struct {
	watch.Interface
	events chan watch.Event
	done   chan struct{}
}

func (w *decodedWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *decodedWatch) Stop() {
	w.Interface.Stop()
	<-w.done
}
