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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// tap stands between a reflector and its source. It changes nothing but marks, and the types of lists
// that are to be wrong (wrong_type.go): each
// object that passes gets a number (its receipt), and so does each failure. And it refuses the
// first watch after an outage (see world.outages). It knows
// therefore what its reflector was sent, when, and how often it asked.
type tap struct {
	source cache.ListerWatcherWithContext
	mirror *mirror

	mu       sync.Mutex
	requests []*asked
	// lost is how many of the next events get lost.
	lost atomic.Int64
	// outages are those of the world's that this reflector has met.
	outages int64
	// listing is the list of which a further page may be asked for.
	listing *asked
	faults  []*fault
}

// asked is one request of a reflector: a call of List, all pages that were answered of
// one list, or a call of Watch.
type asked struct {
	at, answered time.Time
	list         bool
	ended        time.Time // of a watch that was opened
	events       int
	// version is what was asked for. moved: a watch sent something of another.
	version string
	moved   bool
	// timeout is what a watch asked for.
	timeout time.Duration
	// failed: it was answered with an error, or its stream held one.
	failed bool
	// endless: a streaming list that has not brought the bookmark that ends it.
	endless bool
	// open: a watch that was opened, or a list that has more pages.
	open bool
	// of is the list that a further page belongs to. A page that is answered is part of
	// that, one that fails is a request of its own.
	of *asked
	// wrong: the objects of a list, streamed or not, are all of another type; items counts
	// those of a wrong one.
	wrong bool
	items int
	// relist: a list or stream of the newest while callers of Fresh or Verify wait, which may have asked for it.
	relist bool
	// check: a list beside an open watch, which is a check of the source's version.
	check bool
}

// fault is a failure that the reflector met, and so must report.
type fault struct {
	number int
	at     time.Time
	err    error
	// wrong: a list whose objects are all of another type, of which the source says nothing.
	wrong bool
	// excused: its context had ended.
	excused bool
}

// numbered is an error of the source's that can be distinguished from all others.
type numbered struct {
	number int
	err    error
}

func (n *numbered) Error() string { return fmt.Sprintf("%v %s", n.err, faultMark(n.number)) }
func (n *numbered) Unwrap() error { return n.err }

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
	list, err := t.source.ListWithContext(ctx, options)
	if err != nil {
		return nil, t.failed(ctx, request, err)
	}
	for _, item := range itemsOf(list) {
		t.stamp(item)
	}
	continues := ""
	if about, err := meta.ListAccessor(list); err == nil {
		continues = about.GetContinue()
		t.mirror.note("list of %s answered: version %s continue %v", t.mirror.name, about.GetResourceVersion(), continues != "")
	}
	t.mirror.world.recorder.listed(t, list)
	list = t.wrongedList(request, list)
	t.answered(request, continues != "")
	if continues == "" {
		t.wrongEnd(ctx, request)
	}
	return list, nil
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
	if t.meetsOutage() {
		return nil, t.failed(ctx, request, cachetest.ErrConnectionRefused())
	}
	source, err := t.source.WatchWithContext(ctx, options)
	if err != nil {
		return nil, t.failed(ctx, request, err)
	}
	if t.meetsOutage() { // while it hung
		source.Stop()
		return nil, t.failed(ctx, request, cachetest.ErrConnectionRefused())
	}
	t.answered(request, true)
	return newTappedWatch(ctx, t, request, source), nil
}

// tapOfItems is a tap of a source that lists item by item.
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
	var refused error
	page := t.mirror.world.recorder.page(t.tap)
	list, err := t.source.(cache.ItemLister).ListItems(ctx, options, func(list metav1.ListMeta, item runtime.Object) error {
		if o := objectOf(item); o != nil {
			t.stamp(o)
		}
		page.item(item)
		refused = take(list, t.wrongedItem(request, item))
		return refused
	})
	switch {
	case refused != nil && errors.Is(err, refused):
		t.answered(request, false)
	case err != nil:
		err = t.failed(ctx, request, err)
	default:
		t.mirror.note("list of %s answered: version %s continue %v", t.mirror.name, list.ResourceVersion, list.Continue != "")
		page.end(list)
		t.answered(request, list.Continue != "")
		if list.Continue == "" {
			t.wrongEnd(ctx, request)
		}
	}
	return list, err
}

// meetsOutage says whether the source has been away since it was last asked for a watch.
func (t *tap) meetsOutage() bool {
	now := t.mirror.world.outages.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	met := now > t.outages
	t.outages = now
	return met
}

// begin notes a request. The next page of a list is not another one, unless it fails.
func (t *tap) begin(list bool, options metav1.ListOptions) *asked {
	t.mirror.note("%s asks: list=%v version=%q match=%q limit=%d continue=%v streaming=%v", t.mirror.name, list,
		options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue != "", options.SendInitialEvents != nil)
	t.mirror.world.recorder.asked(t, list, options)
	t.mu.Lock()
	defer t.mu.Unlock()
	request := &asked{at: time.Now(), list: list, version: options.ResourceVersion, endless: options.SendInitialEvents != nil}
	request.relist = t.mirror.asked.Load() > 0 && options.ResourceVersion == "" && options.Continue == ""
	if request.check = list && t.watchingLocked(); request.check {
		t.requests = append(t.requests, request)
		return request
	}
	if list && options.Continue != "" && t.listing != nil {
		request.of = t.listing
		return request
	}
	if t.listing = nil; list {
		t.listing = request
	}
	if list || options.SendInitialEvents != nil {
		request.wrong = t.mirror.world.wrongTypes.Add(-1) >= 0
	}
	if options.TimeoutSeconds != nil {
		request.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	t.requests = append(t.requests, request)
	return request
}

// watchingLocked says whether a watch is open.
func (t *tap) watchingLocked() bool {
	return slices.ContainsFunc(t.requests, func(r *asked) bool { return !r.list && r.open })
}

func (t *tap) answered(request *asked, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request.of != nil {
		request = request.of
	}
	request.answered, request.open = time.Now(), open
}

// failed numbers a failure that a call ends with.
func (t *tap) failed(ctx context.Context, request *asked, err error) error {
	t.mirror.world.recorder.refused(t, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	request.answered, request.failed, request.open = time.Now(), true, false
	if request.of != nil {
		request.of.open = false
		t.requests = append(t.requests, request)
	}
	number := t.faultLocked(ctx, err)
	return &numbered{number, err}
}

func (t *tap) faultLocked(ctx context.Context, err error) int {
	number := t.mirror.nextFault()
	t.faults = append(t.faults, &fault{number: number, at: time.Now(), err: err, excused: ctx.Err() != nil})
	t.mirror.note("%s is failed: %v %s", t.mirror.name, err, faultMark(number))
	return number
}

// stampForCaller gives an object that a caller is sent a receipt that no other has.
func (t *tap) stampForCaller(o *Object) {
	if o != nil {
		setMark(o, receiptMark, strconv.Itoa(t.mirror.nextCallerReceipt()))
	}
}

// stamp gives an object its receipt.
func (t *tap) stamp(o *Object) { setMark(o, receiptMark, strconv.Itoa(t.mirror.nextReceipt())) }
