package simulation

import (
	"encoding/json"
	"fmt"
	"time"
)

// Script is all that a run is given: what there is at the start, and what happens when.
// It says nothing of the order in which goroutines run. A script is plain data, so that
// a failing one can be printed, kept in a file and made smaller; any part of a script
// is a script.
type Script struct {
	// Seed is what the script was generated from, and what our jitter is drawn from.
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
}

// Setup is what there is when the script begins.
type Setup struct {
	// HTTP has every mirror read the source through kubeapi and a server on a network
	// in memory; without it the source is called directly.
	HTTP bool `json:"http,omitempty"`
	// Objects is how many the source holds.
	Objects int `json:"objects,omitempty"`

	// What kind of a server the source is; see cachetest.Options.
	HistoryLimit         int           `json:"historyLimit,omitempty"`
	BookmarkInterval     time.Duration `json:"bookmarkInterval,omitempty"`
	IgnoreLimitAtZero    bool          `json:"ignoreLimitAtZero,omitempty"`
	ExpiredOnStream      bool          `json:"expiredOnStream,omitempty"`
	NoWatchList          bool          `json:"noWatchList,omitempty"`
	WatchListUnsupported bool          `json:"watchListUnsupported,omitempty"`
	RefuseFutureWatches  bool          `json:"refuseFutureWatches,omitempty"`

	// Begin is how many steps are done before the mirrors run, so that a first list meets
	// faults and changes too.
	Begin int `json:"begin,omitempty"`
	// RestoreLast is by how many versions the source regresses once all is repaired; 0 for
	// not at all. Nothing is written after that, so that only its version shows it.
	RestoreLast int `json:"restoreLast,omitempty"`
	// DamageLast has one byte of the last frame that each watch is sent damaged, once all is repaired:
	// that at this place, from 1; 0 is none. Nothing is written after it, so that nothing but the
	// damage itself shows it.
	DamageLast int `json:"damageLast,omitempty"`
	// Abrupt has everything stopped after the last step as it is, in whatever it is doing,
	// without a healing.
	Abrupt bool `json:"abrupt,omitempty"`

	Mirrors []MirrorSetup `json:"mirrors"`
}

// MirrorSetup is one reflector with all that it feeds.
type MirrorSetup struct {
	Kind Kind `json:"kind"`
	// Strategy, PageSize, Retry500 (MaxInternalErrorRetryDuration) and MaxWatch
	// (MaxWatchTimeout) are options of its reflector.
	Strategy int           `json:"strategy,omitempty"`
	PageSize int64         `json:"pageSize,omitempty"`
	Retry500 time.Duration `json:"retry500,omitempty"`
	MaxWatch time.Duration `json:"maxWatch,omitempty"`
	// Resync is the period of resyncs of its handlers or, where it has none, of its store.
	Resync time.Duration `json:"resync,omitempty"`
	// Merge is RecreateAsUpdate.
	Merge bool `json:"merge,omitempty"`

	Handlers []HandlerSetup `json:"handlers,omitempty"`
}

// Kind is what a mirror is made of.
type Kind string

// The kinds of mirror.
const (
	KindTyped      Kind = "typed"      // NewTypedInformer
	KindShared     Kind = "shared"     // NewSharedIndexInformerWithOptions
	KindController Kind = "controller" // New with Store and Handler
	KindProcess    Kind = "process"    // New with a DeltaFIFO and Process over Pop
	KindReflector  Kind = "reflector"  // a reflector into an Indexer
	KindForeign    Kind = "foreign"    // a reflector into a store of somebody else
	KindNamespaces Kind = "namespaces" // New with Namespaces
	KindScoped     Kind = "scoped"     // NewSharedIndexInformerWithOptions with Namespaces
)

// hasNamespaces says whether each namespace has a source of its own.
func (m *MirrorSetup) hasNamespaces() bool { return m.Kind == KindNamespaces || m.Kind == KindScoped }

// HandlerSetup is one handler of an informer.
type HandlerSetup struct {
	Delivery int `json:"delivery,omitempty"`
	// Slow is how long each call takes.
	Slow time.Duration `json:"slow,omitempty"`
	// PanicEvery makes every so manieth call panic.
	PanicEvery int `json:"panicEvery,omitempty"`
}

// Step is one thing that happens, After the one before it. What the other fields mean is
// up to what it does. Whatever they hold, and whatever has happened before, a step can
// be carried out; at worst it does nothing.
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

// Encode is the script as JSON, which Decode reads.
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
