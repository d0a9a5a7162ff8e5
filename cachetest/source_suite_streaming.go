package cachetest

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The checks of streaming lists: a source that says it can must.

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

// stream asks for a streaming list and reads it to its end.
func (t *sourceTrial) stream(version string) (l listing, w *observed, err error) {
	sendInitial := true
	w, err = t.watch(metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents: &sendInitial, AllowWatchBookmarks: true,
	})
	if err != nil {
		return l, nil, fmt.Errorf("the source says that it can stream a list: %w", err)
	}
	for {
		kind, object, mark, err := w.take(t.patience)
		switch {
		case errors.Is(err, errQuiet):
			err = fmt.Errorf("the bookmark that ends the initial events does not come, so a reflector would give up and list (it has %q)", l.names())
		case err == nil && kind == watch.Bookmark && !mark.endsInitial:
			continue
		case err == nil && kind == watch.Bookmark:
			l.version = mark.version
			return l, w, nil
		case err == nil && kind != watch.Added:
			err = fmt.Errorf("the event %s %s is among the initial events, which are Added", kind, object)
		}
		if err != nil {
			w.Stop()
			return l, nil, fmt.Errorf("in a streaming list: %w", err)
		}
		l.items = append(l.items, object)
	}
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
