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
// *UndecodableObject. With an error there is no list. A reflector calls ListItems instead, which holds one item at a
// time.
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

// ListItems makes one list request and calls take with the list's metadata, as far as known, and each item as soon as
// it has arrived, on the caller's goroutine, in the server's order. While take runs, nothing is read. It returns the
// list's metadata. An item that cannot be decoded is an *UndecodableObject. An error of take ends the call and is
// returned as it is; other errors are those of ListWithContext, and the items before them count.
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
		answer.secrets().clean(&refused.ErrStatus)
		answer.complete(&refused.ErrStatus)
		return header, lw.collection.failure(verbList, refused)
	}
	return header, lw.failed(ctx, answer, verbList, err)
}

// listing is one body of a list on its way to the receiver of its items.
type listing struct {
	*ListerWatcher
	answer *answer
	meter  *meter
	body   wire.List
	take   func(metav1.ListMeta, runtime.Object) error
	// said is what the list has said it is, if that is what was asked for.
	said metav1.TypeMeta
	// objects counts those of the list so far, earlier pages included.
	objects  int
	nameless int
	// waiting are items whose type is not known yet, each as the length (a varint) and the bytes, since decoded they would be
	// several times as large. held is the number of their bytes, firstWaiting the number of the first.
	waiting      []byte
	held         int
	firstWaiting int
	// malformed counts items that are not even well-formed and do not say for sure whose they
	// are, and doubted is the error of the first one that was not met before.
	malformed int
	doubted   error
}

// mostDamagedItems is how many malformed items of a list may have been damaged on their way. A
// server that sends more of them means them.
const mostDamagedItems = 8

// takersError is an error of the receiver of the items: it is returned as it is.
type takersError struct{ err error }

func (e *takersError) Error() string { return e.err.Error() }

func (l *listing) run(ctx context.Context) error {
	for {
		// What has been read before the context ended may hold many more items.
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := l.body.Next()
		if err != nil && err != io.EOF {
			return explained(err)
		}
		// What a list is may come behind its items, and is known at the end.
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

// takeItem decodes an item and passes it on, if it can be said what it is.
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

// doubtItem notes an item that could not be decoded if its bytes are not even well-formed, and
// may have been damaged on their way where they say whose they are.
func (l *listing) doubtItem(raw []byte, number int, err error) {
	if !errors.Is(err, ErrMalformed) || errors.As(err, new(*otherTypeError)) || l.answer.encoding.Intact(raw, l.limits.wire()) {
		return
	}
	if id := l.answer.encoding.Identify(raw); id.Name != "" && (id.Namespace != "" || l.namespace != "") {
		return // it is quarantined under its name
	}
	l.malformed++
	if l.malformed <= mostDamagedItems && l.ListerWatcher.doubts.doubt(raw, false) && l.doubted == nil {
		l.doubted = fmt.Errorf("item %d of the list: %w", number, err)
	}
}

// damage is the error of a list that is to be asked for again, as some of its items may have been
// damaged. Whatever they were would count as absent, and be deleted. Those that come the same again are what the server sends.
func (l *listing) damage() error {
	if l.malformed > mostDamagedItems {
		return nil
	}
	return l.doubted
}

// takeWaiting passes on the items that had to wait for the list to say what they are.
// With API servers none does: either the list says it before the items, or the items say
// it themselves.
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

// impliedBy is what the items of a list are if they do not say it. A v1 List mixes
// kinds, and its items carry their own. In CBOR a list's kind comes before its items and
// its version after them: until then it is assumed to be the one that was asked for.
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
