package world

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi"
)

// tappedWatch marks and forwards the events of a watch. Its goroutine ends with Stop or with the
// watch; Stop waits for it.
type tappedWatch struct {
	tap     *tap
	ctx     context.Context
	request *Request
	source  watch.Interface
	// limit ends an empty watch. Other watches have the proxy's current limit.
	limit    watchLimit
	result   chan watch.Event
	stopped  chan struct{}
	stop     sync.Once
	finished chan struct{}
}

func newTappedWatch(ctx context.Context, t *tap, request *Request, source watch.Interface, limit watchLimit) *tappedWatch {
	w := &tappedWatch{
		tap: t, ctx: ctx, request: request, source: source, limit: limit,
		result: make(chan watch.Event), stopped: make(chan struct{}), finished: make(chan struct{}),
	}
	go w.run()
	return w
}

func (w *tappedWatch) ResultChan() <-chan watch.Event { return w.result }

func (w *tappedWatch) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.source.Stop()
	<-w.finished
}

func (w *tappedWatch) run() {
	defer close(w.finished)
	defer close(w.result)
	defer w.ended()
	began := time.Now()
	for {
		limit, changed := w.currentLimit()
		select {
		case event, ok := <-w.source.ResultChan():
			if !ok || !w.pass(event) {
				return
			}
			if limit.isIdle {
				began = time.Now()
			}
		case <-limit.reached(began):
			w.endByProxy(limit)
			return
		case <-changed:
		case <-w.stopped:
			w.tap.mu.Lock()
			w.request.stopped = true
			w.tap.mu.Unlock()
			return
		}
	}
}

// currentLimit is the limit of the watch, and a channel that is closed once it has changed.
func (w *tappedWatch) currentLimit() (watchLimit, <-chan struct{}) {
	if w.limit.after > 0 {
		return w.limit, nil
	}
	return w.tap.client.world.Proxy.currentLimit()
}

// endByProxy ends the watch as a proxy does.
func (w *tappedWatch) endByProxy(limit watchLimit) {
	w.source.Stop()
	if !limit.isCut {
		return
	}
	status := brokenStream(kubeapi.CauseStreamCut).ErrStatus
	w.pass(watch.Event{Type: watch.Error, Object: &status})
}

func (w *tappedWatch) ended() {
	w.tap.client.note("%s's watch ended", w.tap.client.Name)
	w.tap.client.world.recorder.ended(w.tap)
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	w.request.Ended, w.request.Open = time.Now(), false
}

// pass returns false if the watch was stopped.
func (w *tappedWatch) pass(event watch.Event) bool {
	if o := objectOf(event.Object); o != nil && event.Type != watch.Bookmark && !w.initial() && w.tap.losesEvent(KeyOf(o)) {
		return true
	}
	if about, err := meta.Accessor(event.Object); err == nil {
		w.tap.sawVersion(about.GetResourceVersion())
	}
	var undelivered func()
	w.tap.client.world.recorder.event(w.tap, event)
	switch object := event.Object.(type) {
	case *Object:
		if event.Type != watch.Bookmark {
			w.tap.stamp(object)
		}
		w.tap.client.note("%s is sent %s %s@%s serial %s receipt %s",
			w.tap.client.Name, event.Type, KeyOf(object), object.ResourceVersion,
			object.Annotations[serialMark], object.Annotations[receiptMark])
	case *metav1.Status:
		event, undelivered = w.numberedEvent(event, object)
	default:
		w.tap.client.note("%s is sent %s %T", w.tap.client.Name, event.Type, object)
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if w.initial() {
			event.Object = w.tap.itemOfWrongType(w.request, event.Object)
		}
	}
	select {
	case w.result <- event:
		if w.delivered(event) {
			w.tap.endBadList(w.ctx, w.request)
		}
		return true
	case <-w.stopped:
		if undelivered != nil {
			undelivered()
		}
		return false
	}
}

// numberedEvent numbers an error event, which counts as a failure once it was received.
func (w *tappedWatch) numberedEvent(event watch.Event, status *metav1.Status) (watch.Event, func()) {
	marked := status.DeepCopy()
	w.tap.mu.Lock()
	number := w.tap.faultLocked(w.ctx, errors.New(status.Message))
	w.tap.waitLocked(w.request, &apierrors.StatusError{ErrStatus: *status})
	last := w.tap.faults[len(w.tap.faults)-1]
	w.tap.mu.Unlock()
	marked.Message += " " + FaultMark(number)
	event.Object = marked
	return event, func() {
		w.tap.mu.Lock()
		defer w.tap.mu.Unlock()
		last.Excused = true
	}
}

// initial says whether initial events of a streaming list are being sent.
func (w *tappedWatch) initial() bool {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	return w.request.Endless
}

// delivered says whether the event ended the initial events of a streaming list.
func (w *tappedWatch) delivered(event watch.Event) (end bool) {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	switch event.Type {
	case watch.Error:
		w.request.Failed = true // which is of no use
	default:
		w.request.Events++
		if o := objectOf(event.Object); o == nil || o.ResourceVersion != w.request.version {
			w.request.Moved = true
		}
		if o := objectOf(event.Object); event.Type == watch.Bookmark && o != nil && o.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			end = w.request.Endless
			w.request.Endless = false
			w.tap.listsHaveVersions = true
		}
	}
	return end
}
