package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of lists.

// checkMark ignores failed lists, which the checks of lists report.
func checkMark(t *sourceTrial) error {
	if err := t.write("create a=1"); err != nil {
		return err
	}
	if l, err := t.list(metav1.ListOptions{}); err == nil && len(l.items) > 0 && l.items[0].mark == "" {
		return errors.New("no mark was found in the listed object: set ListerWatcherConfig.Mark")
	}
	return nil
}

func checkEmptyList(t *sourceTrial) error {
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := l.holds(); err != nil {
		return fmt.Errorf("%w (the backend is to be empty at first)", err)
	}
	// The first object must be delivered by a watch from an empty list's version.
	w, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("create a=1"); err != nil {
		return err
	}
	_, err = w.tells("ADDED a=1")
	return err
}

func checkList(t *sourceTrial) error {
	if err := t.write("create b=1", "create a=1", "create c=1"); err != nil {
		return err
	}
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	if l.token != "" {
		return errors.New("a list without a limit has a continue token: a reflector that does not page would miss the rest")
	}
	return l.holds("a=1", "b=1", "c=1")
}

// checkListIsNew lists as a reflector does: first at "0", later at the last version, and at "" after a refusal.
func checkListIsNew(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1"); err != nil {
		return err
	}
	first, err := t.list(metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("at resource version 0: %w", err)
	}
	if err := t.write("update a=2", "delete b", "create c=1"); err != nil {
		return err
	}
	newest, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := newest.holds("a=2", "c=1"); err != nil {
		return err
	}
	for _, version := range []string{"0", first.version} { // an older state is allowed, with its own version
		l, err := t.list(metav1.ListOptions{ResourceVersion: version})
		if err == nil {
			err = t.leadsTo(l, newest)
		}
		if err != nil {
			return fmt.Errorf("at resource version %s, after changes: %w", version, err)
		}
	}
	again, err := t.list(metav1.ListOptions{ResourceVersion: newest.version})
	if err != nil {
		return fmt.Errorf("at the version of the list before: %w", err)
	}
	if behind(again.version, newest.version) {
		return fmt.Errorf("a list at no older than %s is of version %s: a reflector would regress", newest.version, again.version)
	}
	return again.holds("a=2", "c=1")
}

// plainForms are client-go's methods without a context.
type plainForms interface {
	List(options metav1.ListOptions) (runtime.Object, error)
	Watch(options metav1.ListOptions) (watch.Interface, error)
}

func lacksPlainForms(t *sourceTrial) string {
	if _, ok := t.Source.(plainForms); !ok {
		return "the source has no List and Watch: a reflector calls ListWithContext and WatchWithContext"
	}
	return ""
}

// checkContextForms compares the methods without a context with the others.
func checkContextForms(t *sourceTrial) error {
	source := t.Source.(plainForms)
	if err := t.write("create a=1", "create b=1"); err != nil {
		return err
	}
	with, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	plain, err := t.listBy(func() (runtime.Object, error) { return source.List(metav1.ListOptions{}) })
	if err != nil {
		return fmt.Errorf("without a context: %w", err)
	}
	if plain.version != with.version {
		return fmt.Errorf("List is of version %s, ListWithContext of %s, though nothing has changed", plain.version, with.version)
	}
	options := metav1.ListOptions{ResourceVersion: plain.version}
	w, err := t.watchBy(options, func() (watch.Interface, error) { return source.Watch(options) })
	if err != nil {
		return fmt.Errorf("without a context: %w", err)
	}
	defer w.Stop()
	if err := t.write("update a=2"); err != nil {
		return err
	}
	if _, err := w.tells("MODIFIED a=2"); err != nil {
		return err
	}
	w.Stop()
	if err := w.ends("Stop of a watch without a context"); err != nil {
		return err
	}
	return plain.holds("a=1", "b=1")
}

// checkPages changes the backend between two pages: the list must not show the changes, and a watch from the list's
// version must. A source may ignore the limit and return one page.
func checkPages(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1", "create c=1", "create d=1", "create e=1"); err != nil {
		return err
	}
	changed := false
	l, count, err := t.pages(2, func() error {
		changed = true
		return t.write("update e=2", "delete d", "create f=1")
	})
	if err != nil {
		return err
	}
	if err := l.holds("a=1", "b=1", "c=1", "d=1", "e=1"); err != nil {
		return fmt.Errorf("in %d pages, with changes after the first: %w", count, err)
	}
	if !changed {
		return nil
	}
	w, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer w.Stop()
	_, err = w.tells("MODIFIED e=2", "DELETED d=1", "ADDED f=1")
	return err
}

// itemLister is a source that lists item by item.
type itemLister interface {
	ListItems(context.Context, metav1.ListOptions, func(metav1.ListMeta, runtime.Object) error) (metav1.ListMeta, error)
}

func lacksItems(t *sourceTrial) string {
	if _, ok := t.Source.(itemLister); !ok {
		return "the source has no ListItems: a reflector asks it for whole lists"
	}
	return ""
}

// takeItems calls ListItems and checks how it calls take.
func (t *sourceTrial) takeItems(options metav1.ListOptions, take func(runtime.Object) error) (about metav1.ListMeta, err error) {
	taking, over := make(chan struct{}, 1), make(chan struct{})
	strayed := make(chan error, 1)
	stray := func(what string) error {
		err := errors.New("take was called " + what + ": a reflector would end the list with an error")
		select {
		case strayed <- err:
		default:
		}
		return err
	}
	err = t.inTime("ListItems", func() (err error) {
		about, err = t.Source.(itemLister).ListItems(t.ctx, options, func(_ metav1.ListMeta, item runtime.Object) error {
			select {
			case <-over:
				return stray("after ListItems had returned")
			case taking <- struct{}{}:
			default:
				return stray("while an earlier call was running")
			}
			defer func() { <-taking }()
			select { // long enough for a concurrent call to be noticed
			case <-t.ctx.Done():
				return t.ctx.Err()
			case <-time.After(t.quiet / 50):
			}
			return take(item)
		})
		close(over)
		return err
	})
	if err != nil {
		return about, err
	}
	select {
	case err = <-strayed:
	default:
	}
	return about, err
}

func checkItems(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1", "create c=1", "create d=1", "create e=1"); err != nil {
		return err
	}
	for _, limit := range []int64{0, 2} {
		options := metav1.ListOptions{Limit: limit}
		whole, err := t.list(options)
		if err != nil {
			return err
		}
		var items []runtime.Object
		about, err := t.takeItems(options, func(item runtime.Object) error {
			items = append(items, item)
			return nil
		})
		if err != nil {
			return fmt.Errorf("ListItems: %w", err)
		}
		streamed, err := t.listingOf(about.ResourceVersion, about.Continue, items)
		if err != nil {
			return fmt.Errorf("ListItems: %w", err)
		}
		if streamed.version != whole.version || (streamed.token == "") != (whole.token == "") {
			return fmt.Errorf("ListItems ends at version %q with the continue token %q, List at %q with %q", streamed.version, streamed.token, whole.version, whole.token)
		}
		if err := streamed.holds(whole.names()...); err != nil {
			return fmt.Errorf("ListItems, compared with List: %w", err)
		}
	}
	return nil
}

func checkItemsRefused(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1", "create c=1"); err != nil {
		return err
	}
	refusal, calls := errors.New("enough"), 0
	_, err := t.takeItems(metav1.ListOptions{}, func(runtime.Object) error {
		if calls++; calls == 2 {
			return refusal
		}
		return nil
	})
	if !errors.Is(err, refusal) {
		return fmt.Errorf("take returned an error and ListItems %v: a reflector would take a part of the list for all of it", err)
	}
	if calls != 2 {
		return fmt.Errorf("take was called %d times more after its error: a reflector that stops would wait for the rest", calls-2)
	}
	return nil
}
