package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of sources whose reader, or writer, is faster or slower than they are.

// checkReadLate reads a watch after all changes. A source may end a watch that is too far behind.
func checkReadLate(t *sourceTrial) error {
	_, w, err := t.startWatch("create a=0")
	if err != nil {
		return err
	}
	defer w.Stop()
	var want []string
	for n := range t.unreadChanges() / 3 { // a source may drop events of one type only
		name := "late-" + strconv.Itoa(n)
		if err := t.write("create "+name+"=1", "update "+name+"=2", "delete "+name); err != nil {
			return err
		}
		want = append(want, "ADDED "+name+"=1", "MODIFIED "+name+"=2", "DELETED "+name+"=2")
	}
	// What fills the watch's buffer must find it full, at first and again after each read: a source
	// may drop only what comes then, or only after a time.
	time.Sleep(t.unreadTime())
	for at, wanted := range want {
		time.Sleep(t.quiet / 100)
		got, _, err := w.next()
		switch {
		case errors.Is(err, errQuiet):
			return fmt.Errorf("a watch that was read after %d changes delivers %d of them: a reflector would miss the others for good", len(want), at)
		case err != nil:
			return t.resumesLate(w.newest, want[at:]) // it has ended
		case got != wanted:
			return fmt.Errorf("a watch that was read after %d changes delivers %s instead of %s: a reflector would miss it for good", len(want), got, wanted)
		}
	}
	return nil
}

// unreadTime is how long a watch is not read. Virtual time costs nothing.
func (t *sourceTrial) unreadTime() time.Duration {
	if t.virtual {
		return t.patience
	}
	return t.quiet
}

// resumesLate is resumes for a version that may have expired, and watches that end again before all
// is read: a reflector resumes each from its last event.
func (t *sourceTrial) resumesLate(version string, want []string) error {
	for len(want) > 0 {
		delivered, err := t.resumeOnce(version, want)
		if isExpired(err) {
			return nil
		}
		advanced := len(delivered) > 0 && errors.Is(err, errEnded)
		if err != nil && !advanced {
			return err
		}
		version = delivered[len(delivered)-1].version
		want = want[len(delivered):]
	}
	return nil
}

// resumeOnce returns the objects of the wanted changes that one watch delivers.
func (t *sourceTrial) resumeOnce(version string, want []string) ([]seen, error) {
	w, err := t.watchFrom(version)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	return w.tells(want...)
}

const (
	// listRounds is how often the check repeats its changes, and changesInRound how many a source must remember.
	listRounds     = 8
	changesInRound = 6
	// listsInRound bounds the lists of a round.
	listsInRound = 20
	// changePause and listPause let changes come between the steps of a list, also in virtual time.
	// There no list and no change come at the same time after a round's beginning, so their order
	// is certain.
	changePause = 300 * time.Microsecond
	listPause   = 110 * time.Microsecond
)

// checkListDuringChanges lists while the backend changes. A watch from each list's version must lead to the last state.
func checkListDuringChanges(t *sourceTrial) error {
	if err := t.write("create a=0", "create b=0"); err != nil {
		return err
	}
	for round := range listRounds {
		lists, err := t.listDuring(round, func() error { return t.changeOften(round) })
		if err != nil {
			return err
		}
		last, err := t.list(metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, l := range lists {
			if err := t.leadsTo(l, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeOften makes the changes of a round.
func (t *sourceTrial) changeOften(round int) error {
	for n := range changesInRound {
		name := []string{"a", "b"}[n%2]
		mark := strconv.Itoa(round*changesInRound + n + 1)
		if err := t.write("update " + name + "=" + mark); err != nil {
			return err
		}
		time.Sleep(changePause)
	}
	return nil
}

// listDuring lists until change has returned. Each round begins with the next way to list.
func (t *sourceTrial) listDuring(round int, change func() error) (lists []listing, err error) {
	ways := t.waysToList()
	changed := make(chan error, 1)
	go func() { changed <- change() }()
	for {
		select {
		case err := <-changed:
			return lists, err
		default:
		}
		if len(lists) == listsInRound {
			return lists, <-changed
		}
		l, err := ways[(round+len(lists))%len(ways)]()
		if err != nil {
			return lists, errors.Join(err, <-changed)
		}
		lists = append(lists, l)
		time.Sleep(listPause)
	}
}

// waysToList returns the ways in which a reflector may list the source.
func (t *sourceTrial) waysToList() []func() (listing, error) {
	ways := []func() (listing, error){
		func() (listing, error) { return t.list(metav1.ListOptions{}) },
		t.listPages,
	}
	if lacksItems(t) == "" {
		ways = append(ways, t.listItems)
	}
	if lacksStreaming(t) == "" {
		ways = append(ways, t.listStream)
	}
	return ways
}

// listPages lists in pages of one object. Changes may come between two pages.
func (t *sourceTrial) listPages() (listing, error) {
	whole, _, err := t.pages(1, nil)
	return whole, err
}

// listItems lists by ListItems. It does not wait at each item as takeItems does: the changes would
// be over after few lists.
func (t *sourceTrial) listItems() (listing, error) {
	var about metav1.ListMeta
	var items []runtime.Object
	err := t.inTime("ListItems", func() (err error) {
		about, err = t.Source.(itemLister).ListItems(
			t.ctx, metav1.ListOptions{}, func(_ metav1.ListMeta, item runtime.Object) error {
				items = append(items, item)
				return nil
			})
		return err
	})
	if err != nil {
		return listing{}, fmt.Errorf("ListItems: %w", err)
	}
	return t.listingOf(about.ResourceVersion, about.Continue, items)
}

// listStream lists by a streaming list. Changes may come among its initial events.
func (t *sourceTrial) listStream() (listing, error) {
	w, err := t.openStream("")
	if err != nil {
		return listing{}, err
	}
	defer w.Stop()
	content := map[string]seen{}
	until := time.Now().Add(t.patience) // bookmarks may never end
	for {
		kind, object, mark, err := w.take(time.Until(until))
		switch {
		case err != nil:
			return listing{}, fmt.Errorf("in a streaming list during changes: %w", err)
		case kind == watch.Deleted:
			delete(content, object.name)
		case kind != watch.Bookmark:
			content[object.name] = object
		case mark.endsInitial:
			return listing{
				version: mark.version, items: slices.Collect(maps.Values(content)),
			}, nil
		}
	}
}

// leadsTo checks that a list and the changes after its version make a later list.
func (t *sourceTrial) leadsTo(from, to listing) error {
	w, err := t.watchFrom(from.version)
	if isExpired(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	content := map[string]string{}
	for _, item := range from.items {
		content[item.name] = item.String()
	}
	for !slices.Equal(slices.Sorted(maps.Values(content)), to.names()) {
		kind, object, _, err := w.take(t.patience)
		switch {
		case isExpired(err):
			return nil
		case err != nil:
			return fmt.Errorf("a list has %q at version %s, and the watch from there leads to %q instead of %q: "+
				"the version was newer than the list, and a reflector would miss what changed in between: %w",
				from.names(), from.version, slices.Sorted(maps.Values(content)), to.names(), err)
		case kind == watch.Deleted:
			delete(content, object.name)
		case kind != watch.Bookmark:
			content[object.name] = object.String()
		}
	}
	return nil
}

func lacksLabel(t *sourceTrial) string {
	if t.Label == nil {
		return "the rig has no Label, so no object enters or leaves a selector"
	}
	return ""
}

// checkLeavesSelector lets objects enter and leave a label selector.
func checkLeavesSelector(t *sourceTrial) error {
	if err := t.write("create a=1", "create b=1", "label a=yes"); err != nil {
		return err
	}
	selected := metav1.ListOptions{LabelSelector: SelectedLabel + "=yes"}
	l, err := t.list(selected)
	if err != nil {
		return nil // refused
	}
	if err := l.holds("a=1"); err != nil {
		return fmt.Errorf("with the label selector %s: %w", selected.LabelSelector, err)
	}
	selected.ResourceVersion = l.version
	w, err := t.watch(selected)
	if err != nil {
		return nil // refused
	}
	defer w.Stop()
	if err := t.write("label b=yes", "update a=2", "label a=no", "update a=3", "update b=2", "delete b", "label a=yes"); err != nil {
		return err
	}
	if err := w.tellsSelected(); err != nil {
		return err
	}
	resumed, err := t.watch(selected)
	if err != nil {
		return fmt.Errorf("the same watch, after the changes: %w", err)
	}
	defer resumed.Stop()
	if err := resumed.tellsSelected(); err != nil {
		return fmt.Errorf("in a watch opened after the changes: %w", err)
	}
	return nil
}

// tellsSelected checks the events of checkLeavesSelector.
func (o *observed) tellsSelected() error {
	for _, wanted := range []string{"ADDED b=1", "MODIFIED a=2", "DELETED a", "MODIFIED b=2", "DELETED b", "ADDED a=3"} {
		got, object, err := o.next()
		if err == nil && got != wanted && got != wanted+"="+object.mark {
			err = fmt.Errorf("the watch delivers %s", got)
		}
		if err != nil {
			return fmt.Errorf("with a label selector that objects enter and leave, a reflector would miss %s, and keep an object that is "+
				"not selected: %w", wanted, err)
		}
	}
	return nil
}
