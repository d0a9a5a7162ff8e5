package conformance

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of requests that a source may refuse.

// aheadBy is added to a version to get one that is not reached: minutes if versions are nanoseconds of a clock.
const aheadBy = 1 << 40

// checkUnreached also accepts a silent watch, as API servers have. It skips versions that are not numbers.
func checkUnreached(t *sourceTrial) error {
	if err := t.write("create a=1"); err != nil {
		return err
	}
	present, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(present.version, 10, 64)
	ahead := strconv.FormatUint(number+aheadBy, 10)
	if err != nil || !behind(present.version, ahead) {
		return nil
	}
	patient := *t
	patient.patience *= 6 // client-go repeats such a list ten times
	answer, err := patient.list(metav1.ListOptions{ResourceVersion: ahead})
	switch {
	case err == nil && behind(answer.version, ahead):
		return fmt.Errorf("a list at no older than %s is of version %s: a reflector would regress", ahead, answer.version)
	case err == nil:
		return nil
	case !isUnreached(err):
		return fmt.Errorf("the answer to a list is neither 504 with ResourceVersionTooLarge nor 410, so a reflector would not list at \"\": %w", err)
	}
	w, err := t.watchFrom(ahead)
	if err == nil {
		defer w.Stop()
		if err := t.write("update a=2"); err != nil {
			return err
		}
		err = w.isQuiet(t.quiet)
	}
	if err != nil && !isUnreached(err) {
		return fmt.Errorf("a watch from %s, where the backend is at %s, is neither refused with 504 ResourceVersionTooLarge or 410 nor silent: %w", ahead, present.version, err)
	}
	return nil
}

// isUnreached reports whether a reflector would list at "" after this error.
func isUnreached(err error) bool {
	return isExpired(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func checkSelector(t *sourceTrial) error {
	if err := t.write("create a=1"); err != nil {
		return err
	}
	present, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	nothing := metav1.ListOptions{LabelSelector: "cachetest.watchmirror/selected=nothing"}
	if l, err := t.list(nothing); err == nil && len(l.items) > 0 {
		return fmt.Errorf("a list with the label selector %s, which no object matches, has %q: a reflector would store what was not selected", nothing.LabelSelector, l.names())
	}
	nothing.ResourceVersion = present.version
	w, err := t.watch(nothing)
	if err != nil {
		return nil // refused
	}
	defer w.Stop()
	if err := t.write("update a=2", "create b=1"); err != nil {
		return err
	}
	if kind, object, _, err := w.take(t.quiet); err == nil && kind != watch.Bookmark {
		return fmt.Errorf("a watch with the label selector %s, which no object matches, delivers %s %s: a reflector would store what was not selected", nothing.LabelSelector, kind, object)
	}
	return nil
}

func lacksListsOnly(t *sourceTrial) string {
	if lacksStreaming(t) == "" {
		return "the source says that it streams lists"
	}
	return ""
}

func checkInitialEvents(t *sourceTrial) error {
	if err := t.write("create a=1"); err != nil {
		return err
	}
	present, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := t.openStream(present.version)
	if err != nil {
		return nil // refused
	}
	defer w.Stop()
	l, err := w.initialEvents()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return nil // refused on the stream
	}
	if err == nil {
		err = l.holds("a=1")
	}
	if err != nil {
		return fmt.Errorf("a watch with sendInitialEvents is neither refused nor a streaming list: %w", err)
	}
	return nil
}
