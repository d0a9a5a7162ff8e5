package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Fails if a part that waits holds the lock, waits with room left, or for a part
// that queued nothing.
func TestPartsWaitForOurConsumerWhileTwoAreUnapplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newListedQueue(t)
		f.attach(notPopped, true)
		r := f.BeginReplace(ReplaceOptions{})
		began := time.Now()
		part(t, r, ReplacementPart{Items: items("1", "1")})
		part(t, r, ReplacementPart{Keep: items("9", "9")})
		part(t, r, ReplacementPart{Items: items("2", "2", "3", "3")})
		assert.Zero(t, time.Since(began))
		var through time.Duration
		done := make(chan struct{})
		go func() {
			part(t, r, ReplacementPart{Items: items("4", "4")})
			through = time.Since(began)
			close(done)
		}()
		time.Sleep(time.Second)
		_, err := f.Pop(func(any, bool) error {
			time.Sleep(time.Second)
			return nil
		})
		must(t, err)
		<-done
		assert.Equal(t, 2*time.Second, through, "when the first one has been processed, not when it is handed out")
		must(t, r.Commit(t.Context(), "4"))
		assert.Len(t, drained(t, f), 3)
		assert.Zero(t, f.log.parts)
	})
}

func TestAPartThatWaitsEndsWithItsContextTheQueueOrTheLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(f *DeltaFIFO, cancel func())
		want error
	}{
		"context": {func(_ *DeltaFIFO, cancel func()) { cancel() }, context.Canceled},
		"queue":   {func(f *DeltaFIFO, _ func()) { f.Close() }, ErrFIFOClosed},
		"limit":   {func(f *DeltaFIFO, _ func()) { f.attach(notPopped, false) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := newListedQueue(t)
				f.attach(notPopped, true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := f.BeginReplace(ReplaceOptions{})
				part(t, r, ReplacementPart{Items: items("1", "1")})
				part(t, r, ReplacementPart{Items: items("2", "1")})
				ended := make(chan error)
				go func() {
					_, err := r.Part(ctx, ReplacementPart{Keep: items("3", "1")})
					ended <- err
				}()
				time.Sleep(time.Hour)
				select {
				case <-ended:
					assert.Fail(t, "it does not wait")
				default:
				}
				began := time.Now()
				tc.end(f, cancel)
				assert.ErrorIs(t, <-ended, tc.want)
				assert.Zero(t, time.Since(began))
			})
		})
	}
}

func TestPartsNeverWaitForSomebodyElsesConsumer(t *testing.T) {
	f, _ := newListedQueue(t)
	r := f.BeginReplace(ReplaceOptions{})
	for i := range 10 {
		part(t, r, ReplacementPart{Items: items(itoa(i), "1")})
	}
	must(t, r.Commit(t.Context(), "2"))
	// Nor does a relist, which queues nothing until it is committed.
	f.attach(notPopped, true)
	r = f.BeginReplace(ReplaceOptions{})
	for i := range 10 {
		part(t, r, ReplacementPart{Items: items(itoa(i), "3")})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Part(ctx, ReplacementPart{Items: items("1", "4")})
	assert.ErrorIs(t, err, context.Canceled)
	r.Abort()
	assert.Len(t, drained(t, f), 10)
}
