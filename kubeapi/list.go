package kubeapi

import (
	"context"
	"encoding/binary"
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

// ListWithContext makes one list request and returns an *internalversion.List with the list's metadata and non-nil
// Items. It blocks until the whole body has arrived or the context ends. An item that cannot be decoded is an
// *UndecodableObject. On an error the list is nil. A reflector calls ListItems instead, which holds one item at a time.
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

// ListItems makes one list request and calls take for each item as soon as it has arrived, on the caller's goroutine,
// in the server's order, with the list's metadata as far as it is known. While take runs, nothing is read. It returns
// the list's metadata. An item that cannot be decoded is an *UndecodableObject. An error of take ends the call and is
// returned unchanged; other errors are those of ListWithContext, and items before an error are valid.
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
	meter := newMeter(answer.reader(), lw.limits.ItemBytes)
	listing := &listing{
		ListerWatcher: lw,
		answer:        answer,
		meter:         meter,
		body:          answer.encoding.List(meter, lw.limits.wire()),
		objects:       lw.upTo(options.Continue),
		take:          take,
	}
	err = listing.run(ctx)
	header := listing.body.Header()
	lw.counted(header.Continue, listing.objects)
	var own *takersError
	switch {
	case err == nil:
		return header, nil
	case errors.As(err, &own):
		return header, own.err
	}
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		answer.secrets().CleanStatus(&refused.ErrStatus)
		answer.complete(&refused.ErrStatus)
		return header, lw.collection.failure(verbList, refused)
	}
	return header, lw.failed(ctx, answer, verbList, err)
}

// listing reads one list body and passes its items on.
type listing struct {
	*ListerWatcher
	answer *answer
	meter  *meter
	body   wire.List
	take   func(metav1.ListMeta, runtime.Object) error
	// said is the type that the list claims, once checked.
	said metav1.TypeMeta
	// objects counts the objects of the list so far, earlier pages included.
	objects  int
	nameless int
	// waiting has items whose type is not known yet, undecoded to save memory, each as its length (a varint) and its
	// bytes. held is the number of their bytes, firstWaiting the number of the first item.
	waiting      []byte
	held         int
	firstWaiting int
	// malformed counts items that are not well-formed and whose key cannot be read. doubted is the error of the first
	// one that was not seen before.
	malformed int
	doubted   error
}

// mostDamagedItems bounds the malformed items of a list that may be damage in transit. A server that sends more sends
// them on purpose.
const mostDamagedItems = 8

// takersError is an error of take. It is returned unchanged.
type takersError struct{ err error }

func (e *takersError) Error() string { return e.err.Error() }

func (l *listing) run(ctx context.Context) error {
	for {
		// The decoder may have many more items buffered after the context ended.
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := l.body.Next()
		if err != nil && err != io.EOF {
			return explained(err)
		}
		// The list's type may come after its items.
		if said := l.body.Header().TypeMeta; said != l.said {
			if mismatch := l.target.listMismatch(said); mismatch != nil {
				return mismatch
			}
			l.said = said
		}
		if err == io.EOF {
			if err := l.takeWaiting(ctx); err != nil {
				return err
			}
			return l.damage()
		}
		l.meter.allow(len(raw))
		if l.objects++; l.limits.Objects > 0 && l.objects > l.limits.Objects {
			return &LimitError{Limit: "Objects", Value: l.limits.Objects}
		}
		if err := l.takeItem(raw); err != nil {
			return err
		}
	}
}

// takeItem decodes an item and passes it on. If neither the item nor the list has a type yet, the item waits.
func (l *listing) takeItem(raw []byte) error {
	if len(l.waiting) > 0 {
		return l.wait(raw)
	}
	item := l.decode(raw, l.objects)
	if object, ok := item.(*unstructured.Unstructured); ok && l.body.Header().Kind == "" && saysNothing(object) {
		l.firstWaiting = l.objects
		return l.wait(raw)
	}
	return l.pass(item)
}

func (l *listing) decode(raw []byte, number int) runtime.Object {
	item, err := l.target.decode(l.answer.encoding, raw, l.limits.wire(), l.impliedBy(l.body.Header()))
	if err != nil {
		l.doubtItem(raw, number, err)
		return l.undecoded(l.answer, raw, fmt.Sprintf("item %d of the list", number), err)
	}
	l.dropManagedFields(l.answer.encoding, raw, item)
	return item
}

// wait keeps an item until the end of the list.
func (l *listing) wait(raw []byte) error {
	if l.held += len(raw); l.held > l.limits.ItemBytes {
		return fmt.Errorf("items that do not say what they are, in a list that has not said it: %w", &LimitError{Limit: "ItemBytes", Value: l.limits.ItemBytes})
	}
	l.waiting = binary.AppendUvarint(l.waiting, uint64(len(raw)))
	l.waiting = append(l.waiting, raw...)
	return nil
}

// doubtItem records an item whose bytes are not well-formed and whose key cannot be read: it may have been damaged in
// transit.
func (l *listing) doubtItem(raw []byte, number int, err error) {
	if !errors.Is(err, ErrMalformed) || errors.As(err, new(*otherTypeError)) || l.answer.encoding.Intact(raw, l.limits.wire()) {
		return
	}
	if id := l.answer.encoding.Identify(raw); id.Name != "" && (id.Namespace != "" || l.namespace != "") {
		return // it is quarantined under its key
	}
	l.malformed++
	if l.malformed <= mostDamagedItems && l.ListerWatcher.doubts.doubt(raw, false) && l.doubted == nil {
		l.doubted = fmt.Errorf("item %d of the list: %w", number, err)
	}
}

// damage returns an error if the list must be requested again because items may have been damaged. Otherwise the
// unknown objects would count as absent and be deleted. Items that arrive again unchanged are what the server sends.
func (l *listing) damage() error {
	if l.malformed > mostDamagedItems {
		return nil
	}
	return l.doubted
}

// takeWaiting passes on the items that waited for the list's type. API servers cause no such wait: the type precedes
// the items, or each item has its own.
func (l *listing) takeWaiting(ctx context.Context) error {
	for number, rest := l.firstWaiting, l.waiting; len(rest) > 0; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		length, n := binary.Uvarint(rest)
		end := n + int(length)
		if err := l.pass(l.decode(rest[n:end], number)); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

func (l *listing) pass(item runtime.Object) error {
	if err := countNameless(&l.nameless, item); err != nil {
		return err
	}
	if err := l.take(l.body.Header().ListMeta, item); err != nil {
		return &takersError{err}
	}
	return nil
}

// impliedBy returns the type of items that carry none. The items of a v1 List are of several kinds and carry their own.
// In CBOR a list's kind precedes its items and its apiVersion follows them; until then the requested version is
// assumed.
func (l *listing) impliedBy(list wire.Header) metav1.TypeMeta {
	kind := strings.TrimSuffix(list.Kind, "List")
	if kind == "" || kind == list.Kind {
		return metav1.TypeMeta{}
	}
	if list.APIVersion == "" {
		list.APIVersion = l.version.String()
	}
	return metav1.TypeMeta{APIVersion: list.APIVersion, Kind: kind}
}
