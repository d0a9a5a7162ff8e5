package sources

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// bookmarkInterval is the time between bookmarks of a watch that allows them; about that of API
// servers.
const bookmarkInterval = time.Minute

// Watch is WatchWithContext without a context.
func (p *PollingSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options)
}

// WatchWithContext delivers the changes after a version, and then those that calls of the function
// find. A watch from "" or "0" first delivers the current objects as Added. It fails with 410
// Expired for an expired version, 504 Timeout for a future one, and 422 Invalid for
// sendInitialEvents.
//
// The watch ends, and its channel is closed, by Stop, with ctx, after timeoutSeconds, or with an
// Error event. Stop waits for its goroutine and for a running call. If the function panics, Stop
// panics with a *cache.PanicError.
func (p *PollingSource) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	selected, from, err := parseOptions(options)
	if err != nil {
		return nil, err
	}
	if err := refuseStreaming(options); err != nil {
		return nil, err
	}
	p.mu.Lock()
	hasResult := p.finished > 0 && p.err == nil
	p.mu.Unlock()
	if from == 0 || !hasResult {
		if err := p.pollAnew(ctx, requestWait); err != nil {
			return nil, err
		}
	}
	w := &pollWatch{
		source:       p,
		selected:     selected,
		bookmarks:    options.AllowWatchBookmarks,
		lastBookmark: time.Now(),
	}
	p.mu.Lock()
	version := p.version
	oldest := version - uint64(len(p.history))
	objects := p.objects
	w.provenBy = p.finished
	p.mu.Unlock()
	switch {
	case from > version:
		return nil, TooLarge(from, version)
	case from == 0:
		w.cursor = version
		if options.SendInitialEvents == nil {
			w.initial = objects
		}
	case from < oldest:
		return nil, Expired(from, oldest)
	default:
		w.cursor = from
	}
	w.eventStream = newEventStream(ctx, options)
	go w.run(w.deliver)
	return w, nil
}

// pollWatch is one watch: a cursor into the source's history.
type pollWatch struct {
	*eventStream
	source    *PollingSource
	selected  selection
	bookmarks bool

	// Only the goroutine uses the fields below.
	initial      []Object
	cursor       uint64
	lastBookmark time.Time // time of the last bookmark
	// provenBy is the number of the last call of which the reader knows that it succeeded: by an
	// event or a bookmark.
	provenBy uint64
}

// deliver sends events until the watch ends.
func (w *pollWatch) deliver() {
	for _, obj := range w.initial {
		if w.selected.matches(obj) &&
			!w.send(watch.Event{Type: watch.Added, Object: obj.DeepCopyObject()}) {
			return
		}
	}
	w.initial = nil
	for w.step() {
	}
}

// step takes the next step, or waits until there may be one. It returns false if the watch has
// ended.
func (w *pollWatch) step() bool {
	now := w.source.read(w.cursor)
	switch {
	case w.ctx.Err() != nil:
		return false
	case w.cursor < now.oldest:
		return w.fail(Expired(w.cursor, now.oldest))
	case now.next != nil:
		return w.sendChange(*now.next, now.finished)
	case now.err != nil:
		return w.fail(now.err)
	case !time.Now().Before(now.nextCall):
		_ = w.source.poll(w.ctx, now.finished, 0) // the next step reads the result
		return true
	case w.bookmarks && w.isBookmarkDue(now):
		return w.sendBookmark(now)
	}
	w.wait(now)
	return true
}

// pollState is what a watch reads of its source.
type pollState struct {
	// next is the change after the cursor, nil if there is none. Changes before oldest are
	// forgotten.
	next   *change
	oldest uint64
	// finished, err and nextCall are those of the last call.
	finished uint64
	err      error
	nextCall time.Time
	example  Object
	// changed is closed when a call has ended.
	changed chan struct{}
}

// read returns the state after a version.
func (p *PollingSource) read(cursor uint64) pollState {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := pollState{
		oldest: p.version - uint64(
			len(p.history)), finished: p.finished, err: p.failureLocked(), nextCall: p.nextCall,
		example: p.example, changed: p.changed,
	}
	if now.oldest <= cursor && cursor < p.version {
		next := p.history[cursor-now.oldest]
		now.next = &next
	}
	return now
}

// sendChange sends the event of a change, if the watch has one.
func (w *pollWatch) sendChange(next change, finished uint64) bool {
	w.cursor = next.version
	event := w.selected.event(next)
	if event.Type == "" {
		return true
	}
	w.provenBy = finished
	return w.send(event)
}

// isBookmarkDue returns whether a call has succeeded that the reader does not know of, or whether
// the last bookmark is old: one about each minute shows that the watch works.
func (w *pollWatch) isBookmarkDue(now pollState) bool {
	return now.finished != w.provenBy || !time.Now().Before(w.nextBookmark())
}

func (w *pollWatch) nextBookmark() time.Time { return w.lastBookmark.Add(bookmarkInterval) }

func (w *pollWatch) sendBookmark(now pollState) bool {
	w.provenBy = now.finished
	w.lastBookmark = time.Now()
	return w.send(watch.Event{Type: watch.Bookmark, Object: bookmark(now.example, w.cursor)})
}

// wait waits until the next call or bookmark is due, or a call has ended.
func (w *pollWatch) wait(now pollState) {
	due := now.nextCall
	if next := w.nextBookmark(); w.bookmarks && next.Before(due) {
		due = next
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-now.changed:
	case <-w.ctx.Done():
	}
}

// bookmark returns an empty object of the type and kind of example.
func bookmark(example Object, version uint64) runtime.Object {
	object := reflect.New(reflect.TypeOf(example).Elem()).Interface().(Object)
	object.GetObjectKind().SetGroupVersionKind(example.GetObjectKind().GroupVersionKind())
	object.SetResourceVersion(formatVersion(version))
	return object
}

// selection selects the objects of a request.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

// parseOptions parses the selectors and the version of a request, 0 for "" and "0".
func parseOptions(options metav1.ListOptions) (selected selection, version uint64, err error) {
	selected.labels, err = labels.Parse(options.LabelSelector)
	if err != nil {
		return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	selected.fields, err = fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	for _, required := range selected.fields.Requirements() {
		if required.Field != "metadata.name" && required.Field != "metadata.namespace" {
			return selected, 0, apierrors.NewBadRequest(
				fmt.Sprintf("fieldSelector: not supported: %s", required.Field))
		}
	}
	version, err = parseVersion(options)
	return selected, version, err
}

func (s selection) matches(obj Object) bool {
	return obj != nil && s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(
			fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// event returns the event that a watch with the selection gets for a change. An object that enters
// the selection is Added; one that leaves it is Deleted, with its last selected state. The type is
// "" if there is no event.
func (s selection) event(c change) watch.Event {
	before := s.matches(c.before)
	after := s.matches(c.after)
	switch {
	case before && after:
		return watch.Event{Type: watch.Modified, Object: c.after.DeepCopyObject()}
	case after:
		return watch.Event{Type: watch.Added, Object: c.after.DeepCopyObject()}
	case before:
		deleted := c.before.DeepCopyObject().(Object)
		deleted.SetResourceVersion(formatVersion(c.version))
		return watch.Event{Type: watch.Deleted, Object: deleted}
	}
	return watch.Event{}
}
