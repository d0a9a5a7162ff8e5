package cache

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A list that comes item by item (ItemLister). The source calls on its goroutine,
// the store is called on the run's; items go from one to the other in batches, over a
// channel without a buffer. So while the store waits the source is not read, and no
// more is held than one batch on each side.

// itemBatch is some items of a list, in its order, and what the list had said of
// itself by the last of them.
type itemBatch struct {
	list  metav1.ListMeta
	items []runtime.Object
}

// itemTaker is the source's side of one call.
type itemTaker struct {
	ctx     context.Context
	batches chan itemBatch
	// batch is what has been collected. It belongs to whoever has the turn.
	batch itemBatch
	// first is true until something has been handed over.
	first bool

	mu sync.Mutex
	// busy is true while a call of take has the turn.
	busy bool
	// over is what take answers from now on, if anything.
	over error
}

// list makes the call and hands over what it brings.
func (t *itemTaker) list(ctx context.Context, source ItemLister, options metav1.ListOptions) (metav1.ListMeta, error) {
	t.ctx = ctx
	about, err := source.ListItems(ctx, options, t.take)
	// A source that has not passed on an error of take has left out items: its list
	// must not count as whole.
	if left := t.end(); err == nil {
		err = left
	}
	if err == nil && len(t.batch.items) > 0 {
		err = t.handOver()
	}
	return about, err
}

// take is what the source is given to call.
func (t *itemTaker) take(list metav1.ListMeta, item runtime.Object) error {
	if err := t.begin(); err != nil {
		return err
	}
	var err error
	if t.batch.items == nil {
		t.batch.items = make([]runtime.Object, 0, partSize)
	}
	t.batch.list = list
	t.batch.items = append(t.batch.items, item)
	// The first item goes alone: a list that went back in time is not read further.
	if t.first || len(t.batch.items) >= partSize {
		err = t.handOver()
	}
	return t.taken(err)
}

// begin takes the turn.
func (t *itemTaker) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over != nil:
	case t.busy:
		t.over = errTakenAtOnce
	default:
		// Not left to the hand-over, which is a hundred items away.
		t.over = t.ctx.Err()
	}
	t.busy = t.busy || t.over == nil
	return t.over
}

// taken gives the turn back. After an error nothing more is taken.
func (t *itemTaker) taken(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	if t.over == nil {
		t.over = err
	}
	return t.over
}

// end ends the taking, and returns the error that had ended it before. It has the
// turn from then on, unless that is an error.
func (t *itemTaker) end() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.over
	switch {
	case before != nil:
	case t.busy:
		before = errTakenAtOnce
		t.over = before
	default:
		t.over = errTakenLate
	}
	return before
}

// handOver gives the run what has been collected.
func (t *itemTaker) handOver() error {
	batch := t.batch
	t.batch.items, t.first = nil, false
	select {
	case t.batches <- batch:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// itemPage asks for one page, or the whole list, takes it item by item and returns
// the token of the next. answered is false if it was the request that failed.
func (l *listing) itemPage(options metav1.ListOptions) (token string, answered bool, err error) {
	taker := &itemTaker{batches: make(chan itemBatch), first: true}
	call := sourceCall{op: "List", batches: taker.batches, take: l.takeBatch}
	answer := ask(l.run, call, func(ctx context.Context) (metav1.ListMeta, error) {
		return taker.list(ctx, l.itemLister, options)
	})
	switch {
	case answer.refused != nil:
		return "", true, answer.refused
	case answer.ended:
		return "", false, l.ctx.Err()
	case answer.err != nil:
		return "", false, answer.err
	}
	return answer.value.Continue, true, l.endItemPage(answer.value)
}

// takeBatch takes some items. The version is checked as soon as the list says it,
// before any of them reaches the store.
func (l *listing) takeBatch(batch itemBatch) error {
	if version := batch.list.ResourceVersion; !l.versioned && version != "" {
		if err := l.isAt(version); err != nil {
			return err
		}
	}
	for _, item := range batch.items {
		if err := l.takeItem(item); err != nil {
			return err
		}
	}
	return nil
}

// takeItem takes one item.
//
// As long as the list has said no version, its items may be older than what is there
// or has been shown, and nothing of them must show: they are prepared aside, so that a
// transform has made of them what is kept. Many servers say the version after the
// items. Where no version is too old they show as they come, and are noted.
func (l *listing) takeItem(item runtime.Object) error {
	switch {
	case l.answered != "":
	case !l.versioned && l.progress.mayBeTooOld():
		l.unchecked = true
	default:
		l.newest = newerOf(l.newest, receivedOf(item).ResourceVersion)
	}
	return l.add(item)
}

// endItemPage ends a page of which about is everything it has said of itself.
func (l *listing) endItemPage(about metav1.ListMeta) error {
	version := about.ResourceVersion
	if l.pages == 0 && (!l.versioned || version != "" && version != l.answered) {
		if err := l.isAt(version); err != nil {
			return err
		}
	}
	return l.endPage()
}

// isAt takes the list to be at version, if that may be.
func (l *listing) isAt(version string) error {
	if err := l.checkVersion(version); err != nil {
		return err
	}
	l.checked()
	return nil
}
