package client

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// behindTimed is how many changes are timed before merging begins, and how many from then
// on. It is done by the last of them if each merges 200 of a backlog of 200,000: ours
// merges more.
const behindTimed = 1000

// unmerged is how many changes wait for a handler of ours, with the default delivery,
// before they are merged.
func (t Task) unmerged() int { return max(1024, 2*t.Items) }

// behind has a handler hang while as many objects as the task has items change in turn,
// and times how long changes take to another handler: the last ones before those that wait
// for the first are merged, and the first ones afterwards. client-go's, which does not
// merge, are timed at the same places.
func (t Task) behind(ctx context.Context) (Result, error) {
	b := &backlogged{Task: t, source: local.NewSource(t.Items, 0), fleet: newFleet(ctx)}
	changes := 1 + t.unmerged() + behindTimed
	hangs, release := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	defer b.stop()
	defer goOn()
	if err := b.start(changes, hangs, release); err != nil {
		return Result{}, err
	}
	if _, err := b.change(1); err != nil {
		return Result{}, err
	}
	if err := b.wait(hangs, "the handler's first call"); err != nil {
		return Result{}, err
	}
	if _, err := b.change(t.unmerged() - behindTimed); err != nil {
		return Result{}, err
	}

	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	result := Result{Items: t.Items}
	if result.BeforeDelay, err = b.timed(); err != nil {
		return Result{}, err
	}
	if result.HandlerDelay, err = b.timed(); err != nil {
		return Result{}, err
	}
	goOn()
	if err := b.until(func() bool { return b.newest.Load() == int64(t.Items) }, "the last state of every object"); err != nil {
		return Result{}, err
	}
	result.Calls = b.calls.Load()
	return result, finish()
}

// backlogged is an informer with a handler that hangs, and one that does not.
type backlogged struct {
	Task
	*fleet
	source *local.Source
	// changed is how many changes there were.
	changed int
	// calls counts the updates that the stalled handler received, newest those of
	// them that are their object's last.
	calls, newest atomic.Int64
	// heard is what the other one received last.
	heard atomic.Pointer[hearing]
}

// hearing is when a handler received a version: to wait for that takes longer.
type hearing struct {
	version string
	at      time.Time
}

// start runs the informer with its handlers until both have the first list. The one that
// hangs is the first, and so called before the other. Objects change in turn, so their last
// states are those of the last changes, one each, and a version is how many objects and
// changes there were until then.
func (b *backlogged) start(changes int, hangs chan<- struct{}, release <-chan struct{}) error {
	var listed atomic.Int64
	add := func(*corev1.ConfigMap) { listed.Add(1) }
	stalled := sides.Handler[*corev1.ConfigMap]{Add: add, Update: func(object *corev1.ConfigMap) {
		if b.calls.Add(1) == 1 {
			close(hangs)
			<-release
		}
		if version, err := strconv.Atoi(object.ResourceVersion); err == nil && version > changes {
			b.newest.Add(1)
		}
	}}
	timed := sides.Handler[*corev1.ConfigMap]{Add: add, Update: func(object *corev1.ConfigMap) {
		b.heard.Store(&hearing{object.ResourceVersion, time.Now()})
	}}
	if _, err := b.add(b.Task, b.source, stalled, timed); err != nil {
		return err
	}
	return b.until(func() bool { return listed.Load() == 2*int64(b.Items) }, "the handlers' first list")
}

// change changes so many objects, waits until the handler that does not hang has heard of
// the last, and says when it did.
func (b *backlogged) change(changes int) (heard time.Time, err error) {
	var last string
	for range changes {
		if last, err = b.source.Update(b.ctx, b.changed%b.Items); err != nil {
			return time.Time{}, err
		}
		b.changed++
	}
	err = b.until(func() bool { now := b.heard.Load(); return now != nil && now.version == last }, "the other handler's call")
	if err != nil {
		return time.Time{}, err
	}
	return b.heard.Load().at, nil
}

// timed is how many seconds the slowest of some changes took, one at a time.
func (b *backlogged) timed() (slowest float64, err error) {
	for range behindTimed {
		began := time.Now()
		heard, err := b.change(1)
		if err != nil {
			return 0, err
		}
		slowest = max(slowest, heard.Sub(began).Seconds())
	}
	return slowest, nil
}
