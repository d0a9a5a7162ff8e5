package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Checks that users of a source do not affect each other.

func checkIndependence(t *sourceTrial) error {
	l, one, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	defer one.Stop()
	other, err := t.watchFrom(l.version)
	if err != nil {
		return fmt.Errorf("a second watch: %w", err)
	}
	defer other.Stop()
	if err := t.write("update a=2"); err != nil {
		return err
	}
	for _, w := range []*observed{one, other} {
		if _, err := w.tells("MODIFIED a=2"); err != nil {
			return fmt.Errorf("one of two watches: %w", err)
		}
	}
	one.Stop()
	if err := one.ends("Stop"); err != nil {
		return err
	}
	if err := t.write("update a=3"); err != nil {
		return err
	}
	if _, err := other.tells("MODIFIED a=3"); err != nil {
		return fmt.Errorf("after another watch was stopped: %w", err)
	}
	return nil
}

// unreadChanges is more than a watch's channel may be expected to buffer. A source in process costs little.
func (t *sourceTrial) unreadChanges() int {
	if t.virtual {
		return 1100
	}
	return 250
}

func checkUnread(t *sourceTrial) error {
	l, unread, err := t.startWatch("create a=0")
	if err != nil {
		return err
	}
	defer unread.Stop()
	w, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer w.Stop()
	for mark := 1; mark <= t.unreadChanges(); mark++ {
		text := "a=" + strconv.Itoa(mark)
		if err := t.write("update " + text); err != nil {
			return fmt.Errorf("beside a watch that is not read: %w", err)
		}
		if _, err := w.tells("MODIFIED " + text); err != nil {
			return fmt.Errorf("beside a watch that is not read: %w", err)
		}
		if mark == 1 {
			time.Sleep(t.quiet) // what fills the unread watch's buffer must get that far
		}
	}
	unread.Stop()
	return unread.ends("Stop of a watch that was not read")
}

// spoiltLabel is set on an object by spoil.
const spoiltLabel = "cachetest-spoilt"

// spoil changes an object in place, including maps that a shallow copy would share, as a transform may.
func spoil(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	for _, of := range []struct {
		get func() map[string]string
		set func(map[string]string)
	}{{accessor.GetLabels, accessor.SetLabels}, {accessor.GetAnnotations, accessor.SetAnnotations}} {
		entries := of.get()
		if entries == nil {
			entries = map[string]string{}
		}
		entries[spoiltLabel] = "true"
		of.set(entries)
	}
}

func spoilt(obj runtime.Object) bool {
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetLabels()[spoiltLabel]+accessor.GetAnnotations()[spoiltLabel] != ""
}

func checkSharing(t *sourceTrial) error {
	l, one, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	defer one.Stop()
	spoil(l.items[0].obj)
	other, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer other.Stop()
	if err := t.write("update a=2"); err != nil {
		return err
	}
	mine, err := one.tells("MODIFIED a=2")
	if err != nil {
		return err
	}
	spoil(mine[0].obj)
	theirs, err := other.tells("MODIFIED a=2")
	if err != nil {
		return err
	}
	again, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	switch {
	case spoilt(theirs[0].obj):
		return errors.New("two watches were given the same object: the transform of one reflector would change what another has, in a data race")
	case spoilt(again.items[0].obj):
		return errors.New("a list shows what was done to an object that was handed out: a transform would change the source itself")
	}
	return again.holds("a=2")
}
