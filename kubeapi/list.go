package kubeapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// List is ListWithContext with a context that never ends.
func (lw *ListerWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// ListWithContext makes one list request and returns an *internalversion.List with the list's
// metadata and non-nil Items. It blocks until the whole body has arrived or the context ends. An
// item that cannot be decoded is an *UndecodableObject. On an error the list is nil. A reflector
// calls ListItems instead, which holds one item at a time.
func (lw *ListerWatcher) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	list := &internalversion.List{Items: []runtime.Object{}}
	header, err := lw.list(ctx, options, func(_ metav1.ListMeta, item runtime.Object) error {
		list.Items = append(list.Items, item)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list.TypeMeta = header.TypeMeta
	list.ListMeta = header.ListMeta
	return list, nil
}

// ListItems makes one list request and calls take for each item as soon as it has arrived, on the
// caller's goroutine, in the server's order, with the list's metadata as far as it is known. While
// take runs, nothing is read. It returns the list's metadata. An item that cannot be decoded is an
// *UndecodableObject. An error of take ends the call and is returned unchanged; other errors are
// those of ListWithContext, and items before an error are valid.
func (lw *ListerWatcher) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error) {
	header, err := lw.list(ctx, options, take)
	return header.ListMeta, err
}

func (lw *ListerWatcher) list(ctx context.Context, options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error) (wire.Header, error) {
	response, err := lw.send(ctx, verbList, options)
	if err != nil {
		return wire.Header{}, err
	}
	defer response.release()
	limiter := newBodyLimiter(response.reader(), lw.limits.ItemBytes)
	listing := &listing{
		ListerWatcher: lw,
		response:      response,
		limiter:       limiter,
		decoder:       response.encoding.List(limiter, lw.limits.wire()),
		objects:       lw.objectsBefore(options.Continue),
		take:          take,
	}
	err = listing.run(ctx)
	header := listing.decoder.Header()
	lw.setObjectsBefore(header.Continue, listing.objects)
	var fromCallback *callbackError
	switch {
	case err == nil:
		return header, nil
	case errors.As(err, &fromCallback):
		return header, fromCallback.err
	}
	if statusErr, ok := errors.AsType[*apierrors.StatusError](err); ok {
		response.secrets().CleanStatus(&statusErr.ErrStatus)
		response.completeStatus(&statusErr.ErrStatus)
		return header, lw.collection.wrapError(verbList, statusErr)
	}
	return header, lw.callError(ctx, response, verbList, err)
}

// listing reads one list body and passes its items on.
type listing struct {
	*ListerWatcher
	response *response
	limiter  *bodyLimiter
	decoder  wire.List
	take     func(metav1.ListMeta, runtime.Object) error
	// checkedType is the type that the list claims, once checked.
	checkedType metav1.TypeMeta
	// objects counts the objects of the list so far, earlier pages included.
	objects  int
	nameless int
	// pending has items whose type is not known yet, undecoded to save memory, each as its length
	// (a varint) and its bytes. pendingBytes is the sum of the lengths, firstPending the number of
	// the first item in the list.
	pending      []byte
	pendingBytes int
	firstPending int
	// malformedItems counts items that are not well-formed and whose key cannot be read. suspectErr
	// is the error of the first one that was not seen before.
	malformedItems int
	suspectErr     error
}

// maxSuspectItems bounds the malformed items of a list that count as damaged in transit. More come
// from the server.
const maxSuspectItems = 8

// callbackError wraps an error of take, which is returned unchanged.
type callbackError struct{ err error }

func (e *callbackError) Error() string { return e.err.Error() }

func (l *listing) run(ctx context.Context) error {
	for {
		// The decoder may have many more items buffered after the context ended.
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := l.decoder.Next()
		if err != nil && err != io.EOF {
			return translateError(err)
		}
		if err := l.checkType(); err != nil {
			return err
		}
		if err == io.EOF {
			return l.complete(ctx)
		}
		l.limiter.allowItem(len(raw))
		l.objects++
		if l.limits.Objects > 0 && l.objects > l.limits.Objects {
			return &LimitError{Limit: "Objects", Value: l.limits.Objects}
		}
		if err := l.processItem(raw); err != nil {
			return err
		}
	}
}

// checkType returns an error if the list claims to hold another type. Its type may come after its
// items.
func (l *listing) checkType() error {
	claimed := l.decoder.Header().TypeMeta
	if claimed == l.checkedType {
		return nil
	}
	if err := l.target.checkListType(claimed); err != nil {
		return err
	}
	if l.knownType.contradicts(claimed, l.resource.Resource) {
		if !l.knownType.recordOther(claimed.Kind, time.Now()) {
			return &wrongTypeError{
				printableType(claimed) + " in place of a list of " + l.resource.String(),
			}
		}
	}
	l.checkedType = claimed
	return nil
}

// complete checks the list after its end, and passes on what was kept until then.
func (l *listing) complete(ctx context.Context) error {
	header := l.decoder.Header()
	if !l.decoder.HasItems() && header.ResourceVersion == "" {
		return translateError(
			&wire.NotListError{Kind: apiclient.Printable(header.Kind, maxForeignText)})
	}
	l.knownType.set(l.defaultItemType(header))
	if err := l.passPending(ctx); err != nil {
		return err
	}
	return l.damageError()
}

// processItem decodes an item and passes it on. If neither the item nor the list has a type yet,
// the item becomes pending.
func (l *listing) processItem(raw []byte) error {
	if len(l.pending) > 0 {
		return l.addPending(raw)
	}
	item := l.decode(raw, l.objects)
	if l.decoder.Header().Kind == "" && l.target.lacksType(item) {
		l.firstPending = l.objects
		return l.addPending(raw)
	}
	return l.passItem(item)
}

func (l *listing) decode(raw []byte, number int) runtime.Object {
	item, err := l.target.decode(
		l.response.encoding, raw, l.limits.wire(), l.defaultItemType(l.decoder.Header()))
	if err != nil {
		l.suspectItem(raw, number, err)
		return l.newUndecodable(l.target, l.response, raw, fmt.Sprintf("item %d of the list", number), err)
	}
	l.dropManagedFields(l.response.encoding, raw, item)
	l.target.recordType(&l.knownType, item)
	return item
}

// addPending keeps an item until the end of the list.
func (l *listing) addPending(raw []byte) error {
	l.pendingBytes += len(raw)
	if l.pendingBytes > l.limits.ItemBytes {
		return fmt.Errorf(
			"items without a kind in a list without a kind: %w",
			&LimitError{Limit: "ItemBytes", Value: l.limits.ItemBytes})
	}
	l.pending = binary.AppendUvarint(l.pending, uint64(len(raw)))
	l.pending = append(l.pending, raw...)
	return nil
}

// suspectItem records an item whose bytes are not well-formed and whose key cannot be read: it may
// have been damaged in transit.
func (l *listing) suspectItem(raw []byte, number int, err error) {
	if !errors.Is(err, ErrMalformed) || errors.As(err, new(*wrongTypeError)) ||
		l.response.encoding.Intact(raw, l.limits.wire()) {
		return
	}
	id := l.response.encoding.Identify(raw)
	if id.Name != "" && (id.Namespace != "" || l.namespace != "") {
		return // it is quarantined under its key
	}
	l.malformedItems++
	isSuspect := l.malformedItems <= maxSuspectItems &&
		l.ListerWatcher.suspects.suspect(raw, false)
	if isSuspect && l.suspectErr == nil {
		l.suspectErr = fmt.Errorf("item %d of the list: %w", number, err)
	}
}

// damageError returns an error if the list must be requested again because items may have been
// damaged. Otherwise the unknown objects would count as absent and be deleted. Items that arrive
// again unchanged are what the server sends.
func (l *listing) damageError() error {
	if l.malformedItems > maxSuspectItems {
		return nil
	}
	return l.suspectErr
}

// passPending passes on the pending items. API servers cause none: the type precedes the items, or
// each item has its own.
func (l *listing) passPending(ctx context.Context) error {
	for number, rest := l.firstPending, l.pending; len(rest) > 0; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		length, n := binary.Uvarint(rest)
		end := n + int(length)
		if err := l.passItem(l.decode(rest[n:end], number)); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

func (l *listing) passItem(item runtime.Object) error {
	if err := countNameless(&l.nameless, item); err != nil {
		return err
	}
	if err := l.take(l.decoder.Header().ListMeta, item); err != nil {
		return &callbackError{err}
	}
	return nil
}

// defaultItemType returns the type of items that carry none. The items of a v1 List are of several
// kinds and carry their own. In CBOR a list's kind precedes its items and its apiVersion follows
// them; until then the requested version is assumed.
func (l *listing) defaultItemType(header wire.Header) metav1.TypeMeta {
	kind := strings.TrimSuffix(header.Kind, "List")
	if kind == "" || kind == header.Kind {
		return metav1.TypeMeta{}
	}
	if header.APIVersion == "" {
		header.APIVersion = l.version.String()
	}
	return metav1.TypeMeta{APIVersion: header.APIVersion, Kind: kind}
}
