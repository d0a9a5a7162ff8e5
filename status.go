package cache

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Phase says what a reflector is doing.
type Phase string

// The phases of a reflector.
const (
	PhaseIdle      Phase = "idle"      // Run has not been called
	PhaseListing   Phase = "listing"   // a list is under way
	PhaseStreaming Phase = "streaming" // a streaming list is under way
	PhaseWatching  Phase = "watching"  // a watch is open, or being opened
	PhasePaused    Phase = "paused"    // waiting after a failure
	PhaseAbsent    Phase = "absent"    // the source has answered "not found" at least 3 times in a row
	PhaseForbidden Phase = "forbidden" // the source has answered "forbidden" at least 3 times in a row
	PhaseStopped   Phase = "stopped"   // Run has returned
)

// Status is what a reflector, controller or informer knows of itself: a plain value, good
// for as long as it is kept. Fields may be added, none will be renamed.
type Status struct {
	// Name and TypeDescription are the reflector's.
	Name            string
	TypeDescription string

	Phase Phase
	// PhaseSince is when the phase began.
	PhaseSince time.Time

	// AppliedVersion is the resource version up to which the store holds what
	// the source sent. AcceptedVersion is the last one that the reflector's
	// store took; with a queue between the two it may be ahead.
	AppliedVersion  string
	AcceptedVersion string
	// Synced is true once the whole first list was applied.
	Synced bool

	// ConsecutiveFailures counts the failures since the last list that was
	// taken, or watch that sent something or lived for 10 s.
	ConsecutiveFailures int
	// LastFailure is nil if nothing has failed yet.
	LastFailure *Failure

	// Quarantined are the objects that are not shown as the source has them,
	// by key.
	Quarantined []Quarantined

	// Handlers are an informer's, in the order in which they were added.
	Handlers []HandlerStatus

	// Namespaces are those of Config.Namespaces, by name, each with a status of
	// its own; nil for what has a single source. The fields above then speak for
	// all of them: Phase is the one most worth a look (from forbidden, absent,
	// paused, stopped, idle, listing, streaming, to watching) and PhaseSince when
	// the first of those in it came to it; AppliedVersion is the store's and
	// AcceptedVersion the lowest, empty until each has one; Synced is true if all
	// are, ConsecutiveFailures is the highest, LastFailure the newest,
	// Quarantined what any of them has.
	Namespaces []NamespaceStatus
}

// NamespaceStatus is the status of one namespace of several.
type NamespaceStatus struct {
	Namespace string
	Status
}

// HandlerStatus is how an informer and one of its handlers stand.
type HandlerStatus struct {
	// Name is HandlerOptions.Name, Delivery HandlerOptions.Delivery.
	Name     string
	Delivery Delivery
	// Merging is true while changes are merged by key: always for Coalesced, and for
	// Ordered from when it fell too far behind until it has caught up.
	Merging bool
	// Backlog is how many changes the handler has not been told yet, without the one
	// that it is being told.
	Backlog int
	// OldestAge is how long the oldest of them, of a merged one its oldest part, has
	// waited; 0 if there is none.
	OldestAge time.Duration
	// Delivered counts the calls of the handler that have returned or panicked, and
	// Panics those that have panicked.
	Delivered, Panics int64
	// Synced is true once the handler has handled the initial list.
	Synced bool
}

// Failure is something that went wrong.
type Failure struct {
	Cause Cause
	// Err is what the error handler was given.
	Err  error
	Time time.Time
}

// String is the failure in one line.
func (f Failure) String() string {
	return fmt.Sprintf("%s at %s: %v", f.Cause, f.Time.Format(time.RFC3339), f.Err)
}

// StatusReporter is implemented by *Reflector and by what New and the constructors of
// informers return.
type StatusReporter interface {
	// Status may be called at any time, concurrently. It does not block.
	Status() Status
}

// StatusOf returns the status of x, or false if x reports none. It is for values
// behind a compatible interface, such as a Controller or a SharedIndexInformer.
func StatusOf(x any) (Status, bool) {
	reporter, ok := x.(StatusReporter)
	if !ok {
		return Status{}, false
	}
	return reporter.Status(), true
}

// mergeQuarantined joins lists into one, by key. Of a key that several hold back,
// each for a version of its own, the newest counts.
func mergeQuarantined(lists ...[]Quarantined) []Quarantined {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Quarantined) int {
		switch {
		case a.Key != b.Key:
			return strings.Compare(a.Key, b.Key)
		case versionBefore(a.ResourceVersion, b.ResourceVersion):
			return 1
		case versionBefore(b.ResourceVersion, a.ResourceVersion):
			return -1
		}
		return 0
	})
	return slices.CompactFunc(all, func(a, b Quarantined) bool { return a.Key == b.Key })
}
