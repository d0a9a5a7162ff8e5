package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of the events of watches.

// startWatch fills the backend, lists it and watches from the list's version.
func (t *sourceTrial) startWatch(content ...string) (listing, *observed, error) {
	return t.startWatchWith(metav1.ListOptions{}, content...)
}

// startWatchWith is startWatch with other watch options.
func (t *sourceTrial) startWatchWith(options metav1.ListOptions, content ...string) (listing, *observed, error) {
	if err := t.write(content...); err != nil {
		return listing{}, nil, err
	}
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return l, nil, err
	}
	options.ResourceVersion = l.version
	w, err := t.watch(options)
	return l, w, err
}

// startAdvancedWatch is startWatch with one update delivered.
func (t *sourceTrial) startAdvancedWatch() (*observed, error) {
	_, w, err := t.startWatch("create a=1")
	if err != nil {
		return nil, err
	}
	if err = t.write("update a=2"); err == nil {
		_, err = w.tells("MODIFIED a=2")
	}
	if err != nil {
		w.Stop()
	}
	return w, err
}

// checkWatchFromList makes all changes between the list and the watch.
func checkWatchFromList(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1"); err != nil {
		return err
	}
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := t.write("update a=2", "create c=1", "update a=3", "delete b"); err != nil {
		return err
	}
	w, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer w.Stop()
	if _, err := w.tells("MODIFIED a=2", "ADDED c=1", "MODIFIED a=3", "DELETED b=1"); err != nil {
		return err
	}
	return w.isQuiet(t.quiet)
}

func checkLiveWatch(t *sourceTrial) error {
	_, w, err := t.startWatch("create a=1", "create b=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := w.isQuiet(t.quiet); err != nil {
		return fmt.Errorf("a watch from the list's version, before any change: %w", err)
	}
	for _, change := range []struct{ write, delivered string }{
		{"update a=2", "MODIFIED a=2"},
		{"create c=1", "ADDED c=1"},
		{"update c=2", "MODIFIED c=2"},
		{"delete b", "DELETED b=1"},
		{"delete c", "DELETED c=2"},
	} {
		if err := t.write(change.write); err != nil {
			return err
		}
		if _, err := w.tells(change.delivered); err != nil {
			return err
		}
	}
	return w.isQuiet(t.quiet)
}

func checkResume(t *sourceTrial) error {
	_, w, err := t.startWatch("create a=1", "create b=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update a=2", "delete b", "create b=2", "update a=3", "create c=1"); err != nil {
		return err
	}
	want := []string{"MODIFIED a=2", "DELETED b=1", "ADDED b=2", "MODIFIED a=3", "ADDED c=1"}
	objects, err := w.tells(want...)
	if err != nil {
		return err
	}
	for at, object := range objects {
		if err := t.resumes(object.version, want[at+1:]); err != nil {
			return fmt.Errorf("from the version of the event %s: %w", want[at], err)
		}
	}
	return nil
}

// resumes checks that a watch from version delivers exactly these changes.
func (t *sourceTrial) resumes(version string, want []string) error {
	w, err := t.watchFrom(version)
	if err != nil {
		return err
	}
	defer w.Stop()
	if _, err := w.tells(want...); err != nil {
		return err
	}
	return w.isQuiet(t.quiet)
}

func checkDeletion(t *sourceTrial) error {
	_, w, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update a=2", "delete a"); err != nil {
		return err
	}
	objects, err := w.tells("MODIFIED a=2", "DELETED a=2")
	if err != nil {
		return err
	}
	if err := t.resumes(objects[1].version, nil); err != nil {
		return fmt.Errorf("from the version of the deletion: %w", err)
	}
	l, err := t.list(metav1.ListOptions{ResourceVersion: objects[1].version})
	if err != nil {
		return fmt.Errorf("at the version of the deletion: %w", err)
	}
	return l.holds()
}

func checkRecreation(t *sourceTrial) error {
	l, w, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("delete a", "create a=2"); err != nil {
		return err
	}
	objects, err := w.tells("DELETED a=1", "ADDED a=2")
	if err != nil {
		return err
	}
	before, after := l.items[0].uid, objects[1].uid
	if before != "" && before == after {
		hint := ""
		if t.virtual {
			hint = " (in virtual time, time stands still between calls: take UIDs from a counter or crypto/rand)"
		}
		return fmt.Errorf("the object has the UID %s before and after: where a relist hides the deletion, a reflector would tell of an update%s", before, hint)
	}
	return nil
}

// checkIdentity compares UIDs and versions of lists, and of an event and the lists around it.
func checkIdentity(t *sourceTrial) error {
	l, w, err := t.startWatch("create a=1", "create b=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	known := map[string]seen{}
	for _, item := range l.items {
		known[item.name] = item
	}
	if err := t.write("update a=2"); err != nil {
		return err
	}
	changed, err := w.tells("MODIFIED a=2")
	if err != nil {
		return err
	}
	if changed[0].uid != known["a"].uid {
		return otherUID(changed[0], known["a"])
	}
	known["a"] = changed[0]
	for _, list := range t.waysToList() {
		l, err := list()
		if err != nil {
			return err
		}
		if err := l.keepsIdentity(known); err != nil {
			return fmt.Errorf("in a list after it was known: %w", err)
		}
	}
	return nil
}

// keepsIdentity checks that the items have the UIDs and versions that are known.
func (l listing) keepsIdentity(known map[string]seen) error {
	for _, item := range l.items {
		before := known[item.name]
		if item.uid != before.uid {
			return otherUID(item, before)
		}
		if item.version != before.version {
			return fmt.Errorf("the version of %s was %s and is %s, though it has not changed: a reflector that lists would tell of an update",
				item, before.version, item.version)
		}
	}
	return nil
}

func otherUID(now, before seen) error {
	return fmt.Errorf("the UID of %s was %q, and that of %s is %q: a reflector would tell of a deletion and an addition",
		before, before.uid, now, now.uid)
}

func checkTypes(t *sourceTrial) error {
	l, w, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update a=2", "create b=1", "delete a"); err != nil {
		return err
	}
	objects, err := w.tells("MODIFIED a=2", "ADDED b=1", "DELETED a=2")
	if err != nil {
		return err
	}
	listed := typeOf(l.items[0].obj)
	for _, object := range objects {
		if got := typeOf(object.obj); got != listed {
			return fmt.Errorf("the list has %s, the watch delivers %s as %s: a reflector that expects the one skips the other", listed, object, got)
		}
	}
	return nil
}

// typeOf returns the type that a reflector compares: the Go type, and the kind for unstructured objects.
func typeOf(obj runtime.Object) string {
	name := reflect.TypeOf(obj).String()
	if _, ok := obj.(runtime.Unstructured); ok {
		name += " of " + obj.GetObjectKind().GroupVersionKind().String()
	}
	return name
}

func checkNoBookmark(t *sourceTrial) error {
	w, err := t.startAdvancedWatch()
	if err != nil {
		return err
	}
	defer w.Stop()
	wait := t.quiet
	if t.virtual {
		wait = t.patience // sources send one about every minute
	}
	if t.SendBookmarks != nil {
		if err := t.SendBookmarks(); err != nil {
			return fmt.Errorf("could not have bookmarks sent: %w", err)
		}
	}
	return w.isQuiet(wait)
}

func lacksBookmarks(t *sourceTrial) string {
	switch {
	case t.config.NoBookmarks:
		return "NoBookmarks: the source sends none"
	case t.SendBookmarks == nil && !t.virtual:
		return "the rig has no SendBookmarks, and real time is too dear to wait for one"
	}
	return ""
}

// checkBookmark requests a bookmark right after a change that was not read yet: it must not overtake the change.
func checkBookmark(t *sourceTrial) error {
	l, w, err := t.startWatchWith(metav1.ListOptions{AllowWatchBookmarks: true}, "create a=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update a=2"); err != nil {
		return err
	}
	if t.SendBookmarks != nil {
		if err := t.SendBookmarks(); err != nil {
			return fmt.Errorf("could not have bookmarks sent: %w", err)
		}
	}
	delivered := false
	until := time.Now().Add(t.patience) // bookmarks from before the change may never end
	for {
		kind, object, mark, err := w.take(time.Until(until))
		switch {
		case errors.Is(err, errQuiet) && !delivered:
			return fmt.Errorf("a reflector would miss MODIFIED a=2: %w", err)
		case errors.Is(err, errQuiet):
			return errors.New("no bookmark came although they are allowed: a reflector of a quiet kind would have to list when its version has been compacted. Send them, or set NoBookmarks")
		case err != nil:
			return err
		case kind != watch.Bookmark && (delivered || object.String() != "a=2"):
			return fmt.Errorf("the watch delivers %s %s where MODIFIED a=2 and a bookmark were to come", kind, object)
		case kind != watch.Bookmark:
			delivered = true
		case !delivered:
			// A bookmark from before the change.
		case typeOf(mark.obj) != typeOf(l.items[0].obj):
			return fmt.Errorf("the list has %s, a bookmark is %s: a reflector that expects the one skips the other", typeOf(l.items[0].obj), typeOf(mark.obj))
		default:
			return t.resumesAfter(mark)
		}
	}
}

// resumesAfter checks that a watch from a bookmark's version neither loses nor repeats an event.
func (t *sourceTrial) resumesAfter(mark bookmark) error {
	w, err := t.watchFrom(mark.version)
	if err != nil {
		return fmt.Errorf("from the version of a bookmark: %w", err)
	}
	defer w.Stop()
	if err := w.isQuiet(t.quiet); err != nil {
		return fmt.Errorf("from the version of a bookmark: %w", err)
	}
	if err := t.write("update a=3"); err != nil {
		return err
	}
	_, err = w.tells("MODIFIED a=3")
	return err
}
