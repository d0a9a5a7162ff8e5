package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// expires is the annotation that says when a session ends, as time.RFC3339Nano.
const expires = "shop.example/expires"

// retryAfter is the pause after a failed deletion.
const retryAfter = 10 * time.Second

// Session is a session; the reaper only needs its metadata.
type Session = metav1.PartialObjectMetadata

// Reaper deletes sessions when they expire. It is the controller under test.
//
// It keeps no list of its own of due times: each time something has changed,
// or is due, it looks at the mirror. So there is nothing that an outage or a missed
// change could leave behind.
type Reaper struct {
	sessions *cache.Informer[*Session]
	remove   func(ctx context.Context, namespace, name string) error
	out      io.Writer
	// wake is not empty if the sessions have changed since they were last read.
	wake chan struct{}
}

// NewReaper returns a reaper of the source's sessions. The remove function deletes one
// at the source; out receives a line for each removal.
func NewReaper(source cache.Source, remove func(ctx context.Context, namespace, name string) error, out io.Writer) *Reaper {
	return &Reaper{
		sessions: cache.NewTypedInformer(source, cache.InformerConfig[*Session]{Name: "sessions"}),
		remove:   remove, out: out,
		wake: make(chan struct{}, 1),
	}
}

// Run works until ctx ends, and then returns nil.
func (r *Reaper) Run(ctx context.Context) error {
	look := func() {
		select {
		case r.wake <- struct{}{}:
		default: // a look is due already, and will see this change too
		}
	}
	// The number of changes of a session does not matter, so they may be merged.
	if _, err := r.sessions.AddHandler(cache.TypedResourceEventHandlerFuncs[*Session]{
		AddFunc:    func(*Session) { look() },
		UpdateFunc: func(_, _ *Session) { look() },
	}, cache.HandlerOptions{Name: "reaper", Delivery: cache.Coalesced}); err != nil {
		return err
	}
	var informer sync.WaitGroup
	var ran error
	informer.Go(func() { ran = r.sessions.Run(ctx) })
	r.reap(ctx)
	informer.Wait()
	return ran
}

// reap removes expired sessions until ctx ends.
func (r *Reaper) reap(ctx context.Context) {
	for {
		next := r.removeExpired(ctx)
		select {
		case <-r.wake:
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// removeExpired removes the sessions that have expired, and returns what fires when the
// next one does; nil if there is none.
func (r *Reaper) removeExpired(ctx context.Context) <-chan time.Time {
	var wait time.Duration // 0: nothing is due
	sooner := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	for key, session := range r.sessions.All() {
		end, err := time.Parse(time.RFC3339Nano, session.Annotations[expires])
		if err != nil {
			continue // it does not expire
		}
		if left := time.Until(end); left > 0 {
			sooner(left)
			continue
		}
		switch err := r.remove(ctx, session.Namespace, session.Name); {
		case err == nil:
			fmt.Fprintln(r.out, "removed", key)
		case !errors.Is(err, context.Canceled):
			fmt.Fprintf(r.out, "could not remove %s: %v\n", key, err)
			sooner(retryAfter)
		}
	}
	if wait == 0 {
		return nil
	}
	return time.After(wait)
}
