package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Checks of how watches end.

func lacksTimeouts(t *sourceTrial) string {
	if t.config.NoTimeouts {
		return "NoTimeouts: the source takes no notice of timeoutSeconds"
	}
	return ""
}

// checkTimeout lets a watch time out without changes and, since a source may count from the last event, during changes.
func checkTimeout(t *sourceTrial) error {
	const timeout = "its timeoutSeconds"
	err := t.timesOut("a", func(w *observed, due time.Duration) error { return w.endsCleanly(timeout, due) })
	if err != nil {
		return err
	}
	mark := 2
	change := func() error {
		mark++
		return t.write("update b=" + strconv.Itoa(mark))
	}
	err = t.timesOut("b", func(w *observed, due time.Duration) error { return w.endsDuring(change, timeout, due) })
	if err != nil {
		return fmt.Errorf("while an object changes: %w", err)
	}
	return nil
}

// timesOut opens a watch with a timeout, and checks that it ends as ends says.
func (t *sourceTrial) timesOut(name string, ends func(w *observed, due time.Duration) error) error {
	// Long enough for an event on a busy machine. It includes the first writes and lists, which are short.
	seconds := int64(3)
	due := time.Duration(seconds) * time.Second
	opened := time.Now()
	_, w, err := t.startWatchWith(metav1.ListOptions{TimeoutSeconds: &seconds}, "create "+name+"=1")
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update " + name + "=2"); err != nil {
		return err
	}
	if _, err := w.tells("MODIFIED " + name + "=2"); err != nil && time.Since(opened) < due { // a busy machine may be later
		return err
	}
	if err := ends(w, due); err != nil {
		return err
	}
	// Allow a tenth for clock differences.
	if lasted := time.Since(opened); lasted < due-due/10 {
		return fmt.Errorf("a watch of %v ended after %v: a reflector would count it as a failure and slow down", due, lasted)
	}
	return nil
}

func lacksEndWatches(t *sourceTrial) string {
	if t.EndWatches == nil {
		return "the rig has no EndWatches"
	}
	return ""
}

func checkBackendEnd(t *sourceTrial) error {
	w, err := t.startAdvancedWatch()
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.EndWatches(); err != nil {
		return fmt.Errorf("could not have the watches ended: %w", err)
	}
	if err := w.endsCleanly("its end by the backend", 0); err != nil {
		return err
	}
	if err := t.write("update a=3"); err != nil {
		return err
	}
	return t.resumes(w.newest, []string{"MODIFIED a=3"})
}

// checkStop stops watches in the states in which a reflector may: idle, with unread events, at once, and twice.
func checkStop(t *sourceTrial) error {
	l, idle, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	idle.Stop()
	if err := idle.ends("Stop of an idle watch"); err != nil {
		return err
	}
	full, err := t.watchFrom(l.version)
	if err != nil {
		return err
	}
	defer full.Stop()
	if err := t.write("update a=2", "update a=3", "update a=4"); err != nil {
		return err
	}
	if _, err := full.tells("MODIFIED a=2"); err != nil {
		return err
	}
	err = t.inTime("Stop", func() error {
		full.Stop()
		full.Stop()
		return nil
	})
	if err != nil {
		return fmt.Errorf("stopping a watch twice: %w", err)
	}
	if err := full.ends("Stop with events unread"); err != nil {
		return err
	}
	full.Stop() // after its end, as a reflector's defer does
	if _, err := full.read(t.patience); !errors.Is(err, errEnded) {
		return fmt.Errorf("a closed channel is read again: %v", err)
	}
	return nil
}

func checkContextEnd(t *sourceTrial) error {
	l, idle, err := t.startWatch("create a=1")
	if err != nil {
		return err
	}
	idle.Stop()
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	options := metav1.ListOptions{ResourceVersion: l.version}
	open := func() (watch.Interface, error) { return t.Source.WatchWithContext(ctx, options) }
	w, err := t.watchBy(options, open)
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := t.write("update a=2", "update a=3"); err != nil {
		return err
	}
	if _, err := w.tells("MODIFIED a=2"); err != nil {
		return err
	}
	cancel()
	if err := w.ends("the end of its context"); err != nil {
		return err
	}
	if err := t.watchTooLate(open); err != nil {
		return err
	}
	return t.inTime("List with a context that has ended", func() error {
		list, err := t.Source.ListWithContext(ctx, metav1.ListOptions{})
		if err == nil && isNil(list) {
			return errors.New("List with a context that has ended returned neither a list nor an error")
		}
		return nil
	})
}

// watchTooLate opens a watch with a context that has ended. It must fail or end at once.
func (t *sourceTrial) watchTooLate(open func() (watch.Interface, error)) error {
	var late watch.Interface
	err := t.inTime("Watch with a context that has ended", func() (err error) {
		late, err = open()
		return err
	})
	switch {
	case err != nil && isNil(late):
		return nil
	case err != nil || isNil(late):
		return fmt.Errorf("Watch with a context that has ended returned the watch %v and the error %w", late, err)
	}
	defer late.Stop()
	o := &observed{Interface: late, trial: t, results: late.ResultChan()}
	return o.ends("being opened with a context that has ended")
}

// watchesForLeak is the number of watches opened and ended, alternately by Stop and by context. A source may keep some
// goroutines, for a pooled connection for example, but not one for each watch.
const watchesForLeak = 40

// leakLabel marks the goroutines of a check and those that they start.
const leakLabel = "cachetest-conformance"

func checkGoroutines(t *sourceTrial) error {
	if err := t.write("create a=0"); err != nil {
		return err
	}
	label := fmt.Sprintf("%p", t) // unique while this trial exists
	var err error
	pprof.Do(t.ctx, pprof.Labels(leakLabel, label), func(context.Context) { err = t.checkLeak(label) })
	return err
}

func (t *sourceTrial) checkLeak(label string) error {
	for n := range watchesForLeak {
		if err := t.watchOnce(n+1, n%2 == 0); err != nil {
			return err
		}
	}
	for until := time.Now().Add(t.patience); ; time.Sleep(t.quiet / 10) {
		left := labelled(label)
		if left < watchesForLeak/2 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d goroutines are left of %d watches that have ended: a reflector opens one every few minutes, for months", left, watchesForLeak)
		}
	}
}

// watchOnce opens a watch, reads one event and ends the watch, either by its context alone or by Stop.
func (t *sourceTrial) watchOnce(n int, byContext bool) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	one := *t
	one.ctx = ctx
	l, err := t.list(metav1.ListOptions{})
	if err != nil {
		return err
	}
	w, err := one.watchFrom(l.version)
	if err != nil {
		return err
	}
	change := "a=" + strconv.Itoa(n)
	err = t.write("update " + change)
	if err == nil {
		_, err = w.tells("MODIFIED " + change)
	}
	if byContext && err == nil {
		cancel()
		return w.ends("the end of its context")
	}
	w.Stop()
	if err != nil {
		return err
	}
	return w.ends("Stop")
}

// labelHead matches the first line of a goroutine group in the profile: their number and stack. The next line has their
// labels.
var labelHead = regexp.MustCompile(`^(\d+) @`)

// labelled counts the goroutines with the label, including the caller. Labels are inherited, so other tests of the
// process do not count.
func labelled(label string) int {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return 0
	}
	wanted := strconv.Quote(leakLabel) + ":" + strconv.Quote(label)
	total, group := 0, 0
	for line := range strings.Lines(profile.String()) {
		if head := labelHead.FindStringSubmatch(line); head != nil {
			group, _ = strconv.Atoi(head[1])
		} else if strings.HasPrefix(line, "# labels:") && strings.Contains(line, wanted) {
			total += group
		}
	}
	return total
}
