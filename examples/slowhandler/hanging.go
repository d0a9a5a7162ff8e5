package main

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// hanging is a handler that does not return from its first call before goOn.
type hanging struct {
	entered  chan struct{} // closed in the first call
	caughtUp chan struct{} // closed once it was told of the awaited version

	// awaited is written before goOn; calls is the handler's until caughtUp is closed.
	awaited string
	calls   int

	once     sync.Once
	released chan struct{}
}

func newHanging() *hanging {
	return &hanging{entered: make(chan struct{}), caughtUp: make(chan struct{}), released: make(chan struct{})}
}

// goOn lets the first call return. It may be called more than once.
func (h *hanging) goOn() { h.once.Do(func() { close(h.released) }) }

func (h *hanging) OnAdd(*metav1.PartialObjectMetadata, bool) {
	h.calls++
	close(h.entered)
	<-h.released
}

func (h *hanging) OnUpdate(_, newState *metav1.PartialObjectMetadata) {
	h.calls++
	if newState.ResourceVersion == h.awaited {
		close(h.caughtUp)
	}
}

func (h *hanging) OnDelete(cache.DeletedObject[*metav1.PartialObjectMetadata]) { h.calls++ }
