package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// errEnded means that a watch's channel was closed.
var errEnded = errors.New("the watch has ended")

// observed is a watch under test. Each event is checked as it is read; next skips bookmarks, which are optional.
type observed struct {
	watch.Interface
	trial     *sourceTrial
	results   <-chan watch.Event
	bookmarks bool // allowed
	// newest is the version up to which the watch has delivered everything.
	newest string
	// initial is true until the initial events have ended. They are not sorted by version.
	initial bool
}

// bookmark has the checked fields of a bookmark.
type bookmark struct {
	obj         runtime.Object
	version     string
	endsInitial bool
}

// watch opens a watch as a reflector would.
func (t *sourceTrial) watch(options metav1.ListOptions) (*observed, error) {
	return t.watchBy(options, func() (watch.Interface, error) { return t.Source.WatchWithContext(t.ctx, options) })
}

func (t *sourceTrial) watchBy(options metav1.ListOptions, call func() (watch.Interface, error)) (*observed, error) {
	var w watch.Interface
	err := t.inTime("Watch", func() (err error) {
		w, err = call()
		return err
	})
	switch {
	case err != nil && !isNil(w):
		w.Stop()
		return nil, fmt.Errorf("Watch returned a watch and the error %w: a reflector looks at the error and never stops the watch", err)
	case err != nil:
		return nil, fmt.Errorf("Watch: %w", err)
	case isNil(w):
		return nil, errors.New("Watch returned neither a watch nor an error, so a reflector would have nothing to read")
	}
	results := w.ResultChan()
	switch {
	case results == nil:
		w.Stop()
		return nil, errors.New("the watch has no channel, so a reflector would wait forever")
	case w.ResultChan() != results:
		w.Stop()
		return nil, errors.New("the watch has another channel each time it is asked, so a reflector would miss events")
	}
	o := &observed{
		Interface: w, trial: t, results: results,
		bookmarks: options.AllowWatchBookmarks, newest: options.ResourceVersion,
	}
	o.initial = options.SendInitialEvents != nil && *options.SendInitialEvents
	return o, nil
}

// watchFrom watches from a version, without bookmarks or a timeout.
func (t *sourceTrial) watchFrom(version string) (*observed, error) {
	return t.watch(metav1.ListOptions{ResourceVersion: version})
}

// read returns the next event of any type, errEnded if the channel is closed, and errQuiet if none arrives in time.
func (o *observed) read(within time.Duration) (event watch.Event, err error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case event, open := <-o.results:
		if !open {
			return event, errEnded
		}
		return event, nil
	case <-timer.C:
		return event, errQuiet
	}
}

var errQuiet = errors.New("nothing came")

// take reads and checks an event or bookmark.
func (o *observed) take(within time.Duration) (kind watch.EventType, object seen, mark bookmark, err error) {
	event, err := o.read(within)
	if err != nil {
		return "", seen{}, bookmark{}, err
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		object, err = o.checkChange(event)
	case watch.Bookmark:
		mark, err = o.checkBookmark(event)
	case watch.Error:
		err = fmt.Errorf("the watch reported: %w", apierrors.FromObject(event.Object))
	default:
		err = fmt.Errorf("an event is of the type %q, which a reflector does not know and skips", event.Type)
	}
	return event.Type, object, mark, err
}

func (o *observed) checkChange(event watch.Event) (seen, error) {
	object, err := o.trial.see(event.Object)
	if err != nil {
		return object, fmt.Errorf("an event %s: %w", event.Type, err)
	}
	switch {
	case o.initial && event.Type == watch.Added:
		return object, nil
	case behind(object.version, o.newest):
		return object, fmt.Errorf("the event %s %s is of version %s, which is behind %s: a reflector would report a regression, and list", event.Type, object, object.version, o.newest)
	case object.version == o.newest:
		return object, fmt.Errorf("the event %s %s is of version %s like what came before it: a reflector that resumed between the two would miss it", event.Type, object, object.version)
	}
	o.newest = object.version
	return object, nil
}

func (o *observed) checkBookmark(event watch.Event) (bookmark, error) {
	if isNil(event.Object) {
		return bookmark{}, errors.New("a bookmark has no object, so a reflector would report it and skip it")
	}
	accessor, err := meta.Accessor(event.Object)
	if err != nil {
		return bookmark{}, fmt.Errorf("a bookmark's %T has no metadata, so a reflector would report it and skip it: %w", event.Object, err)
	}
	mark := bookmark{
		obj:         event.Object,
		version:     accessor.GetResourceVersion(),
		endsInitial: accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true",
	}
	switch {
	case !o.bookmarks:
		return mark, errors.New("a bookmark came though none were allowed: a client that did not ask for them would take it for an object")
	case mark.version == "" || mark.version == "0":
		return mark, fmt.Errorf("a bookmark is of version %q, so a reflector would not know where to resume", mark.version)
	case behind(mark.version, o.newest):
		return mark, fmt.Errorf("a bookmark is of version %s, which is behind %s: a reflector would report a regression, and list", mark.version, o.newest)
	}
	o.newest = mark.version
	o.initial = o.initial && !mark.endsInitial
	return mark, nil
}

// next returns the next change, written as "MODIFIED a=2".
func (o *observed) next() (text string, object seen, err error) {
	until := time.Now().Add(o.trial.patience) // bookmarks may never end
	for {
		kind, object, _, err := o.take(time.Until(until))
		if err != nil {
			return "", object, err
		}
		if kind != watch.Bookmark {
			return string(kind) + " " + object.String(), object, nil
		}
	}
}

// tells checks that the next changes are these, in this order.
func (o *observed) tells(want ...string) ([]seen, error) {
	var objects []seen
	for at, wanted := range want {
		got, object, err := o.next()
		switch {
		case errors.Is(err, errQuiet), errors.Is(err, errEnded):
			return objects, fmt.Errorf("a reflector would miss %s: %w", strings.Join(want[at:], ", "), err)
		case err != nil:
			return objects, fmt.Errorf("waiting for %s: %w", wanted, err)
		case got != wanted:
			return objects, fmt.Errorf("the watch delivers %s instead of %s: a reflector's store would differ from the backend", got, wanted)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// isQuiet checks that no change arrives and that the watch stays open.
func (o *observed) isQuiet(within time.Duration) error {
	until := time.Now().Add(within)
	for {
		kind, object, _, err := o.take(time.Until(until))
		switch {
		case errors.Is(err, errQuiet):
			return nil
		case err != nil:
			return fmt.Errorf("expecting no event: %w", err)
		case kind != watch.Bookmark:
			return fmt.Errorf("the watch delivers an unexpected %s %s: a reflector would apply what never happened, or twice", kind, object)
		}
	}
}

// ends checks that the channel is closed soon. Unread events, errors included, are ignored.
func (o *observed) ends(why string) error { return o.drains(why, 0, false) }

// endsCleanly is ends for a watch that the source ended: it must not report an error. It may end at once or as late as
// due.
func (o *observed) endsCleanly(why string, due time.Duration) error { return o.drains(why, due, true) }

func (o *observed) drains(why string, due time.Duration, cleanly bool) error {
	until := time.Now().Add(o.trial.patience + due)
	for {
		event, err := o.read(time.Until(until))
		switch {
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return notClosed(why)
		case cleanly && event.Type == watch.Error:
			return endedByError(why, event)
		}
	}
}

// endsDuring is endsCleanly while change is called ten times as often as the watch is due to end.
func (o *observed) endsDuring(change func() error, why string, due time.Duration) error {
	until := time.Now().Add(o.trial.patience + due)
	for time.Now().Before(until) {
		event, err := o.read(due / 10)
		if errors.Is(err, errEnded) {
			return nil
		}
		if event.Type == watch.Error {
			return endedByError(why, event)
		}
		if errors.Is(err, errQuiet) {
			if err := change(); err != nil {
				return err
			}
		}
	}
	return notClosed(why)
}

func notClosed(why string) error {
	return fmt.Errorf("the watch's channel is not closed after %s: a reflector would wait on it until a deadline of its own", why)
}

func endedByError(why string, event watch.Event) error {
	return fmt.Errorf("after %s the watch reports an error, which a reflector would count as a failure: %w", why, apierrors.FromObject(event.Object))
}
