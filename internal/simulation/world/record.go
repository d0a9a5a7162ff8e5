package world

import (
	"errors"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/recording"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// Recorder records a run for corpora of fuzz targets; nil records nothing. It may be called
// concurrently, without any lock held, because it calls the source.
type Recorder struct {
	start time.Time

	mu    sync.Mutex
	Lines []recording.Line
}

func (r *Recorder) add(line recording.Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line.At = time.Since(r.start)
	r.Lines = append(r.Lines, line)
}

// begin is called when the source has its first objects and the mirrors are made, before
// any of them runs.
func (r *Recorder) begin(w *World) {
	if r == nil {
		return
	}
	r.start = w.Start
	line := recording.Line{Do: recording.Run, Seed: w.script.Seed}
	for _, obj := range w.Source.Objects() {
		line.Objects = append(line.Objects, recordedObject(obj))
	}
	for _, is := range w.clients {
		m := recording.Mirror{Name: is.Name, Kind: string(is.setup.Kind), Resync: is.setup.Resync}
		for _, h := range is.setup.Handlers {
			m.Handlers = append(m.Handlers, recording.Handler{Coalesced: cache.Delivery(h.Delivery) == cache.Coalesced, Slow: h.Slow})
		}
		line.Mirrors = append(line.Mirrors, m)
	}
	r.add(line)
}

// Step records a step of the script.
func (r *Recorder) Step(s script.Step) {
	if r != nil {
		r.add(recording.Line{Do: recording.Step, Step: s.Do, Key: s.Key, What: s.What, N: s.N, For: s.For, Mirror: s.Mirror})
	}
}

// passed records a line of a tap.
func (r *Recorder) passed(t *tap, line recording.Line) {
	line.Source = t.client.Name
	if t.namespace != "" {
		line.Source += "/" + t.namespace
	}
	r.add(line)
}

func (r *Recorder) asked(t *tap, list bool, options metav1.ListOptions) {
	if r == nil {
		return
	}
	do := recording.Watch
	if list {
		do = recording.List
	}
	r.passed(t, recording.Line{Do: do, Ask: &recording.Ask{
		Now: t.client.world.Source.Version(), Version: options.ResourceVersion, Match: string(options.ResourceVersionMatch),
		Limit: options.Limit, Continue: options.Continue != "", Streaming: options.SendInitialEvents != nil,
	}})
}

func (r *Recorder) refused(t *tap, err error) {
	if r != nil {
		r.passed(t, recording.Line{Do: recording.Refused, Failure: failureOf(err)})
	}
}

func (r *Recorder) ended(t *tap) {
	if r != nil {
		r.passed(t, recording.Line{Do: recording.Ended})
	}
}

// listed records a whole list.
func (r *Recorder) listed(t *tap, list runtime.Object) {
	page := r.page(t)
	if page == nil {
		return
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return
	}
	for _, item := range itemsOf(list) {
		page.item(item)
	}
	page.end(metav1.ListMeta{ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue()})
}

// page records a page that arrives item by item. An incomplete one is not recorded.
func (r *Recorder) page(t *tap) *recordedPage {
	if r == nil {
		return nil
	}
	return &recordedPage{recorder: r, tap: t}
}

type recordedPage struct {
	recorder *Recorder
	tap      *tap
	objects  []recording.Object
}

func (p *recordedPage) item(obj runtime.Object) {
	if p != nil {
		p.objects = append(p.objects, recordedObject(obj))
	}
}

func (p *recordedPage) end(list metav1.ListMeta) {
	if p != nil {
		p.recorder.passed(p.tap, recording.Line{
			Do: recording.Listed, Objects: p.objects, Version: numberOf(list.ResourceVersion), More: list.Continue != "",
		})
	}
}

// event records an event of a watch.
func (r *Recorder) event(t *tap, event watch.Event) {
	switch object := event.Object.(type) {
	case nil:
	case *metav1.Status:
		if r != nil {
			r.passed(t, recording.Line{Do: recording.Failed, Failure: failureOf(&apierrors.StatusError{ErrStatus: *object})})
		}
	default:
		r.objectEvent(t, event.Type, object)
	}
}

func (r *Recorder) objectEvent(t *tap, is watch.EventType, obj runtime.Object) {
	if r == nil {
		return
	}
	recorded := recordedObject(obj)
	if is != watch.Bookmark {
		r.passed(t, recording.Line{Do: recording.Event, Type: string(is), Objects: []recording.Object{recorded}})
		return
	}
	about, err := meta.Accessor(obj)
	ends := err == nil && about.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	r.passed(t, recording.Line{Do: recording.Bookmark, Version: recorded.Version, More: !ends})
}

func recordedObject(obj runtime.Object) (o recording.Object) {
	if is := objectOf(obj); is != nil {
		o.Serial, o.Bad, o.Unwanted = SerialOf(is), is.Annotations[BadMark], is.Annotations[UnwantedMark] != ""
	} else {
		_, o.Undecoded = obj.(cache.UndecodableObject)
	}
	about, err := meta.Accessor(obj)
	if err != nil {
		return o
	}
	if about.GetName() != "" {
		o.Key = about.GetNamespace() + "/" + about.GetName()
	}
	o.UID, o.Version = string(about.GetUID()), numberOf(about.GetResourceVersion())
	return o
}

// numberOf returns a version as a number.
func numberOf(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

func failureOf(err error) *recording.Failure {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return &recording.Failure{Message: err.Error()}
	}
	is := status.Status()
	failure := &recording.Failure{Code: is.Code, Reason: string(is.Reason), Message: is.Message}
	if is.Details != nil {
		failure.RetryAfterSeconds = is.Details.RetryAfterSeconds
		if len(is.Details.Causes) > 0 {
			failure.Cause, failure.CauseMessage = string(is.Details.Causes[0].Type), is.Details.Causes[0].Message
		}
	}
	return failure
}
