package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi"
)

// requestList is what asking is told of a list.
const requestList = "list"

// requestAudience hears of the mirror's requests, one at a time.
type requestAudience interface {
	// asking hears of each request before it is sent.
	asking(request string)
	// gotPage hears of each page of a list that came.
	gotPage(page)
	// watching hears of each watch that is open, before its first event, which
	// waits for it. ctx is the watch's.
	watching(ctx context.Context, version string)
}

// page is what one answer to a list brought.
type page struct {
	// number counts from 1; objects are those of all pages up to this one.
	number, objects int
	// total is how many objects the whole list has, 0 if the server does not say.
	total   int
	version string
	last    bool
	took    time.Duration // since the list was asked for
}

// requests is a source that tells of what is asked of it. It is a way to look on:
// a mirror needs none of it.
type requests struct {
	*kubeapi.ListerWatcher
	told requestAudience

	// What the pages of the list under way add up to. The mirror makes one
	// request at a time.
	began   time.Time
	pages   int
	objects int
}

// ListItems implements cache.ItemLister, which a reflector calls in place of
// ListWithContext.
func (r *requests) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error) {
	if options.Continue == "" {
		r.began, r.pages, r.objects = time.Now(), 0, 0
		r.told.asking(requestList)
	}
	items := 0
	list, err := r.ListerWatcher.ListItems(ctx, options, func(list metav1.ListMeta, item runtime.Object) error {
		items++
		return take(list, item)
	})
	if err == nil {
		r.told.gotPage(r.add(list, items))
	}
	return list, err
}

func (r *requests) add(list metav1.ListMeta, items int) page {
	r.pages++
	r.objects += items
	p := page{
		number:  r.pages,
		objects: r.objects,
		version: list.ResourceVersion,
		last:    list.Continue == "",
		took:    time.Since(r.began),
	}
	switch remaining := list.RemainingItemCount; {
	case p.last:
		p.total = p.objects
	case remaining != nil:
		p.total = p.objects + int(*remaining)
	}
	return p
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (r *requests) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	r.told.asking("watch from version " + options.ResourceVersion)
	events, err := r.ListerWatcher.WatchWithContext(ctx, options)
	if err == nil {
		r.told.watching(ctx, options.ResourceVersion)
	}
	return events, err
}
