package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// B1: a successful streaming list resets the count of failed attempts. Fails if two failures that
// are not consecutive cause a list.
func TestB1OnlyConsecutiveStreamFailuresCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, stream)
		for i := range 5 {
			source.FailWatches(1, cachetest.ErrInternal())
			if i == 0 {
				r.run()
			} else {
				source.BreakWatches(cachetest.ErrExpired())
			}
			sleep(10 * time.Minute) // resets the backoff
			assert.Equal(t, i+1, r.errors.count(cache.CauseInternal))
			require.NoError(t, source.Apply(pod("b", itoa(i))))
		}
		sleep(time.Second)
		assert.Zero(t, source.ListCalls())
		r.assertEqualsSource()
		r.stop()
	})
}

// B1: a streaming list without its bookmark costs one attempt of 10 s, then a list follows within a
// minute; later first states are streamed again. Fails if there is no timer, or if the failure is
// not recorded.
func TestB1AStreamingListWithoutItsBookmarkFallsBackToAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("b", "2"))
		source.WithholdInitialEventsEnd(cachetest.Forever)
		r := newRig(t, source, stream)
		r.run()
		sleep(time.Minute)
		assert.True(t, r.ctlr.HasSynced(), "synced within a minute")
		r.assertEqualsSource()
		assert.Equal(t, 1, source.ListCalls())
		assert.Equal(t, 2, source.WatchCalls(), "one stream and the watch")
		assert.Equal(t, 1, r.errors.count(causeNoBookmark))

		source.Heal()
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, 2, source.ListCalls(), "the failure is remembered: a list")

		sleep(10 * time.Minute)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(2 * time.Minute)
		assert.Equal(t, 2, source.ListCalls(), "probed again later: a stream")
		r.assertEqualsSource()
		r.stop()
	})
}

// A stream that keeps sending is not cut, however long it takes: the deadline counts from the last
// event. Fails if it counts from the start.
func TestB1AStreamThatKeepsSendingIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 30 {
			assert.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		source.DelayEvents(9 * time.Second)
		r := newRig(t, source, stream)
		r.run()
		sleep(31 * 9 * time.Second)
		assert.True(t, r.ctlr.HasSynced())
		assert.Zero(t, source.ListCalls())
		assert.Empty(t, r.errors.all())
		r.assertEqualsSource()
		r.stop()
	})
}

// B1: a request for a stream that is never answered is abandoned after 10 s, not after the watch's
// timeout.
func TestB1AStreamWithoutAResponseIsAbandonedAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.HangWatches(1)
		r := newRig(t, source, stream)
		r.run()
		sleep(time.Minute)
		assert.Equal(t, []cache.Cause{causeNoBookmark}, r.errors.causes())
		assert.Equal(t, 1, source.ListCalls())
		r.assertEqualsSource()
		r.stop()
	})
}

// unanswered is a source that never answers its first streaming lists.
type unanswered struct {
	*streamScript
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

func (u *unanswered) ListWithContext(_ context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
	return u.List(o)
}

// B1: a stream that is silent for 10 s, whatever it has sent, is followed by one pause and one
// list. A cut stream is tried again once. Fails if a second stream follows a silent one, or if a
// cut counts as silence.
func TestB1ASilentStreamIsFollowedByOnePauseAndOneList(t *testing.T) {
	events := []watch.Event{added(podWithKey("a/1", "3")), added(podWithKey("a/2", "2"))}
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
				source := &unanswered{streamScript: &streamScript{streams: row.streams, list: []apiruntime.Object{podWithKey("a/1", "3")}, version: "7"}}
				if row.silent {
					source.requests = 1
				}
				m := &streamedMirror{t: t}
				streamedMirrors["an informer"](m, source, &object{})
				sleep(row.synced - time.Nanosecond)
				assert.False(t, m.status.Status().Synced)
				sleep(time.Nanosecond)
				assert.True(t, m.status.Status().Synced)
				assert.Equal(t, row.asked, source.requestTexts())
				assert.Equal(t, []string{"a/1@3"}, m.storedVersions())
			})
		})
	}
}

// B1: also with the default backoff, the list follows within two seconds after the silence, for
// every jitter and wherever in the stream the silence begins.
func TestB1AStreamThatLosesItsBookmarkCostsTenSecondsAndAShortPause(t *testing.T) {
	for _, jitter := range []float64{0, 0.5, 0.999} {
		for _, between := range []time.Duration{0, 9 * time.Second} {
			t.Run(fmt.Sprintf("jitter %v, %s between events", jitter, between), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := cachetest.NewSource(cachetest.Options{
						GroupVersionKind: podWithKey("", "").GroupVersionKind(),
						NewObject:        func() apiruntime.Object { return &object{} },
						NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
					})
					defer source.Close()
					assert.NoError(t, source.Apply(podWithKey("a/1", ""), podWithKey("a/2", "")))
					source.WithholdInitialEventsEnd(cachetest.Forever)
					source.DelayEvents(between)
					m := &streamedMirror{t: t, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
					options := m.options()
					options.Backoff, options.Random = nil, func() float64 { return jitter }
					r := cache.NewReflectorWithOptions(source, &object{}, m.store, options)
					m.status = r
					m.run(r.RunWithContext)
					sleep(2*between + 10*time.Second)
					assert.False(t, r.Status().Synced)
					sleep(2 * time.Second)
					assert.True(t, r.Status().Synced)
					assert.Equal(t, 1, source.ListCalls())
					assert.Equal(t, 2, source.WatchCalls(), "the stream, and the watch after the list")
					assert.Equal(t, []string{"no-bookmark"}, m.reportTexts())
				})
			})
		}
	}
}
