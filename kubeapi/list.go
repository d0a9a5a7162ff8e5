package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// List is ListWithContext with a context that never ends.
func (lw *ListerWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// ListWithContext makes one list request and answers a *internalversion.List with the
// list's own metadata (version, continue token, count of remaining items) and never-nil
// Items; its type is what the server says. It blocks until the whole body is there,
// fails soon after the context ends, and keeps nothing of what it returns. An item
// that could not be decoded is an *UndecodedObject among the others. The package
// documentation says what the errors are; with an error there is no list, not even a
// part of it.
//
// A reflector calls ListItems instead, which holds one item at a time.
func (lw *ListerWatcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &internalversion.List{Items: []runtime.Object{}}
	header, err := lw.list(ctx, options, func(_ metav1.ListMeta, item runtime.Object) error {
		list.Items = append(list.Items, item)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list.TypeMeta, list.ListMeta = header.TypeMeta, header.ListMeta
	return list, nil
}

// ListItems makes one list request and calls take with each item as soon as it has
// arrived, on the caller's goroutine, in the server's order; with it goes what the list
// has said of itself by then, which may be nothing. It returns the list's metadata when
// everything has been taken and the body was read to its end. Nothing is kept of an
// item; while take runs, nothing is read. An item that could not be decoded is taken as
// an *UndecodedObject.
//
// An error of take ends the call and is returned as it is. The others are those of
// ListWithContext; what has been taken before one of them is a part of the list.
func (lw *ListerWatcher) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error) {
	header, err := lw.list(ctx, options, take)
	return header.ListMeta, err
}

func (lw *ListerWatcher) list(ctx context.Context, options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error) (wire.Header, error) {
	answer, err := lw.send(ctx, verbList, options)
	if err != nil {
		return wire.Header{}, err
	}
	defer answer.release()
	listing := &listing{
		ListerWatcher: lw,
		encoding:      answer.encoding,
		body:          answer.encoding.List(answer.reader(), lw.limits.wire()),
		objects:       lw.counted.upTo(options.Continue),
		take:          take,
	}
	err = listing.run(ctx)
	header := listing.body.Header()
	lw.counted.note(header.Continue, listing.objects)
	var own *takersError
	switch {
	case err == nil:
		return header, nil
	case errors.As(err, &own):
		return header, own.err
	}
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return header, refused
	}
	return header, lw.failed(ctx, answer, verbList, err)
}

// listing is one body of a list on its way to whoever takes its items.
type listing struct {
	*ListerWatcher
	encoding wire.Encoding
	body     wire.List
	take     func(metav1.ListMeta, runtime.Object) error
	// objects counts those of the list so far, earlier pages included.
	objects int
	// untyped are items that do not say what they are, in a list that has not said it
	// yet.
	untyped []*unstructured.Unstructured
}

// takersError is an error of whoever takes the items: it is returned as it is.
type takersError struct{ err error }

func (e *takersError) Error() string { return e.err.Error() }

func (l *listing) run(ctx context.Context) error {
	for {
		// What has been read before the context ended may hold many more items.
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := l.body.Next()
		if err == io.EOF {
			return l.takeUntyped()
		}
		if err != nil {
			return explained(err)
		}
		if l.objects++; l.limits.Objects > 0 && l.objects > l.limits.Objects {
			return &LimitError{Limit: "Objects", Value: l.limits.Objects}
		}
		if err := l.takeItem(raw); err != nil {
			return err
		}
	}
}

// takeItem decodes an item and passes it on, if it can be said what it is.
func (l *listing) takeItem(raw []byte) error {
	var implied metav1.TypeMeta
	header := l.body.Header()
	// In CBOR the kind of a list comes before its items, and its version after them.
	said := header.Kind != "" && header.APIVersion != ""
	if said {
		implied = impliedBy(header)
	}
	item, err := l.target.decode(l.encoding, raw, l.limits.wire(), implied)
	if err != nil {
		return l.pass(undecoded(l.encoding, raw, fmt.Errorf("item %d of the list: %w", l.objects, err)))
	}
	if object, ok := item.(*unstructured.Unstructured); ok && !said && object.GetKind() == "" {
		l.untyped = append(l.untyped, object)
		return nil
	}
	return l.pass(item)
}

// takeUntyped passes on the items that had to wait for the list to say what they are.
// API servers need no such wait: either they say it before the items, or the items say
// it themselves.
func (l *listing) takeUntyped() error {
	implied := impliedBy(l.body.Header())
	for _, object := range l.untyped {
		if implied.Kind != "" {
			object.SetAPIVersion(implied.APIVersion)
			object.SetKind(implied.Kind)
		}
		if err := l.pass(object); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) pass(item runtime.Object) error {
	if err := l.take(l.body.Header().ListMeta, item); err != nil {
		return &takersError{err}
	}
	return nil
}

// impliedBy is what the items of a list are if they do not say it. A v1 List mixes
// kinds, and its items carry their own.
func impliedBy(list wire.Header) metav1.TypeMeta {
	kind := strings.TrimSuffix(list.Kind, "List")
	if kind == "" || kind == list.Kind {
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{APIVersion: list.APIVersion, Kind: kind}
}
