package clientgo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/watchmirror/cache/kubeapi"
)

// limiter is a rate limiter that counts its calls, and fails or waits on request.
type limiter struct {
	flowcontrol.RateLimiter
	waits int
	fail  error
	block bool
}

func (l *limiter) Wait(ctx context.Context) error {
	l.waits++
	if l.block {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.fail
}

func TestTheRateLimiterIsAskedBeforeEachRequest(t *testing.T) {
	api := &api{}
	for way, make := range map[string]func(*rest.Config) *kubeapi.ListerWatcher{
		"config": func(c *rest.Config) *kubeapi.ListerWatcher { return sourceOf(t, c) },
		"client": func(c *rest.Config) *kubeapi.ListerWatcher { return sourceOfClient(t, clientOf(t, *c)) },
	} {
		limiter := &limiter{}
		// QPS is ignored if there is a RateLimiter.
		source := make(&rest.Config{
			Host:        "http://api.test",
			Transport:   api,
			RateLimiter: limiter,
			QPS:         0.0001,
			Burst:       1,
		})
		list(t, source)
		list(t, source)
		stream, err := source.Watch(metav1.ListOptions{})
		require.NoError(t, err)
		stream.Stop()
		assert.Equal(t, 3, limiter.waits, way)

		limiter.fail = errors.New("no more today")
		sent := api.count()
		_, err = source.List(metav1.ListOptions{})
		require.ErrorIs(t, err, limiter.fail)
		assert.ErrorContains(t, err, "rate limiter")
		assert.Equal(t, sent, api.count(), "nothing is sent")
	}
}

// A program requests a login after ErrAuthorize, which would not help against a limiter.
func TestARefusalOfTheRateLimiterIsNoFailedAuthorization(t *testing.T) {
	refusal := fmt.Errorf("no more today: %w", context.Canceled)
	config := rest.Config{
		Host:        "http://api.test",
		Transport:   &api{},
		RateLimiter: &limiter{fail: refusal},
	}
	for way, source := range map[string]*kubeapi.ListerWatcher{
		"config": sourceOf(t, &config),
		"client": sourceOfClient(t, clientOf(t, config)),
	} {
		_, listed := source.List(metav1.ListOptions{})
		_, watched := source.Watch(metav1.ListOptions{})
		for _, err := range []error{listed, watched} {
			require.ErrorContains(
				t, err, "waiting for the client's rate limiter: no more today", way)
			require.ErrorContains(t, err, "http://api.test/api/v1/pods")
			require.ErrorIs(t, err, refusal)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, kubeapi.ErrAuthorize)
		}
	}
}

// The wait is part of the request, and a list that receives nothing is stalled.
func TestAListWaitsForTheRateLimiterNoLongerThanTheStallTimeoutAndAWatchDoes(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"default": 0, "longer": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := rest.Config{
					Host:        "http://api.test",
					Transport:   &api{},
					RateLimiter: &limiter{block: true},
				}
				source := sourceOf(
					t, &config, func(o *kubeapi.Options) { o.StallTimeout = timeout })
				began := time.Now()
				_, err := source.List(metav1.ListOptions{})
				require.ErrorIs(t, err, kubeapi.ErrStalled)
				assert.Equal(t, cmp.Or(timeout, 2*time.Minute), time.Since(began))

				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				_, err = source.WatchWithContext(ctx, metav1.ListOptions{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		})
	}
}

func TestARedirectThatIsFollowedWaitsForTheRateLimiterToo(t *testing.T) {
	api := &api{}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/pods", http.RedirectHandler("/moved", http.StatusTemporaryRedirect))
	mux.Handle("/moved", api)
	limiter := &limiter{}
	list(t, sourceOf(t, &rest.Config{Host: serve(t, mux).URL, RateLimiter: limiter}))
	assert.Equal(t, 2, limiter.waits)
	assert.Equal(t, 1, api.count())
}

func TestWaitingForTheRateLimiterEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf(
			t,
			&rest.Config{
				Host:        "http://api.test",
				Transport:   &api{},
				RateLimiter: &limiter{block: true},
			},
		)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := source.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func TestRequestsAreLimitedOnlyIfTheConfigAsksForIt(t *testing.T) {
	for name, test := range map[string]struct {
		config rest.Config
		took   time.Duration // for 21 requests
	}{
		"not set":       {rest.Config{}, 0},
		"negative":      {rest.Config{QPS: -1}, 0},
		"with a burst":  {rest.Config{QPS: 1, Burst: 1}, 20 * time.Second},
		"default burst": {rest.Config{QPS: 1}, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.config.Host = "http://api.test"
				test.config.Transport = &api{}
				source := sourceOf(t, &test.config)
				began := time.Now()
				for range 21 {
					list(t, source)
				}
				assert.Equal(t, test.took, time.Since(began).Round(time.Millisecond))
			})
		})
	}
}

// The client's own requests and all of its sources share one limiter.
func TestAClientsRateLimiterIsSharedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := clientOf(
			t, rest.Config{Host: "http://api.test", Transport: &api{}, QPS: 1, Burst: 1})
		sources := []*kubeapi.ListerWatcher{sourceOfClient(t, client), sourceOfClient(t, client)}
		began := time.Now()
		list(t, sources[0])
		list(t, sources[1])
		require.NoError(t, client.Get().Resource("pods").Do(t.Context()).Error())
		assert.Equal(t, 2*time.Second, time.Since(began).Round(time.Millisecond))
	})
}
