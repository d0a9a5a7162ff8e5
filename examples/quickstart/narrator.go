package main

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

// narrator prints what the mirror asks for, gets and is told. Its methods may be
// called concurrently.
type narrator struct {
	show *display
	// what is mirrored, as people call it: "pods".
	what string
	// trial hears of what comes before the first watch is open.
	trial *trial
	// resumed, if set, is told of a watch that goes on without a list, in place
	// of the narrator's own line.
	resumed func(version string)
	// shown is closed once the first list has been shown. The first watch waits
	// for that, so that things are told in their order. opened is closed once
	// that watch is open.
	shown, opened chan struct{}
	openedOnce    sync.Once

	mu    sync.Mutex
	told  tally
	pause pause
	// percent is how far the list was when that was last printed to stay.
	percent int
	// deleted are the versions at which objects were deleted, by key; nil while
	// nobody wants to know.
	deleted map[string]string
}

// tally counts what was told after the first list.
type tally struct{ added, updated, deleted, failures int }

// pause is what lies between two requests.
type pause struct {
	// since is when the last request failed; zero if it did not.
	since time.Time
	// listed is true if a list was asked for since the last watch.
	listed bool
}

func newNarrator(show *display, what string, trial *trial) *narrator {
	return &narrator{show: show, what: what, trial: trial, shown: make(chan struct{}), opened: make(chan struct{})}
}

// OnAdd implements cache.TypedResourceEventHandler. The objects of the first list are
// seen arriving page by page.
func (n *narrator) OnAdd(object *unstructured.Unstructured, initial bool) {
	if initial {
		return
	}
	n.count(func(t *tally) { t.added++ })
	n.show.delta(green, "+", keyOf(object), whatIsNew(object), object.GetResourceVersion())
}

// OnUpdate implements cache.TypedResourceEventHandler.
func (n *narrator) OnUpdate(before, now *unstructured.Unstructured) {
	n.count(func(t *tally) { t.updated++ })
	n.show.delta(yellow, "~", keyOf(now), whatChanged(before, now), now.GetResourceVersion())
}

// OnDelete implements cache.TypedResourceEventHandler. There is always a key; of a
// deletion that was not seen there is at best a state from before it.
func (n *narrator) OnDelete(gone cache.DeletedObject[*unstructured.Unstructured]) {
	how := "deleted"
	if !gone.Exact() {
		how = "gone, seen by a list"
	}
	version := "unknown"
	if last, known := gone.Last(); known {
		version = last.GetResourceVersion()
	}
	n.count(func(t *tally) { t.deleted++ })
	n.mu.Lock()
	if n.deleted != nil {
		n.deleted[gone.GetKey()] = version
	}
	n.mu.Unlock()
	n.show.delta(red, "-", gone.GetKey(), how, version)
}

// failed implements audience.
func (n *narrator) failed(err error) {
	n.count(func(t *tally) { t.failures++ })
	cause := cache.CauseOf(err)
	n.show.tell(red, "✗", "failure reported, cause %q: %v", cause, err)
	if cause == "object" {
		return // one object's, and no request's
	}
	if pause := pauseAskedBy(err); pause > 0 {
		n.show.tell(dim, "·", "it asks for a pause of %v", pause)
	}
	n.mu.Lock()
	n.pause.since = time.Now()
	n.mu.Unlock()
	n.trial.failed(err)
}

// asking implements requestAudience.
func (n *narrator) asking(request string) {
	n.mu.Lock()
	since := n.pause.since
	n.pause.since = time.Time{}
	stage := stageWatch
	if request == requestList {
		stage = stageList
		n.pause.listed, n.percent = true, 0
	}
	n.mu.Unlock()
	n.trial.asked(stage)
	if !since.IsZero() {
		n.show.tell(dim, "·", "after a pause of %.1f s: %s", time.Since(since).Seconds(), request)
	}
}

// gotPage implements requestAudience.
func (n *narrator) gotPage(p page) {
	if p.last {
		n.trial.answered()
	} else {
		n.trial.heard()
	}
	if p.total == 0 && !p.last {
		n.progress("", fmt.Sprintf("%s so far: %d %s", pageName(p), p.objects, n.what), true)
		return
	}
	percent := 100
	if p.total > 0 {
		percent = 100 * p.objects / p.total
	}
	// Where lines cannot be rewritten a long list is not to fill the screen.
	n.mu.Lock()
	stays := percent >= n.percent+10 || p.last
	if stays {
		n.percent = percent
	}
	n.mu.Unlock()
	n.progress(n.show.progress(percent, 100)+" ", fmt.Sprintf("%3d %%  %d of %d %s", percent, p.objects, p.total, n.what), stays)
}

// progress prints how far the list is, behind a bar or nothing, in so few columns
// that it can be rewritten on most terminals.
func (n *narrator) progress(bar, text string, stays bool) {
	clock := n.show.clock()
	room := rewriteWidth - utf8.RuneCountInString(clock) - 1
	if bar != "" {
		room -= barWidth + 1
	}
	n.show.rewrite(n.show.paint(dim, clock)+" "+bar+cut(text, room), stays)
}

func pageName(p page) string {
	if p.number == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", p.number)
}

// watching implements requestAudience.
func (n *narrator) watching(ctx context.Context, version string) {
	n.trial.answered()
	select {
	case <-ctx.Done():
		return
	case <-n.shown:
	}
	n.mu.Lock()
	listed := n.pause.listed
	n.pause.listed = false
	n.mu.Unlock()
	defer n.openedOnce.Do(func() { close(n.opened) })
	switch {
	case listed:
		n.show.tell(plain, "·", "watching from version %s", version)
	case n.resumed != nil:
		n.resumed(version)
	default:
		n.show.tell(green, "✓", "watching again from version %s, without a list", version)
	}
}

// listShown lets the watch begin, and waits until it is open. The error is that of
// the trial, whose limit this is.
func (n *narrator) listShown(ctx context.Context, limit time.Duration) error {
	close(n.shown)
	n.trial.slow = func() {
		n.show.tell(yellow, "!", "the watch has not been answered for %v; some proxies hold the answer back until something changes", maxSilence)
	}
	return n.trial.wait(ctx, stageWatch, n.opened, limit)
}

// tally is what was told so far.
func (n *narrator) tally() tally {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told
}

func (n *narrator) count(one func(*tally)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one(&n.told)
}

// rememberDeletions has deletedAfter know of deletions from now on.
func (n *narrator) rememberDeletions() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deleted = map[string]string{}
}

// deletedAfter says whether the key is known to have been deleted at a later
// version.
func (n *narrator) deletedAfter(version, key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, known := n.deleted[key]
	return known && older(version, at)
}

// keyOf is an object's key in the mirror.
func keyOf(object *unstructured.Unstructured) string {
	return cache.MetaObjectToName(object).String()
}
