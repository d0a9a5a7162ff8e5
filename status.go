// The status of reflectors, informers and handlers: its fields, its JSON and its text. How current
// is the store, what fails, and who is behind? Strategies and deliveries are named here too.

package cache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/sharding"
)

// Phase is a reflector's activity: PhaseIdle, PhaseListing, PhaseStreaming, PhaseWatching,
// PhasePaused, PhaseNotFound, PhaseForbidden or PhaseStopped.
type Phase string

// The phases of a reflector.
const (
	PhaseIdle      Phase = "idle"      // Run has not been called
	PhaseListing   Phase = "listing"   // a list is under way
	PhaseStreaming Phase = "streaming" // a streaming list is under way
	PhaseWatching  Phase = "watching"  // a watch is open, or being opened
	PhasePaused    Phase = "paused"    // waiting after a failure
	PhaseNotFound  Phase = "not-found" // the source answered "not found" at least 3 times in a row
	PhaseForbidden Phase = "forbidden" // the source answered "forbidden" at least 3 times in a row
	PhaseStopped   Phase = "stopped"   // Run has returned
)

// Status is the status of a reflector, controller or informer. Fields may be added, none will be
// renamed. In JSON the fields have the names of their tags: times in RFC 3339, errors as text,
// durations in seconds ("oldestAgeSeconds"). String makes one line.
type Status struct {
	// Namespace is set in the elements of Namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Time is when the status was read, by the clock of the reflector.
	Time            time.Time `json:"time,omitzero"`
	Name            string    `json:"name"`
	TypeDescription string    `json:"typeDescription"`
	Phase           Phase     `json:"phase"`
	PhaseSince      time.Time `json:"phaseSince"`
	// AppliedVersion: the store has the source's state up to it. ReceivedVersion: the last that
	// store or queue accepted.
	AppliedVersion  string `json:"appliedVersion"`
	ReceivedVersion string `json:"receivedVersion"`
	Synced          bool   `json:"synced"` // the whole first list was applied
	// LastCurrent is when the source last proved that the store is current, CurrentBy the proof:
	// "list", "watch" (accepted), "event" or "bookmark". The store is at most that stale. LastRead
	// is when kubeapi last received bytes.
	LastCurrent time.Time  `json:"lastCurrent,omitzero"`
	CurrentBy   string     `json:"currentBy,omitempty"`
	LastRead    time.Time  `json:"lastRead,omitzero"`
	LastList    ListStatus `json:"lastList,omitzero"`
	// NextAttempt is when a paused reflector makes its next request, else zero.
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	// ConsecutiveFailures counts failures since the last accepted list, or watch that sent an event
	// or lived for 10 s.
	ConsecutiveFailures int `json:"consecutiveFailures"`
	// FailingSince is the time of the first of them, zero if there are none.
	FailingSince time.Time `json:"failingSince,omitzero"`
	// LastFailure is nil if nothing has failed yet. Failures counts all by cause. Neither must be
	// changed.
	LastFailure *Failure        `json:"lastFailure,omitempty"`
	Failures    map[Cause]int64 `json:"failures,omitempty"`
	// Source is the result of the source's SourceStatus() map[string]string method, if it has one:
	// see kubeapi's.
	Source map[string]string `json:"source,omitempty"`
	Shard  *sharding.Status  `json:"shard,omitempty"` // nil without a ShardSelector
	// Quarantined are the objects whose latest state is not shown, by key.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Objects and Checksum, of keys and versions, are of an informer's whole store. The order does
	// not matter.
	Objects  int    `json:"objects,omitempty"`
	Checksum uint64 `json:"checksum,omitempty,string"`
	// Handlers are an informer's, in the order in which they were added.
	Handlers []HandlerStatus `json:"handlers,omitempty"`
	// Namespaces are those of Config.Namespaces, by name. The fields above then are the most urgent
	// Phase (forbidden, not found, paused, stopped, idle, listing, streaming, watching), the
	// earliest PhaseSince and FailingSince, the lowest versions, the highest ConsecutiveFailures
	// and the newest LastFailure.
	Namespaces []Status `json:"namespaces,omitempty"`

	// hasStore is true if Objects is known.
	hasStore bool
}

// ListStatus describes a list: when it was applied, how it was made, and why in this way.
type ListStatus struct {
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"-"`
	Objects  int           `json:"objects"`
	Strategy ListStrategy  `json:"-"`
	// Reason is why the reflector chose the Strategy. Why it listed again is the failure before, or
	// in its log as "Relisting".
	Reason string `json:"reason"`
}

func (l ListStatus) MarshalJSON() ([]byte, error) {
	type fields ListStatus
	return json.Marshal(struct {
		fields
		Duration float64 `json:"durationSeconds"`
		Strategy string  `json:"strategy"`
	}{
		fields:   fields(l),
		Duration: l.Duration.Seconds(),
		Strategy: l.Strategy.String(),
	})
}

// HandlerStatus is the status of one handler.
type HandlerStatus struct {
	Name     string   `json:"name"`
	Delivery Delivery `json:"delivery"`
	// Merging is true while changes are merged by key: always for Coalesced; for Ordered until it
	// has caught up.
	Merging bool `json:"merging"`
	// Backlog is how many changes wait. OldestAge is the age of the oldest change, including the
	// one being handled.
	Backlog   int           `json:"backlog"`
	OldestAge time.Duration `json:"-"`
	// Delivered counts the calls that have ended, Panics those that panicked.
	Delivered int64 `json:"delivered"`
	Panics    int64 `json:"panics"`
	Synced    bool  `json:"synced"`
	// NotifiedVersion is the AppliedVersion at which the handler last had nothing left to handle.
	NotifiedVersion string `json:"notifiedVersion"`
}

// Failure has the error that the error handler received.
type Failure struct {
	Cause Cause
	Err   error
	Time  time.Time
}

// Activity is the phase in words for people: "retrying" while the last attempts have failed,
// "waiting" for a pause without a failure, "not started", "not found", otherwise the phase.
func (s Status) Activity() string {
	switch s.Phase {
	case PhaseIdle:
		return "not started"
	case PhaseNotFound:
		return "not found"
	case PhaseForbidden, PhaseStopped:
		return string(s.Phase)
	}
	if s.ConsecutiveFailures > 0 {
		return "retrying"
	}
	if s.Phase == PhasePaused {
		return "waiting"
	}
	return string(s.Phase)
}

// activeSince is when the activity began.
func (s Status) activeSince() time.Time {
	if s.FailingSince.IsZero() || s.Phase == PhaseStopped {
		return s.PhaseSince
	}
	return s.FailingSince
}

// Staleness is how long ago the source last proved that the store is current, at the Time of the
// status. It is false if there has been no proof yet.
func (s Status) Staleness() (age time.Duration, known bool) {
	if s.LastCurrent.IsZero() {
		return 0, false
	}
	return max(s.Time.Sub(s.LastCurrent), 0), true
}

func (s Status) String() string {
	var line statusLine
	if s.Namespace != "" {
		line.add("namespace %q", s.Namespace)
	}
	line.add("%s (%s): %s since %s",
		s.Name, s.TypeDescription, s.Activity(), s.activeSince().Format(time.RFC3339))
	if !s.Synced {
		line.add("not synced")
	}
	if s.hasStore {
		line.add("%d objects", s.Objects)
	}
	if staleness, known := s.Staleness(); known && !s.Time.IsZero() {
		line.add("stale for at most %v", roundForPeople(staleness))
	}
	s.addVersions(&line)
	s.addProblems(&line)
	return line.text
}

func (s Status) addVersions(line *statusLine) {
	if s.AppliedVersion != "" {
		line.add("version %q", s.AppliedVersion)
	}
	if s.ReceivedVersion != s.AppliedVersion {
		line.add("received %q", s.ReceivedVersion)
	}
}

func (s Status) addProblems(line *statusLine) {
	if s.ConsecutiveFailures > 0 {
		line.add("failures in a row: %d", s.ConsecutiveFailures)
	}
	if len(s.Quarantined) > 0 {
		line.add("quarantined: %d", len(s.Quarantined))
	}
	behind := 0
	for _, handler := range s.Handlers {
		if handler.Backlog > 0 {
			behind++
		}
	}
	if behind > 0 {
		line.add("handlers behind: %d of %d", behind, len(s.Handlers))
	}
	if s.LastFailure != nil {
		line.add("last failure: %v", s.LastFailure)
	}
}

// statusLine is a list of facts, separated by commas.
type statusLine struct{ text string }

func (l *statusLine) add(format string, args ...any) {
	if l.text != "" {
		l.text += ", "
	}
	l.text += fmt.Sprintf(format, args...)
}

// roundForPeople rounds a duration to seconds, or to milliseconds below a second.
func roundForPeople(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func (h HandlerStatus) String() string {
	return fmt.Sprintf("handler %s (%s): %d behind, the oldest for %s, %d delivered, %d panicked",
		h.Name, h.Delivery, h.Backlog, h.OldestAge, h.Delivered, h.Panics)
}

func (h HandlerStatus) MarshalJSON() ([]byte, error) {
	type fields HandlerStatus
	return json.Marshal(struct {
		fields
		Delivery  string  `json:"delivery"`
		OldestAge float64 `json:"oldestAgeSeconds"`
	}{
		fields:    fields(h),
		Delivery:  h.Delivery.String(),
		OldestAge: h.OldestAge.Seconds(),
	})
}

func (f Failure) String() string {
	return fmt.Sprintf("%s at %s: %v", f.Cause, f.Time.Format(time.RFC3339), f.Err)
}

func (f Failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"cause": f.Cause,
		"error": fmt.Sprint(f.Err),
		"time":  f.Time,
	})
}

func (q Quarantined) String() string {
	return fmt.Sprintf("object %q%s, %s failed: %v",
		q.Key, atVersion(q.ResourceVersion), q.Stage, q.Err)
}

func (q Quarantined) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"key":             q.Key,
		"resourceVersion": q.ResourceVersion,
		"stage":           q.Stage,
		"error":           fmt.Sprint(q.Err),
	})
}

// StatusReporter is implemented by this package's controllers and informers.
type StatusReporter interface {
	Status() Status
	// SyncedIn returns a checker of one of Config.Namespaces; false for another namespace.
	SyncedIn(namespace string) (DoneChecker, bool)
}

// mergeQuarantined sorts by key and keeps the newest version of a key that occurs several times.
func mergeQuarantined(all []Quarantined) []Quarantined {
	slices.SortStableFunc(all, func(a, b Quarantined) int {
		byKey := strings.Compare(a.Key, b.Key)
		newestFirst, _ := resourceversion.CompareResourceVersion(
			b.ResourceVersion, a.ResourceVersion)
		return cmp.Or(byKey, newestFirst, strings.Compare(a.Stage, b.Stage))
	})
	return slices.CompactFunc(all, func(a, b Quarantined) bool { return a.Key == b.Key })
}

// byUrgency are the phases, most urgent first.
var byUrgency = []Phase{
	PhaseForbidden,
	PhaseNotFound,
	PhasePaused,
	PhaseStopped,
	PhaseIdle,
	PhaseListing,
	PhaseStreaming,
	PhaseWatching,
}

// combine returns the status of several namespaces, at least one. See Status.Namespaces.
func combine(all []Status) Status {
	status := all[0]
	status.Namespace = ""
	status.Namespaces = all
	status.LastRead = time.Time{}
	status.Failures = map[Cause]int64{}
	status.Quarantined = nil
	for i := range all {
		status.include(&all[i])
	}
	return status
}

// include adds the status of one namespace to that of all.
func (s *Status) include(one *Status) {
	if isMoreUrgent(one, s) {
		s.Phase = one.Phase
		s.PhaseSince = one.PhaseSince
	}
	s.Synced = s.Synced && one.Synced
	s.ReceivedVersion = lowestVersion(s.ReceivedVersion, one.ReceivedVersion)
	if one.LastCurrent.Before(s.LastCurrent) {
		s.LastCurrent = one.LastCurrent
		s.CurrentBy = one.CurrentBy
	}
	if one.LastList.Time.After(s.LastList.Time) {
		s.LastList = one.LastList
	}
	if one.Time.After(s.Time) {
		s.Time = one.Time
	}
	s.NextAttempt = earlier(s.NextAttempt, one.NextAttempt)
	for cause, count := range one.Failures {
		s.Failures[cause] += count
	}
	s.ConsecutiveFailures = max(s.ConsecutiveFailures, one.ConsecutiveFailures)
	s.FailingSince = earlier(s.FailingSince, one.FailingSince)
	if isNewerFailure(one.LastFailure, s.LastFailure) {
		s.LastFailure = one.LastFailure
	}
	s.Quarantined = mergeQuarantined(slices.Concat(s.Quarantined, one.Quarantined))
}

// isMoreUrgent compares the phases or, if they are equal, since when they have been entered.
func isMoreUrgent(a, b *Status) bool {
	if a.Phase == b.Phase {
		return a.PhaseSince.Before(b.PhaseSince)
	}
	return slices.Index(byUrgency, a.Phase) < slices.Index(byUrgency, b.Phase)
}

// earlier returns the earlier of two times. Zero is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func isNewerFailure(a, b *Failure) bool {
	return a != nil && (b == nil || a.Time.After(b.Time))
}

// Delivery selects how pending changes are merged: Ordered (the default), Coalesced or
// OrderedUnbounded. Each key has Add, then Updates, then Delete.
type Delivery int

const (
	// Ordered delivers every change in the source's order. If more than max(1,024, 2 x live keys)
	// changes are pending, they are merged by key until none is (HandlerStatus.Merging), so the
	// backlog is bounded. A merged change keeps its position and the old state that the handler
	// last received: OnUpdate has it, and OnDelete a tombstone of it. A pending Add and its Delete
	// cancel out.
	Ordered Delivery = iota
	// Coalesced always merges by key, for handlers that only enqueue keys, as in most controllers.
	Coalesced
	// OrderedUnbounded never merges. The backlog of a handler that hangs grows without bound, as
	// with client-go.
	OrderedUnbounded
)

// deliveries has what each Delivery is called, and how a handler's cursor merges its changes.
var deliveries = [...]struct {
	name    string
	merging eventlog.Merging
}{
	Ordered:          {"ordered", eventlog.WhenBehind},
	Coalesced:        {"coalesced", eventlog.Always},
	OrderedUnbounded: {"ordered, unbounded", eventlog.Never},
}

func (d Delivery) isKnown() bool { return d >= 0 && int(d) < len(deliveries) }

func (d Delivery) String() string {
	if !d.isKnown() {
		return fmt.Sprintf("Delivery(%d)", int(d))
	}
	return deliveries[d].name
}

// Quarantined is an object whose latest state could not be applied, with the fields of ObjectError.
// Readers see an earlier state or none.
type Quarantined struct {
	Key             string
	ResourceVersion string
	Stage           string
	Err             error
}

// ListStrategy is how a reflector lists.
type ListStrategy int

const (
	// ListAutomatic streams if the source has a method IsWatchListSemanticsUnSupported that returns
	// false and there is no ShardSelector. Otherwise it lists in pages, or unpaged where the server
	// answers from its cache.
	ListAutomatic ListStrategy = iota
	// ListUnpaged requests the whole list at once.
	ListUnpaged
	ListPaged
	// ListStreaming streams; it lists after one stream that is rejected or silent for 10 s, or two
	// other failures.
	ListStreaming
)

func (s ListStrategy) String() string {
	switch s {
	case ListUnpaged:
		return "unpaged"
	case ListPaged:
		return "paged"
	case ListStreaming:
		return "streaming"
	}
	return "automatic"
}

// lowestVersion returns the lowest of one or more versions, "" if two different ones cannot be
// compared. An empty version cannot be compared with another.
func lowestVersion(versions ...string) string {
	lowest := versions[0]
	for _, version := range versions[1:] {
		switch {
		case version == lowest || versionBefore(lowest, version):
		case versionBefore(version, lowest):
			lowest = version
		default:
			return ""
		}
	}
	return lowest
}
