package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// tap is between a reflector and its source. It numbers each passing object (its receipt) and each
// failure, and records requests. Otherwise it only changes the types of lists that must be wrong
// (wrong_type.go), and refuses the first watch after an outage (see world.outages).
type tap struct {
	source cache.ListerWatcherWithContext
	mirror *mirror
	// namespace is that of its source; empty is all.
	namespace string

	mu       sync.Mutex
	requests []*request
	// lost is the number of next events to lose.
	lost atomic.Int64
	// outages is the number of the world's outages that this reflector has noticed.
	outages int64
	// listing is the list of which another page may be requested.
	listing *request
	faults  []*fault
	// pages are the further pages of lists.
	pages []*request
	// newest is the newest version that it has passed on.
	newest uint64
	// listsHaveVersions is true once it has passed on a list with a version, streamed or not. Until
	// then a list without one may be that of a source that has none (B32).
	listsHaveVersions bool
	// waitsSince is when a request failed with a Retry-After, until the next request.
	waitsSince time.Time
	waitsFor   time.Duration
}

// request is one request of a reflector: a call of List, all pages that were answered of
// one list, or a call of Watch.
type request struct {
	at, answered time.Time
	list         bool
	ended        time.Time // of a watch that was opened
	events       int
	// version is the requested one. moved: a watch sent an event of another version.
	version string
	moved   bool
	// timeout is the requested timeout of a watch.
	timeout time.Duration
	// failed: the response was an error, or its stream had one.
	failed bool
	// isStream: a streaming list.
	isStream bool
	// endless: a streaming list whose final bookmark has not been sent.
	endless bool
	// open: a watch that was opened, or a list that has more pages.
	open bool
	// firstPage is the list that a further page belongs to. A page that is answered is part of
	// that, one that fails is a request of its own.
	firstPage *request
	// wrong: the objects of a list, streamed or not, are all of another type; items counts
	// those of a wrong one.
	wrong bool
	items int
	// relist: a list or stream at "" while callers of Fresh or Verify wait, which may have caused it.
	relist bool
	// check: a list beside an open watch that checks the source's version.
	check bool
	// behind: a list whose version is behind its items, by at most so many versions (B31).
	behind uint64
	// versionless: a list without a version (B32), and without items if isEmptied.
	versionless bool
	isEmptied   bool
	// retryAfter is the Retry-After of its failure.
	retryAfter time.Duration
	// isNotAllowed: a watch of a source that can only be listed.
	isNotAllowed bool
	// stopped: a watch that the reflector has ended.
	stopped bool
}

// fault is a failure that the reflector must report.
type fault struct {
	number int
	at     time.Time
	err    error
	// cause is the cause of a list that was answered and has failed all the same.
	cause cache.Cause
	// excused: its context had ended.
	excused bool
}

// numberedError is an error of the source's that can be distinguished from all others.
type numberedError struct {
	number int
	err    error
}

func (n *numberedError) Error() string { return fmt.Sprintf("%v %s", n.err, faultMark(n.number)) }
func (n *numberedError) Unwrap() error { return n.err }

func faultMark(number int) string { return fmt.Sprintf("[fault %d]", number) }

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
	defer t.mirror.calls.beginSource("List")()
	if isOfCaller(ctx) {
		list, err := t.source.ListWithContext(ctx, options)
		for _, item := range itemsOf(list) {
			t.stampForCaller(item)
		}
		return list, err
	}
	request := t.begin(true, options)
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
	t.mirror.world.recorder.listed(t, things)
	list = t.listOfWrongType(request, things)
	t.answeredList(ctx, request, things.ListMeta)
	return list, nil
}

// answeredList notes that a page was answered.
func (t *tap) answeredList(ctx context.Context, request *request, page metav1.ListMeta) {
	t.mirror.note("list of %s answered: version %s continue %v",
		t.mirror.name, page.ResourceVersion, page.Continue != "")
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
	defer t.mirror.calls.beginSource("Watch")()
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
	if empty, limit := t.mirror.world.proxy.emptyWatch(options); empty != nil {
		t.mirror.note("%s is sent nothing, since its version is forgotten", t.mirror.name)
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
	defer t.mirror.calls.beginSource("ListItems")()
	if isOfCaller(ctx) {
		return t.source.(cache.ItemLister).ListItems(ctx, options, func(list metav1.ListMeta, item runtime.Object) error {
			t.stampForCaller(objectOf(item))
			return take(list, item)
		})
	}
	request := t.begin(true, options)
	if t.isForbidden() {
		return metav1.ListMeta{}, t.failed(ctx, request, errForbidden())
	}
	var refused error
	page := t.mirror.world.recorder.page(t.tap)
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
	now := t.mirror.world.outages.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	met := now > t.outages
	t.outages = now
	return met
}

// begin records a request. Further pages of a list are no requests, unless they fail.
func (t *tap) begin(list bool, options metav1.ListOptions) *request {
	t.mirror.note("%s asks: list=%v version=%q match=%q limit=%d continue=%v streaming=%v", t.mirror.name, list,
		options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue != "", options.SendInitialEvents != nil)
	t.mirror.world.recorder.asked(t, list, options)
	request := t.record(list, options)
	t.proxyList(request)
	return request
}

// record adds a request to the record.
func (t *tap) record(list bool, options metav1.ListOptions) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.returnLocked()
	request := &request{at: time.Now(), list: list, version: options.ResourceVersion, endless: options.SendInitialEvents != nil}
	request.relist = t.mirror.asked.Load() > 0 && options.ResourceVersion == "" && options.Continue == ""
	request.check = list && t.isCheckLocked(options)
	if request.check {
		t.requests = append(t.requests, request)
		return request
	}
	if list && options.Continue != "" && t.listing != nil {
		request.firstPage = t.listing
		t.pages = append(t.pages, request)
		return request
	}
	if t.listing = nil; list {
		t.listing = request
	}
	if list || options.SendInitialEvents != nil {
		request.wrong = t.mirror.world.wrongTypes.Add(-1) >= 0
	}
	request.isStream = options.SendInitialEvents != nil
	if options.TimeoutSeconds != nil {
		request.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	t.requests = append(t.requests, request)
	return request
}

// isCheckLocked says whether a list checks the source's version: one beside an open watch, or one of
// a single object beside a watch that the source has ended in this instant.
func (t *tap) isCheckLocked(options metav1.ListOptions) bool {
	if t.watchingLocked() {
		return true
	}
	isOfVersion := options.Limit == 1 && options.ResourceVersion == "" && options.Continue == ""
	return isOfVersion && slices.ContainsFunc(t.requests, func(r *request) bool {
		return !r.list && !r.stopped && r.ended.Equal(time.Now())
	})
}

// watchingLocked says whether a watch is open.
func (t *tap) watchingLocked() bool {
	return slices.ContainsFunc(t.requests, func(r *request) bool { return !r.list && r.open })
}

func (t *tap) answered(request *request, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request.firstPage != nil {
		request.answered = time.Now()
		request = request.firstPage
	}
	request.answered, request.open = time.Now(), open
}

// failed numbers the error of a call.
func (t *tap) failed(ctx context.Context, request *request, err error) error {
	t.mirror.world.recorder.refused(t, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	request.answered, request.failed, request.open = time.Now(), true, false
	t.waitLocked(request, err)
	if request.firstPage != nil {
		request.firstPage.open = false
		t.requests = append(t.requests, request)
	}
	number := t.faultLocked(ctx, err)
	return &numberedError{number, err}
}

func (t *tap) faultLocked(ctx context.Context, err error) int {
	number := t.mirror.nextFault()
	t.faults = append(t.faults, &fault{number: number, at: time.Now(), err: err, excused: ctx.Err() != nil})
	t.mirror.note("%s is failed: %v %s", t.mirror.name, err, faultMark(number))
	return number
}

// stampForCaller sets a unique receipt on an object sent to a caller.
func (t *tap) stampForCaller(o *Object) { t.mirror.stampForCaller(o) }

func (m *mirror) stampForCaller(o *Object) {
	if o != nil {
		setMark(o, receiptMark, strconv.Itoa(m.nextCallerReceipt()))
	}
}

// stamp sets the receipt of an object.
func (t *tap) stamp(o *Object) { setMark(o, receiptMark, strconv.Itoa(t.mirror.nextReceipt())) }
