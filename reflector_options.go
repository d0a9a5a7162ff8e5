// The options of a reflector. Which values are allowed, and what are the defaults?

package cache

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/sharding"
)

const (
	defaultMinWatchTimeout = 5 * time.Minute
	// longestWatchTimeout is used for longer ones, such as "for ever": sums with it must not
	// overflow.
	longestWatchTimeout = 365 * 24 * time.Hour
)

// ReflectorOptions configures a reflector. The zero value is useful.
type ReflectorOptions struct {
	// Logger is used instead of the one in the context of Run.
	Logger *klog.Logger
	// Name appears in logs and errors. Default: file:line of the first caller outside this package,
	// with #2, #3 and so on if that line makes several.
	Name string
	// TypeDescription appears in logs and errors. Default: the expected type; if that is nil or, such
	// as unstructured, of any kind, the source's TypeDescription() string.
	TypeDescription string
	// ResyncPeriod is how often the store's Resync is called; 0 is never.
	ResyncPeriod time.Duration
	// MinWatchTimeout and MaxWatchTimeout are the range of the timeout that a watch requests, in
	// whole seconds; 5 to 10 minutes by default. MinWatchTimeout alone counts only above 5 minutes,
	// and the maximum is then twice as much.
	MinWatchTimeout time.Duration
	MaxWatchTimeout time.Duration
	// Clock is for tests; testing/synctest needs none. Default: the real one.
	Clock clock.Clock
	// Backoff replaces the default backoff and its limit on requests per minute. Its Duration must
	// be above zero. It is for failures: a watch that worked is resumed within 5.5 s.
	Backoff *wait.Backoff
	// BackoffReset is how long nothing may fail before the backoff starts over. Default: 2 minutes.
	BackoffReset time.Duration
	// MaxInternalErrorRetryDuration is how long the watch is retried after internal errors before a
	// list. Default: 0.
	MaxInternalErrorRetryDuration time.Duration
	// PageSize is the number of objects in a page. If set, every list is paged. Default: 500 where
	// pages are used.
	PageSize      int64
	Strategy      ListStrategy
	ShardSelector *sharding.Selector // this replica's share of the objects; default: all
	// ShouldResync is called before each resync, and may skip it.
	ShouldResync func() bool
	ErrorHandler WatchErrorHandlerWithContext
	// PhaseHandler is called after each change of the phase, on the reflector's goroutine, without
	// a lock.
	PhaseHandler func(r *Reflector, status Status)
	// MetricsProvider makes the instruments of each run. Default: that of
	// SetReflectorMetricsProvider.
	MetricsProvider MetricsProvider
	// Random returns numbers in [0, 1) for pauses and timeouts. It is called concurrently if
	// reflectors share it.
	Random func() float64
}

// validate panics for options that cannot work.
func (o ReflectorOptions) validate() {
	for field, value := range map[string]time.Duration{
		"PageSize":                      time.Duration(o.PageSize),
		"ResyncPeriod":                  o.ResyncPeriod,
		"BackoffReset":                  o.BackoffReset,
		"MinWatchTimeout":               o.MinWatchTimeout,
		"MaxWatchTimeout":               o.MaxWatchTimeout,
		"MaxInternalErrorRetryDuration": o.MaxInternalErrorRetryDuration,
	} {
		mustHave(value >= 0, "ReflectorOptions.%s is negative", field)
	}
	isRange := o.MaxWatchTimeout >= max(time.Second, o.MinWatchTimeout)
	mustHave(o.MaxWatchTimeout == 0 || isRange,
		"ReflectorOptions.MaxWatchTimeout is below MinWatchTimeout, or below a second")
	if b := o.Backoff; b != nil {
		mustHave(b.Duration > 0, "ReflectorOptions.Backoff.Duration is not above zero")
		mustHave(b.Cap >= 0 && b.Steps >= 0 && b.Factor >= 0 && b.Jitter >= 0,
			"ReflectorOptions.Backoff.Cap, Steps, Factor or Jitter is negative or no number")
	}
	mustHave(o.Strategy >= ListAutomatic && o.Strategy <= ListStreaming,
		"ReflectorOptions.Strategy is unknown: %d", o.Strategy)
}

func (o *ReflectorOptions) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.ErrorHandler == nil {
		o.ErrorHandler = DefaultWatchErrorHandler
	}
	o.MetricsProvider = defaultReflectorMetrics.or(o.MetricsProvider)
	o.setWatchTimeouts()
}

// setWatchTimeouts sets the defaults and bounds of the range of timeouts.
func (o *ReflectorOptions) setWatchTimeouts() {
	o.MinWatchTimeout = min(o.MinWatchTimeout, longestWatchTimeout)
	if o.MaxWatchTimeout == 0 { // as in client-go
		o.MinWatchTimeout = max(o.MinWatchTimeout, defaultMinWatchTimeout)
		o.MaxWatchTimeout = 2 * o.MinWatchTimeout
	}
	o.MaxWatchTimeout = min(o.MaxWatchTimeout, longestWatchTimeout)
	if o.MinWatchTimeout == 0 {
		o.MinWatchTimeout = min(defaultMinWatchTimeout, o.MaxWatchTimeout)
	}
}
