package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// How long it takes to have a state where a streaming list does not end.

// unanswered is a source that does not answer its first requests for a stream.
type unanswered struct {
	*script
	requests int
}

func (u *unanswered) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if u.requests == 0 {
		return u.Watch(o)
	}
	u.requests--
	_, _ = u.Watch(o)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (u *unanswered) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return u.List(o)
}

// B1: a stream that is silent for 10 s, whatever it has sent, is followed by one pause and
// one list. One that was cut is tried again, once. Fails if a second stream is waited for
// after a silence, or if a cut counts as one.
func TestB1ASilentStreamIsFollowedByOnePauseAndOneList(t *testing.T) {
	events := []watch.Event{addedEvent(at("a/1", "3")), addedEvent(at("a/2", "2"))}
	for name, row := range map[string]struct {
		streams [][]watch.Event
		silent  bool
		asked   []string
		synced  time.Duration
	}{
		"after its events": {
			streams: [][]watch.Event{events},
			asked:   []string{`stream "" at 0s`, `list "3" at 10.3s`, `watch "7" at 10.3s`}, synced: 10*time.Second + pause,
		},
		"without an event": {
			streams: [][]watch.Event{{}},
			asked:   []string{`stream "" at 0s`, `list "0" at 10.3s`, `watch "7" at 10.3s`}, synced: 10*time.Second + pause,
		},
		"without an answer": {
			silent: true,
			asked:  []string{`stream "" at 0s`, `list "0" at 10.3s`, `watch "7" at 10.3s`}, synced: 10*time.Second + pause,
		},
		"a cut, and a silence": {
			streams: [][]watch.Event{append(events[:2:2], cut), events},
			asked:   []string{`stream "" at 0s`, `stream "3" at 300ms`, `list "3" at 10.6s`, `watch "7" at 10.6s`}, synced: 10*time.Second + 2*pause,
		},
		"two cuts": {
			streams: [][]watch.Event{append(events[:2:2], cut), append(events[:2:2], cut)},
			asked:   []string{`stream "" at 0s`, `stream "3" at 300ms`, `list "3" at 600ms`, `watch "7" at 600ms`}, synced: 2 * pause,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &unanswered{script: &script{streams: row.streams, list: []runtime.Object{at("a/1", "3")}, version: "7"}}
				if row.silent {
					source.requests = 1
				}
				m := &streamedMirrored{t: t}
				streamedMirrors["an informer"](m, source, &thing{})
				settle(row.synced - time.Nanosecond)
				assert.False(t, m.status.Status().Synced)
				settle(time.Nanosecond)
				assert.True(t, m.status.Status().Synced)
				assert.Equal(t, row.asked, source.asked())
				assert.Equal(t, []string{"a/1@3"}, m.holds())
			})
		})
	}
}

// B1: with the default backoff, too, the list follows a lost end within two seconds of the
// silence, whatever the jitter, and wherever in the stream the silence begins.
func TestB1ALostEndOfAStreamCostsTenSecondsAndAShortPause(t *testing.T) {
	for _, jitter := range []float64{0, 0.5, 0.999} {
		for _, between := range []time.Duration{0, 9 * time.Second} {
			t.Run(fmt.Sprintf("jitter %v, %s between events", jitter, between), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := cachetest.NewSource(cachetest.Options{
						GroupVersionKind: at("", "").GroupVersionKind(),
						NewObject:        func() runtime.Object { return &thing{} },
						NewList:          func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
					})
					defer source.Close()
					assert.NoError(t, source.Apply(at("a/1", ""), at("a/2", "")))
					source.WithholdInitialEventsEnd(cachetest.Forever)
					source.DelayEvents(between)
					m := &streamedMirrored{t: t, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
					options := m.options()
					options.Backoff, options.Random = nil, func() float64 { return jitter }
					r := cache.NewReflectorWithOptions(source, &thing{}, m.store, options)
					m.status = r
					m.run(r.RunWithContext)
					settle(2*between + 10*time.Second)
					assert.False(t, r.Status().Synced)
					settle(2 * time.Second)
					assert.True(t, r.Status().Synced)
					assert.Equal(t, 1, source.ListCalls())
					assert.Equal(t, 2, source.WatchCalls(), "the stream, and the watch after the list")
					assert.Equal(t, []string{"no-bookmark"}, m.failures())
				})
			})
		}
	}
}
