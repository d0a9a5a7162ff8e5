package script

import (
	"encoding/json"
	"fmt"
	"time"
)

// Script is the input of a run: a setup and steps with their times. It does not determine the
// schedule of goroutines. A script is plain data, so that it can be printed, kept in a file and
// shrunk; each part of a script is a script.
type Script struct {
	// Seed is the seed of the script and of the mirrors' jitter.
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
}

// Setup is the source and the mirrors of a script.
type Setup struct {
	// HTTP makes mirrors read the source through kubeapi and a server on an in-memory network
	// instead of calling it directly.
	HTTP bool `json:"http,omitempty"`
	// HTTP2 uses HTTP/2 instead of HTTP/1.1.
	HTTP2 bool `json:"http2,omitempty"`
	// Objects is the initial number of objects.
	Objects int `json:"objects,omitempty"`

	// Options of the source; see cachetest.Options.
	HistoryLimit         int           `json:"historyLimit,omitempty"`
	BookmarkInterval     time.Duration `json:"bookmarkInterval,omitempty"`
	IgnoreLimitAtZero    bool          `json:"ignoreLimitAtZero,omitempty"`
	ExpiredOnStream      bool          `json:"expiredOnStream,omitempty"`
	NoWatchList          bool          `json:"noWatchList,omitempty"`
	WatchListUnsupported bool          `json:"watchListUnsupported,omitempty"`
	RefuseFutureWatches  bool          `json:"refuseFutureWatches,omitempty"`

	// Begin is the number of steps before the mirrors run, so that first lists also meet faults and
	// changes.
	Begin int `json:"begin,omitempty"`
	// RestoreLast is the number of versions by which the source regresses at the end. Nothing is
	// written after that, so only its version shows it.
	RestoreLast int `json:"restoreLast,omitempty"`
	// DamageLast damages one byte of the last frame of each watch at the end, at this offset, from 1;
	// 0 is none. Nothing is written after it, so only the damage itself shows it.
	DamageLast int `json:"damageLast,omitempty"`
	// Abrupt stops everything after the last step, in any state, without ending faults.
	Abrupt bool `json:"abrupt,omitempty"`

	Mirrors []MirrorSetup `json:"mirrors"`
}

// MirrorSetup is one mirror.
type MirrorSetup struct {
	Kind Kind `json:"kind"`
	// Strategy, PageSize, Retry500 (MaxInternalErrorRetryDuration) and MaxWatch
	// (MaxWatchTimeout) are options of its reflector.
	Strategy int           `json:"strategy,omitempty"`
	PageSize int64         `json:"pageSize,omitempty"`
	Retry500 time.Duration `json:"retry500,omitempty"`
	MaxWatch time.Duration `json:"maxWatch,omitempty"`
	// Resync is the resync period of its handlers or, without handlers, of its store.
	Resync time.Duration `json:"resync,omitempty"`
	// Merge is RecreateAsUpdate.
	Merge bool `json:"merge,omitempty"`

	Handlers []HandlerSetup `json:"handlers,omitempty"`
}

// Kind is a kind of mirror.
type Kind string

// The kinds of mirror.
const (
	KindTyped      Kind = "typed"      // NewTypedInformer
	KindShared     Kind = "shared"     // NewSharedIndexInformerWithOptions
	KindController Kind = "controller" // New with Store and Handler
	KindProcess    Kind = "process"    // New with a DeltaFIFO and Process over Pop
	KindReflector  Kind = "reflector"  // a reflector into an Indexer
	KindForeign    Kind = "foreign"    // a reflector into a store of another package
	KindNamespaces Kind = "namespaces" // New with Namespaces
	KindScoped     Kind = "scoped"     // NewSharedIndexInformerWithOptions with Namespaces
	KindOverlap    Kind = "overlap"    // two reflectors into one Indexer
)

// HasNamespaces says whether each namespace has a source of its own.
func (m *MirrorSetup) HasNamespaces() bool { return m.Kind == KindNamespaces || m.Kind == KindScoped }

// HandlerSetup is one handler of an informer.
type HandlerSetup struct {
	Delivery int `json:"delivery,omitempty"`
	// Slow is the duration of each call.
	Slow time.Duration `json:"slow,omitempty"`
	// PanicEvery makes every nth call panic.
	PanicEvery int `json:"panicEvery,omitempty"`
	// Filter puts a filter before the handler: FilterTyped, FilterUntyped or none. It passes objects
	// of one group.
	Filter string `json:"filter,omitempty"`
}

// Values of HandlerSetup.Filter.
const (
	FilterTyped   = "typed"   // TypedFilteringResourceEventHandler; untyped unless it is a KindTyped
	FilterUntyped = "untyped" // FilteringResourceEventHandler
)

// Step is one step, After the previous one. The meaning of the other fields depends on Do. A step can
// always run, whatever its fields and whatever happened before; at worst it has no effect.
type Step struct {
	After  time.Duration `json:"after,omitempty"`
	Do     string        `json:"do"`
	Key    string        `json:"key,omitempty"`
	What   string        `json:"what,omitempty"`
	N      int           `json:"n,omitempty"`
	For    time.Duration `json:"for,omitempty"`
	Mirror int           `json:"mirror,omitempty"`
}

func (s Step) String() string {
	text := s.Do
	for _, part := range []struct {
		name  string
		value any
		zero  bool
	}{
		{"key", s.Key, s.Key == ""}, {"what", s.What, s.What == ""}, {"n", s.N, s.N == 0},
		{"for", s.For, s.For == 0}, {"mirror", s.Mirror, s.Mirror == 0},
	} {
		if !part.zero {
			text += fmt.Sprintf(" %s=%v", part.name, part.value)
		}
	}
	return text
}

// Encode returns the script as JSON, which Decode reads.
func (s Script) Encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("a script is plain data: %v", err))
	}
	return text
}

// Decode reads a script.
func Decode(text []byte) (Script, error) {
	var s Script
	if err := json.Unmarshal(text, &s); err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	return s, nil
}
