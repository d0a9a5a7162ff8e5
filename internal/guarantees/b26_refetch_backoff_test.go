package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// B26: a list that is due for an item that could not be decoded is no pause after a failure: the
// first retry after one comes within 0.2 s all the same. Fails if it advances the backoff.
func TestB26AListForAnUndecodedItemDoesNotAdvanceTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newStateSource([]apiruntime.Object{validPod("sound", "1"), damaged("damaged", "5")})
		var watched []time.Time
		lw := &cache.ListWatch{ListWithContextFunc: source.list, WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watched = append(watched, time.Now())
			return source.watch(ctx, options)
		}}
		r := cache.NewReflectorWithOptions(lw, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Strategy: cache.ListUnpaged, ErrorHandler: (&errorRecorder{}).handle, Random: func() float64 { return 0 },
		})
		m := mirrorUnderTest{run: r.RunWithContext}
		end := m.begin(t)
		failed := time.Now()
		source.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: 429}}
		sleep(200 * time.Millisecond)
		if assert.Greater(t, len(watched), 1) {
			assert.Equal(t, 200*time.Millisecond, watched[1].Sub(failed))
		}
		end()
	})
}
