package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// tap is between a reflector and its source. It numbers each passing object (its receipt) and each
// failure, and records requests. Otherwise it only changes the types of lists that must be wrong
// (wrong_type.go), and refuses the first watch after an outage (see World.outages).
type tap struct {
	source cache.ListerWatcherWithContext
	client *Client
	// namespace is that of its source; empty is all.
	namespace string

	mu       sync.Mutex
	requests []*Request
	// lost is the number of next events to lose.
	lost atomic.Int64
	// outages is the number of the world's outages that this reflector has noticed.
	outages int64
	// listing is the list of which another page may be requested.
	listing *Request
	faults  []*Fault
	// pages are the further pages of lists.
	pages []*Request
	// newest is the newest version that it has passed on.
	newest uint64
	// listsHaveVersions is true once it has passed on a list with a version, streamed or not. Until
	// then a list without one may be that of a source that has none (B32).
	listsHaveVersions bool
	// waits are the pauses that failures with a Retry-After began.
	waits []Wait
}

// numberedError is an error of the source's that can be distinguished from all others.
type numberedError struct {
	number int
	err    error
}

func (n *numberedError) Error() string { return fmt.Sprintf("%v %s", n.err, FaultMark(n.number)) }
func (n *numberedError) Unwrap() error { return n.err }

// FaultMark is the part of an error text that tells a failure from all others.
func FaultMark(number int) string { return fmt.Sprintf("[fault %d]", number) }

// IsWatchListSemanticsUnSupported passes on what the source says of itself.
func (t *tap) IsWatchListSemanticsUnSupported() bool {
	marker, ok := t.source.(interface{ IsWatchListSemanticsUnSupported() bool })
	return !ok || marker.IsWatchListSemanticsUnSupported()
}

// List implements cache.Lister. A reflector prefers the form with a context.
func (t *tap) List(options metav1.ListOptions) (runtime.Object, error) {
	return t.ListWithContext(context.Background(), options)
}

// Watch implements cache.Watcher.
func (t *tap) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return t.WatchWithContext(context.Background(), options)
}

func (t *tap) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	defer t.client.owner.BeginSource("List")()
	if isOfCaller(ctx) {
		list, err := t.source.ListWithContext(ctx, options)
		for _, item := range itemsOf(list) {
			t.client.StampForCaller(item)
		}
		return list, err
	}
	request := t.begin(true, options)
	defer t.noteAbandoned(ctx, request)()
	if t.isForbidden() {
		return nil, t.failed(ctx, request, errForbidden())
	}
	list, err := t.source.ListWithContext(ctx, options)
	if err != nil {
		return nil, t.failed(ctx, request, err)
	}
	things, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return list, nil
	}
	things.ListMeta = t.listMeta(request, things.ListMeta)
	if request.wholeList().isEmptied {
		things.Items = nil
	}
	for _, item := range itemsOf(things) {
		t.stamp(item)
	}
	t.client.world.recorder.listed(t, things)
	list = t.listOfWrongType(request, things)
	t.answeredList(ctx, request, things.ListMeta)
	return list, nil
}

// answeredList notes that a page was answered.
func (t *tap) answeredList(ctx context.Context, request *Request, page metav1.ListMeta) {
	t.client.note("list of %s answered: version %s continue %v",
		t.client.Name, page.ResourceVersion, page.Continue != "")
	t.answered(request, page.Continue != "")
	if page.Continue == "" {
		t.endBadList(ctx, request)
	}
}

func itemsOf(list runtime.Object) []*Object {
	things, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return nil
	}
	items := make([]*Object, len(things.Items))
	for i := range things.Items {
		items[i] = &things.Items[i]
	}
	return items
}

func (t *tap) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	defer t.client.owner.BeginSource("Watch")()
	if isOfCaller(ctx) {
		return t.source.WatchWithContext(ctx, options)
	}
	request := t.begin(false, options)
	if t.noticesOutage() {
		return nil, t.failed(ctx, request, cachetest.ErrConnectionRefused())
	}
	if t.isForbidden() {
		return nil, t.failed(ctx, request, errForbidden())
	}
	if t.client.world.Proxy.areWatchesRefused() {
		return nil, t.failed(ctx, request, errNotAllowed())
	}
	if empty, limit := t.client.world.Proxy.emptyWatch(options); empty != nil {
		t.client.note("%s is sent nothing, since its version is forgotten", t.client.Name)
		t.answered(request, true)
		return newTappedWatch(ctx, t, request, empty, limit), nil
	}
	source, err := t.source.WatchWithContext(ctx, options)
	if err != nil {
		return nil, t.failed(ctx, request, err)
	}
	if t.noticesOutage() { // while it hung
		source.Stop()
		return nil, t.failed(ctx, request, cachetest.ErrConnectionRefused())
	}
	t.answered(request, true)
	return newTappedWatch(ctx, t, request, source, watchLimit{}), nil
}

// tapOfItems is the tap of a source that lists item by item.
type tapOfItems struct{ *tap }

func (t tapOfItems) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(metav1.ListMeta, runtime.Object) error) (metav1.ListMeta, error) {
	defer t.client.owner.BeginSource("ListItems")()
	if isOfCaller(ctx) {
		return t.source.(cache.ItemLister).ListItems(ctx, options, func(list metav1.ListMeta, item runtime.Object) error {
			t.client.StampForCaller(objectOf(item))
			return take(list, item)
		})
	}
	request := t.begin(true, options)
	defer t.noteAbandoned(ctx, request)()
	if t.isForbidden() {
		return metav1.ListMeta{}, t.failed(ctx, request, errForbidden())
	}
	var refused error
	page := t.client.world.recorder.page(t.tap)
	list, err := t.source.(cache.ItemLister).ListItems(ctx, options, func(list metav1.ListMeta, item runtime.Object) error {
		if request.wholeList().isEmptied {
			return nil
		}
		list = t.listMeta(request, list)
		if o := objectOf(item); o != nil {
			t.stamp(o)
		}
		page.item(item)
		refused = take(list, t.itemOfWrongType(request, item))
		return refused
	})
	switch {
	case refused != nil && errors.Is(err, refused):
		t.answered(request, false)
	case err != nil:
		err = t.failed(ctx, request, err)
	default:
		list = t.listMeta(request, list)
		page.end(list)
		t.answeredList(ctx, request, list)
	}
	return list, err
}

// noticesOutage says whether the source has been away since it was last asked for a watch.
func (t *tap) noticesOutage() bool {
	now := t.client.world.outages.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	met := now > t.outages
	t.outages = now
	return met
}

// begin records a request. Further pages of a list are no requests, unless they fail.
func (t *tap) begin(list bool, options metav1.ListOptions) *Request {
	t.client.note("%s asks: list=%v version=%q match=%q limit=%d continue=%v streaming=%v",
		t.client.Name, list,
		options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue != "", options.SendInitialEvents != nil)
	t.client.world.recorder.asked(t, list, options)
	request := t.record(list, options)
	t.proxyList(request)
	return request
}

// record adds a request to the record.
func (t *tap) record(list bool, options metav1.ListOptions) *Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	request := &Request{At: time.Now(), List: list, version: options.ResourceVersion, Endless: options.SendInitialEvents != nil}
	request.Relist = t.client.asked.Load() > 0 && options.ResourceVersion == "" && options.Continue == ""
	request.Check = list && t.isCheckLocked(options)
	t.returnLocked(request)
	if request.Check {
		t.requests = append(t.requests, request)
		return request
	}
	if list && options.Continue != "" && t.listing != nil {
		request.FirstPage = t.listing
		t.pages = append(t.pages, request)
		return request
	}
	if t.listing = nil; list {
		t.listing = request
	}
	if list || options.SendInitialEvents != nil {
		request.Wrong = t.client.world.wrongTypes.Add(-1) >= 0
	}
	request.isStream = options.SendInitialEvents != nil
	if options.TimeoutSeconds != nil {
		request.Timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	t.requests = append(t.requests, request)
	return request
}

// isCheckLocked says whether a list checks the source's version: one beside an open watch, or one of
// a single object at the newest version, which no mirror's pages have.
func (t *tap) isCheckLocked(options metav1.ListOptions) bool {
	isOfVersion := options.Limit == 1 && options.ResourceVersion == "" && options.Continue == ""
	return isOfVersion || t.watchingLocked()
}

// watchingLocked says whether a watch is open.
func (t *tap) watchingLocked() bool {
	return slices.ContainsFunc(t.requests, func(r *Request) bool { return !r.List && r.Open })
}

func (t *tap) answered(request *Request, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request.FirstPage != nil {
		request.Answered = time.Now()
		request = request.FirstPage
	}
	request.Answered, request.Open = time.Now(), open
}

// noteAbandoned notes when the context of a list ends before the source answers.
func (t *tap) noteAbandoned(ctx context.Context, request *Request) (answers func() bool) {
	return context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		request.Abandoned = time.Now()
	})
}

// failed numbers the error of a call.
func (t *tap) failed(ctx context.Context, request *Request, err error) error {
	t.client.world.recorder.refused(t, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	request.Answered, request.Failed, request.Open = time.Now(), true, false
	t.waitLocked(request, err)
	if request.FirstPage != nil {
		request.FirstPage.Open = false
		t.requests = append(t.requests, request)
	}
	number := t.faultLocked(ctx, err)
	return &numberedError{number, err}
}

func (t *tap) faultLocked(ctx context.Context, err error) int {
	number := t.client.nextFault()
	t.faults = append(t.faults, &Fault{Number: number, At: time.Now(), Err: err, Excused: ctx.Err() != nil})
	t.client.note("%s is failed: %v %s", t.client.Name, err, FaultMark(number))
	return number
}

// stamp sets the receipt of an object.
func (t *tap) stamp(o *Object) { SetMark(o, receiptMark, strconv.Itoa(t.client.nextReceipt())) }

// waitLocked notes the Retry-After of a failed request.
func (t *tap) waitLocked(request *Request, err error) {
	seconds, hasDelay := apierrors.SuggestsClientDelay(err)
	if hasDelay && seconds > 0 {
		request.RetryAfter = time.Duration(seconds) * time.Second
		t.waits = append(t.waits, Wait{
			Since:    time.Now(),
			Duration: request.RetryAfter,
			ofCheck:  request.Check,
		})
	}
	request.IsNotAllowed = apierrors.IsMethodNotSupported(err)
}

// returnLocked notes that the next request is made. Only a check follows a check that failed: the
// watch beside it may end for another reason.
func (t *tap) returnLocked(next *Request) {
	for i := range t.waits {
		w := &t.waits[i]
		if w.Until.IsZero() && (next.Check || !w.ofCheck) {
			w.Until = next.At
		}
	}
}

// abandonedVersionChecks says whether checks of the source's version have failed three times. They
// are not made again then (B23).
func (t *tap) abandonedVersionChecks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed := 0
	for _, r := range t.requests {
		if r.Check && r.Failed {
			failed++
		}
	}
	return failed >= 3
}
