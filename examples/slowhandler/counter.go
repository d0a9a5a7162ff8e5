package main

import (
	"context"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// counter is a source of one object, whose version is a number that counts up. It
// stands for an API, without what an API would cost.
type counter struct {
	ctx    context.Context
	events chan watch.Event // unbuffered: no update is sent before it is wanted
	number int
}

func newCounter(ctx context.Context) *counter {
	return &counter{ctx: ctx, events: make(chan watch.Event), number: 1}
}

func (c *counter) version() string { return strconv.Itoa(c.number) }

// object is its present state: about 1 KiB that no other state shares.
func (c *counter) object() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "counter", UID: types.UID("counter"), ResourceVersion: c.version(),
		Annotations: map[string]string{"payload": strings.Repeat("x", 1024)},
	}}
}

// countTo sends that many updates.
func (c *counter) countTo(updates int) error {
	for range updates {
		c.number++
		select {
		case c.events <- watch.Event{Type: watch.Modified, Object: c.object()}:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	return nil
}

// source lists and watches the object. There is one watch at a time, and it does not
// end before the run does.
func (c *counter) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{
				ListMeta: metav1.ListMeta{ResourceVersion: c.version()},
				Items:    []metav1.PartialObjectMetadata{*c.object()},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(c.events), nil
		},
	}
}
