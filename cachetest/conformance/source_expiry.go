package conformance

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Checks of requests for compacted versions.

func lacksCompact(t *sourceTrial) string {
	if t.Compact == nil {
		return "the rig has no Compact, so nothing expires"
	}
	return ""
}

// outdate lists and then expires that list's version.
func (t *sourceTrial) outdate(options metav1.ListOptions) (listing, error) {
	if err := t.write("create a=1", "create b=1", "create c=1"); err != nil {
		return listing{}, err
	}
	l, err := t.list(options)
	if err != nil {
		return l, err
	}
	if err := t.write("update a=2", "delete b"); err != nil {
		return l, err
	}
	if err := t.inTime("the backend's compaction", t.Compact); err != nil {
		return l, fmt.Errorf("could not compact the backend: %w", err)
	}
	return l, nil
}

// checkExpiredWatch accepts the error from Watch or from the stream.
func checkExpiredWatch(t *sourceTrial) error {
	l, err := t.outdate(metav1.ListOptions{})
	if err != nil {
		return err
	}
	text := ""
	w, err := t.watchFrom(l.version)
	if err == nil {
		defer w.Stop()
		text, _, err = w.next()
	}
	switch {
	case err == nil:
		return fmt.Errorf("a watch from a forgotten version tells %s: a reflector would go on without what was forgotten", text)
	case errors.Is(err, errQuiet):
		return errors.New("a watch from a forgotten version is silent: a reflector would never know what it has missed")
	case !isExpired(err):
		return fmt.Errorf("the answer is not 410 Expired or Gone, so a reflector would ask again instead of listing: %w", err)
	}
	return nil
}

func checkListAfterExpiry(t *sourceTrial) error {
	old, err := t.outdate(metav1.ListOptions{})
	if err != nil {
		return err
	}
	if again, err := t.list(metav1.ListOptions{ResourceVersion: old.version}); err == nil {
		if err := again.holds("a=2", "c=1"); err != nil && !behind(old.version, again.version) {
			return fmt.Errorf("at no older than a forgotten version: %w", err)
		}
	} else if !isExpired(err) {
		return fmt.Errorf("at no older than a forgotten version, neither a list nor 410: %w", err)
	}
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("a reflector could not recover: %w", err)
	}
	if err := l.holds("a=2", "c=1"); err != nil {
		return err
	}
	w, err := t.watchFrom(l.version)
	if err != nil {
		return fmt.Errorf("from the version of a new list, a reflector could not recover: %w", err)
	}
	defer w.Stop()
	if err := t.write("update c=2"); err != nil {
		return err
	}
	_, err = w.tells("MODIFIED c=2")
	return err
}

// checkExpiredToken also accepts another page of the same state, since a source may keep it.
func checkExpiredToken(t *sourceTrial) error {
	first, err := t.outdate(metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if first.token == "" {
		return first.holds("a=1", "b=1", "c=1") // it does not page
	}
	next, err := t.list(metav1.ListOptions{Limit: 1, Continue: first.token})
	switch {
	case err == nil && next.version != first.version:
		return fmt.Errorf("the second page is of version %s, the first of %s: a reflector's store would be of no version at all", next.version, first.version)
	case err == nil:
		return nil
	case !isExpired(err):
		return fmt.Errorf("the answer is not 410 Expired or Gone, so a reflector would not know to begin the list again: %w", err)
	}
	return nil
}
