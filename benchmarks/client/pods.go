package client

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/benchmarks/pods"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// sync fills a cache and measures the heap while it does.
func (t Task) sync(ctx context.Context) (Result, error) {
	source, err := t.Side.Open(t.Target)
	if err != nil {
		return nil, err
	}
	var cache *sides.Cache
	peak := peakDuring(func() {
		cache, err = source.Fill(ctx, t.Strategy, pods.Strip)
		if err == nil {
			err = t.checkCount(cache.Len())
		}
	})
	if err != nil {
		return nil, err
	}
	steady := liveHeap()
	// The cache must be there until here, and so must what it has been filled from.
	return Result{"peak / steady": float64(peak) / steady}, t.checkCount(cache.Len())
}

// read reads pods and keeps none.
func (t Task) read(ctx context.Context) (Result, error) {
	source, err := t.Side.Open(t.Target)
	if err != nil {
		return nil, err
	}
	// Work done once in a process, and growth, are not measured.
	if _, err := t.readSome(ctx, source, min(t.Items, sides.PageSize)); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	items := 0
	spent := measured(func() { items, err = t.readSome(ctx, source, t.Items) })
	return spent.per("pod", t.Items), errors.Join(err, t.checkCount(items))
}

// readSome reads at least so many items.
func (t Task) readSome(ctx context.Context, source *sides.Source, items int) (int, error) {
	options := metav1.ListOptions{AllowWatchBookmarks: true}
	switch t.Work {
	case List:
		return source.List(ctx, (items+sides.PageSize-1)/sides.PageSize)
	case Stream:
		yes := true
		options.SendInitialEvents = &yes
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	case Events:
		options.ResourceVersion = "1"
	}
	return source.Watch(ctx, options, items)
}

func (t Task) checkCount(items int) error {
	if items != t.Items {
		return fmt.Errorf("%d items of %d came", items, t.Items)
	}
	return nil
}
