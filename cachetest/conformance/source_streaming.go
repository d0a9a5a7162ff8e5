package conformance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of streaming lists, for a source that announces them.

func lacksStreaming(t *sourceTrial) string {
	marker, ok := t.Source.(interface{ IsWatchListSemanticsUnSupported() bool })
	switch {
	case !ok:
		return "the source has no IsWatchListSemanticsUnSupported: a reflector lists it"
	case marker.IsWatchListSemanticsUnSupported():
		return "the source says that it cannot stream a list: a reflector lists it"
	}
	return ""
}

// openStream requests a streaming list.
func (t *sourceTrial) openStream(version string) (*observed, error) {
	sendInitial := true
	return t.watch(metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents: &sendInitial, AllowWatchBookmarks: true,
	})
}

// initialEvents reads a streaming list to its end.
func (o *observed) initialEvents() (l listing, err error) {
	until := time.Now().Add(o.trial.patience) // bookmarks may never end
	for {
		kind, object, mark, err := o.take(time.Until(until))
		switch {
		case errors.Is(err, errQuiet):
			err = fmt.Errorf("the bookmark that ends the initial events does not come, so a reflector would give up and list (it has %q)", l.names())
		case err == nil && kind == watch.Bookmark && !mark.endsInitial:
			continue
		case err == nil && kind == watch.Bookmark:
			l.version = mark.version
			return l, nil
		case err == nil && kind != watch.Added:
			err = fmt.Errorf("the event %s %s is among the initial events, which are Added", kind, object)
		}
		if err != nil {
			return l, fmt.Errorf("in a streaming list: %w", err)
		}
		l.items = append(l.items, object)
	}
}

// stream requests a streaming list and reads it to its end.
func (t *sourceTrial) stream(version string) (listing, *observed, error) {
	w, err := t.openStream(version)
	if err != nil {
		return listing{}, nil, fmt.Errorf("the source says that it can stream a list: %w", err)
	}
	l, err := w.initialEvents()
	if err != nil {
		w.Stop()
	}
	return l, w, err
}

func checkStreaming(t *sourceTrial) error {
	if err := t.write("create c=1", "create a=1", "create b=1", "update a=2", "delete b"); err != nil {
		return err
	}
	l, w, err := t.stream("")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := l.holds("a=2", "c=1"); err != nil {
		return fmt.Errorf("a streaming list: %w", err)
	}
	if err := t.write("update c=2", "delete a"); err != nil {
		return err
	}
	want := []string{"MODIFIED c=2", "DELETED a=2"}
	if _, err := w.tells(want...); err != nil {
		return fmt.Errorf("after the initial events of the same watch: %w", err)
	}
	if err := t.resumes(l.version, want); err != nil {
		return fmt.Errorf("from the version that ends a streaming list: %w", err)
	}
	again, other, err := t.stream(w.newest)
	if err != nil {
		return err
	}
	defer other.Stop()
	if behind(again.version, w.newest) || !slices.Equal(again.names(), []string{"c=2"}) {
		return fmt.Errorf("a streaming list at no older than %s has %q at %s", w.newest, again.names(), again.version)
	}
	return nil
}

func checkEmptyStreaming(t *sourceTrial) error {
	l, w, err := t.stream("")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := l.holds(); err != nil {
		return err
	}
	if err := t.write("create a=1"); err != nil {
		return err
	}
	_, err = w.tells("ADDED a=1")
	return err
}
