package cache

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ListStrategy is how a reflector gets the first state, and any later one that a
// watch cannot give.
type ListStrategy int

const (
	// ListAutomatic streams if the source says that it can (it has the method
	// IsWatchListSemanticsUnSupported and that returns false), and otherwise
	// lists in pages where that spares the server and whole where the server
	// answers from its cache.
	ListAutomatic ListStrategy = iota
	// ListWhole lists in one answer.
	ListWhole
	// ListPaged lists in pages, always.
	ListPaged
	// ListStreaming streams, whatever the source says of itself, and lists if
	// that fails: after one stream that was silent for 10 s or was rejected, or two
	// that failed otherwise. ListAutomatic does the same where it streams.
	ListStreaming
)

// ReflectorOptions configures a reflector. The zero value is useful.
type ReflectorOptions struct {
	// Logger is used instead of the one in the context of Run.
	Logger *klog.Logger
	// Name appears in logs and errors. Default: file:line of the first caller
	// outside this package.
	Name string
	// TypeDescription appears in logs and errors. Default: the expected type, with
	// its group/version/kind for an unstructured example; where anything is expected,
	// what the source says, if it has a method TypeDescription() string, as those of
	// kubeapi do.
	TypeDescription string
	// ResyncPeriod is how often the store's Resync is called; 0 is never.
	ResyncPeriod time.Duration
	// MinWatchTimeout and MaxWatchTimeout are the range from which the timeout
	// that a watch asks the server for is drawn; 5 to 10 minutes by default.
	// MinWatchTimeout alone counts only above 5 minutes, and twice as much is
	// the other end, as in client-go; with MaxWatchTimeout both count as given.
	// Servers are asked in whole seconds. A watch that ends within 10 s is
	// followed by a pause, also at its own timeout.
	MinWatchTimeout time.Duration
	MaxWatchTimeout time.Duration
	// Clock is for tests; testing/synctest needs none. Default: the real one.
	Clock clock.Clock
	// Backoff is used instead of the default backoff and its limit on requests
	// per minute. Its Duration must be above zero.
	Backoff *wait.Backoff
	// BackoffReset is how long nothing may fail before the backoff starts over.
	// Default: 2 minutes.
	BackoffReset time.Duration
	// MaxInternalErrorRetryDuration is how long a watch is retried without a
	// list when the server answers with internal errors. Default: not at all.
	MaxInternalErrorRetryDuration time.Duration
	// PageSize is the number of objects asked for in a page. If set, every list
	// is in pages. Default: 500 where the strategy wants pages.
	PageSize int64
	// Strategy is how to get the first state.
	Strategy ListStrategy
	// ShouldResync is asked before each resync. Default: yes.
	ShouldResync func() bool
	// ErrorHandler hears of every failure. Default: DefaultWatchErrorHandler.
	ErrorHandler WatchErrorHandlerWithContext
	// MetricsProvider makes the instruments of each run. Default: the provider of
	// SetReflectorMetricsProvider, if that was set before the reflector is made.
	MetricsProvider MetricsProvider
	// Random returns numbers in [0, 1), by which pauses are stretched and watch timeouts
	// drawn. It is for tests that must come out the same again. One reflector does not call
	// it twice at once; what several share, those of Config.Namespaces or of informers with
	// the same options, must be safe for concurrent use. Default: that of math/rand/v2.
	Random func() float64
}

// validate panics for what only a mistake in the program can set.
func (o ReflectorOptions) validate() {
	for field, value := range map[string]time.Duration{
		"ResyncPeriod":                  o.ResyncPeriod,
		"MinWatchTimeout":               o.MinWatchTimeout,
		"MaxWatchTimeout":               o.MaxWatchTimeout,
		"BackoffReset":                  o.BackoffReset,
		"MaxInternalErrorRetryDuration": o.MaxInternalErrorRetryDuration,
		"PageSize":                      time.Duration(o.PageSize),
	} {
		mustHave(value >= 0, "ReflectorOptions."+field+" is negative")
	}
	mustHave(o.MaxWatchTimeout == 0 || o.MaxWatchTimeout >= time.Second,
		"ReflectorOptions.MaxWatchTimeout is below a second, the unit in which servers are asked")
	mustHave(o.MaxWatchTimeout == 0 || o.MaxWatchTimeout >= o.MinWatchTimeout,
		"ReflectorOptions.MaxWatchTimeout is below MinWatchTimeout")
	validateBackoff(o.Backoff)
	mustHave(o.Strategy >= ListAutomatic && o.Strategy <= ListStreaming,
		fmt.Sprintf("ReflectorOptions.Strategy is unknown: %d", o.Strategy))
}

// validateBackoff panics for a backoff that would not pause, or cannot be computed.
func validateBackoff(b *wait.Backoff) {
	if b == nil {
		return
	}
	mustHave(b.Duration > 0, "ReflectorOptions.Backoff.Duration is not above zero: nothing would be paused")
	mustHave(b.Cap >= 0 && b.Steps >= 0, "ReflectorOptions.Backoff.Cap or Steps is negative")
	mustHave(b.Factor >= 0 && b.Jitter >= 0, "ReflectorOptions.Backoff.Factor or Jitter is negative or no number")
}

// watchTimeouts returns the range of timeouts.
func (o ReflectorOptions) watchTimeouts() (shortest, longest time.Duration) {
	switch {
	case o.MaxWatchTimeout > 0 && o.MinWatchTimeout > 0:
		return o.MinWatchTimeout, o.MaxWatchTimeout
	case o.MaxWatchTimeout > 0:
		return min(defaultMinWatchTimeout, o.MaxWatchTimeout), o.MaxWatchTimeout
	}
	shortest = max(o.MinWatchTimeout, defaultMinWatchTimeout)
	return shortest, 2 * shortest
}
