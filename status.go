package cache

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/sharding"
)

// Phase is a reflector's activity: PhaseIdle, PhaseListing, PhaseStreaming, PhaseWatching, PhasePaused, PhaseNotFound,
// PhaseForbidden or PhaseStopped.
type Phase string

// The phases of a reflector.
const (
	PhaseIdle      Phase = "idle"      // Run has not been called
	PhaseListing   Phase = "listing"   // a list is under way
	PhaseStreaming Phase = "streaming" // a streaming list is under way
	PhaseWatching  Phase = "watching"  // a watch is open, or being opened
	PhasePaused    Phase = "paused"    // waiting after a failure
	PhaseNotFound  Phase = "not-found" // the source has answered "not found" at least 3 times in a row
	PhaseForbidden Phase = "forbidden" // the source has answered "forbidden" at least 3 times in a row
	PhaseStopped   Phase = "stopped"   // Run has returned
)

// Status is the status of a reflector, controller or informer. Fields may be added, none will be renamed. In JSON the fields
// have the names of their tags: times in RFC 3339, errors as text, durations in seconds ("oldestAgeSeconds"). String makes one line.
type Status struct {
	// Namespace is set in the elements of Namespaces.
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name"`
	TypeDescription string    `json:"typeDescription"`
	Phase           Phase     `json:"phase"`
	PhaseSince      time.Time `json:"phaseSince"`
	// AppliedVersion: the store has the source's state up to it. ReceivedVersion: the last that store or queue accepted.
	AppliedVersion  string `json:"appliedVersion"`
	ReceivedVersion string `json:"receivedVersion"`
	Synced          bool   `json:"synced"` // the whole first list was applied
	// LastCurrent is when the source last proved that the store is current, CurrentBy the proof: "list", "watch" (accepted),
	// "event" or "bookmark". The store is at most that stale. LastRead is when kubeapi last received bytes.
	LastCurrent time.Time  `json:"lastCurrent,omitzero"`
	CurrentBy   string     `json:"currentBy,omitempty"`
	LastRead    time.Time  `json:"lastRead,omitzero"`
	LastList    ListStatus `json:"lastList,omitzero"`
	// NextAttempt is when a paused reflector makes its next request, else zero.
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	// ConsecutiveFailures counts failures since the last accepted list, or watch that sent an event or lived for 10 s.
	ConsecutiveFailures int `json:"consecutiveFailures"`
	// LastFailure is nil if nothing has failed yet. Failures counts all by cause. Neither must be changed.
	LastFailure *Failure        `json:"lastFailure,omitempty"`
	Failures    map[Cause]int64 `json:"failures,omitempty"`
	// Source is the result of the source's SourceStatus() map[string]string method, if it has one: see kubeapi's.
	Source map[string]string `json:"source,omitempty"`
	Shard  *sharding.Status  `json:"shard,omitempty"` // nil without a ShardSelector
	// Quarantined are the objects whose latest state is not shown, by key.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Objects and Checksum, of keys and versions, are of an informer's whole store. The order does not matter.
	Objects  int    `json:"objects,omitempty"`
	Checksum uint64 `json:"checksum,omitempty,string"`
	// Handlers are an informer's, in the order in which they were added.
	Handlers []HandlerStatus `json:"handlers,omitempty"`
	// Namespaces are those of Config.Namespaces, by name. The fields above then are the most urgent Phase (forbidden,
	// not found, paused, stopped, idle, listing, streaming, watching), the earliest PhaseSince, the lowest versions,
	// the highest ConsecutiveFailures and the newest LastFailure.
	Namespaces []Status `json:"namespaces,omitempty"`
}

// ListStatus describes a list: when it was applied, how it was made, and why.
type ListStatus struct {
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"-"`
	Objects  int           `json:"objects"`
	Strategy ListStrategy  `json:"-"`
	Reason   string        `json:"reason"`
}

func (l ListStatus) MarshalJSON() ([]byte, error) {
	type fields ListStatus
	return json.Marshal(struct {
		fields
		Duration float64 `json:"durationSeconds"`
		Strategy string  `json:"strategy"`
	}{fields(l), l.Duration.Seconds(), l.Strategy.String()})
}

// HandlerStatus is the status of one handler.
type HandlerStatus struct {
	Name     string   `json:"name"`
	Delivery Delivery `json:"delivery"`
	// Merging is true while changes are merged by key: always for Coalesced; for Ordered until it has caught up.
	Merging bool `json:"merging"`
	// Backlog is how many changes wait. OldestAge is the age of the oldest change, including the one being handled.
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

func (s Status) String() string {
	text, behind := "", 0
	for _, h := range s.Handlers {
		behind += min(h.Backlog, 1)
	}
	add := func(shown bool, format string, args ...any) {
		if shown {
			text += fmt.Sprintf(format, args...)
		}
	}
	add(s.Namespace != "", "namespace %q, ", s.Namespace)
	add(true, "%s of %s: %s since %s", s.Name, s.TypeDescription, s.Phase, s.PhaseSince.Format(time.RFC3339))
	add(!s.Synced, ", not synced")
	add(s.AppliedVersion != "", ", version %q", s.AppliedVersion)
	add(s.ReceivedVersion != s.AppliedVersion, ", received %q", s.ReceivedVersion)
	add(s.ConsecutiveFailures > 0, ", failures in a row: %d", s.ConsecutiveFailures)
	add(len(s.Quarantined) > 0, ", quarantined: %d", len(s.Quarantined))
	add(behind > 0, ", handlers behind: %d of %d", behind, len(s.Handlers))
	add(s.LastFailure != nil, ", last failure: %v", s.LastFailure)
	return text
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
	}{fields(h), h.Delivery.String(), h.OldestAge.Seconds()})
}

func (f Failure) String() string {
	return fmt.Sprintf("%s at %s: %v", f.Cause, f.Time.Format(time.RFC3339), f.Err)
}

func (f Failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"cause": f.Cause, "error": fmt.Sprint(f.Err), "time": f.Time})
}

func (q Quarantined) String() string {
	return fmt.Sprintf("object %q%s, %s failed: %v", q.Key, atVersion(q.ResourceVersion), q.Stage, q.Err)
}

func (q Quarantined) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"key": q.Key, "resourceVersion": q.ResourceVersion, "stage": q.Stage, "error": fmt.Sprint(q.Err),
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
		newestFirst, _ := resourceversion.CompareResourceVersion(b.ResourceVersion, a.ResourceVersion)
		return cmp.Or(strings.Compare(a.Key, b.Key), newestFirst, strings.Compare(a.Stage, b.Stage))
	})
	return slices.CompactFunc(all, func(a, b Quarantined) bool { return a.Key == b.Key })
}

// lastingFailures is how many "not found" or "forbidden" in a row become a phase. An API server that restarts
// answers 404 for some seconds.
const lastingFailures = 3

// Status returns the reflector's status. It does not block.
func (r *Reflector) Status() Status {
	r.mu.Lock()
	status := r.status
	r.mu.Unlock()
	if !status.NextAttempt.After(r.clock.Now()) { // it is not paused
		status.NextAttempt = time.Time{}
	}
	switch store := r.store.(type) { // before ReceivedVersion, which must not be lower
	case interface{ processedVersion() string }:
		status.AppliedVersion = store.processedVersion()
	case interface{ LastStoreSyncResourceVersion() string }:
		status.AppliedVersion = store.LastStoreSyncResourceVersion()
	default: // a store that applies at once
		status.AppliedVersion = r.LastSyncResourceVersion()
	}
	p := r.proof.Load()
	status.ReceivedVersion, status.LastCurrent, status.CurrentBy, status.Synced = p.version, p.at, p.by, p.accepted
	if queue, ok := r.store.(interface{ HasSynced() bool }); ok {
		status.Synced = queue.HasSynced()
	}
	if own, ok := r.own.(interface{ SourceStatus() map[string]string }); ok {
		status.Source = own.SourceStatus()
	}
	if own, ok := r.own.(interface{ LastRead() time.Time }); ok {
		status.LastRead = own.LastRead()
	}
	status.Quarantined, status.Shard = r.quarantine.list(r.quarantine.shares), r.shard.Status()
	return status
}

// lastingPhases are the phases after lastingFailures of one cause in a row.
var lastingPhases = map[Cause]Phase{CauseNotFound: PhaseNotFound, CauseForbidden: PhaseForbidden}

// setPhase sets the phase, and the next attempt after a pause. The phases "not found" and "forbidden" last through
// further attempts until one succeeds.
func (r *Reflector) setPhase(phase Phase, pause time.Duration) {
	now := r.clock.Now()
	r.mu.Lock()
	if lasting, ok := lastingPhases[r.lastCause]; ok && r.sameCause >= lastingFailures && phase != PhaseStopped {
		phase = lasting
	}
	r.status.NextAttempt = now.Add(pause)
	changed := r.status.Phase != phase
	if changed {
		r.status.Phase, r.status.PhaseSince = phase, now
		r.changes.wake()
	}
	r.mu.Unlock()
	if changed && r.options.PhaseHandler != nil {
		r.options.PhaseHandler(r, r.Status())
	}
}

// recordSuccess ends a series of failures, since a watch works.
func (r *Reflector) recordSuccess() {
	r.mu.Lock()
	r.status.ConsecutiveFailures, r.sameCause = 0, 0
	r.mu.Unlock()
	r.setPhase(PhaseWatching, 0)
}

// setCurrent records a proof that the store is current: see Status.CurrentBy.
func (r *Reflector) setCurrent(by string) {
	before := r.proof.Load()
	r.proof.Store(&proof{at: r.clock.Now(), by: by, version: before.version, accepted: before.accepted})
}

// setAccepted records that the store has accepted a version, and by which proof: see Status.CurrentBy.
func (r *Reflector) setAccepted(version, by string) {
	r.progress.version, r.progress.watchFailures = version, 0
	if before := r.proof.Swap(&proof{at: r.clock.Now(), by: by, version: version, accepted: true}); !before.accepted {
		r.changes.wake()
	}
	if gauge := r.metrics.version; gauge != nil {
		setVersionGauge(gauge, version)
	}
}

// reportFailure reports a failure of the source.
func (r *Reflector) reportFailure(ctx context.Context, err error) {
	r.setLastFailure(err, true)
	r.options.ErrorHandler(ctx, r, err)
}

// report reports an error that is not a failure of the source, such as a quarantined object. After its context has ended it
// only reports a slow source.
func (r *Reflector) report(ctx context.Context, err error) {
	if ctx.Err() == nil || CauseOf(err) == causeSlowSource {
		r.setLastFailure(err, false)
		r.options.ErrorHandler(ctx, r, err)
	}
}

// setLastFailure makes err the status's last failure. Only failures of the source are consecutive failures.
func (r *Reflector) setLastFailure(err error, ofSource bool) {
	last := &Failure{Cause: CauseOf(err), Err: err, Time: r.clock.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastFailure = last
	r.status.Failures = maps.Clone(r.status.Failures) // earlier statuses have the old map
	r.status.Failures[last.Cause]++
	r.changes.wake()
	if !ofSource {
		return
	}
	if r.status.ConsecutiveFailures++; r.lastCause != last.Cause {
		r.lastCause, r.sameCause = last.Cause, 0
	}
	r.sameCause++
}

// quarantineObject quarantines an object, unless the store has done so, and reports it once per version. It does not change
// the error, which may belong to the store.
func (r *Reflector) quarantineObject(ctx context.Context, object *ObjectError) {
	if !storeQuarantines(r.store, object) {
		copied := *object
		object = &copied
		r.quarantine.add(table.KeyOf(r.quarantineKeyOf(object)), object, withoutStack(object.Err))
	}
	if !object.repeated {
		r.report(ctx, object)
	}
}

// quarantineKeyOf returns the key under which the reflector quarantines an object: its namespace/name if known, whatever the
// store's key is, with the kind if the reflector accepts every type.
func (r *Reflector) quarantineKeyOf(object *ObjectError) string {
	switch id := object.object; {
	case id == (identity{}):
		return object.Key
	case r.expectedType != nil:
		return id.name.String()
	default:
		return fmt.Sprintf("%s\x00%v", id.name, id.kind)
	}
}

// quarantineKeysOf returns the keys under which the reflector may have quarantined an object, with the kind and without.
func (r *Reflector) quarantineKeysOf(obj any) []string {
	return []string{nameOf(obj), r.quarantineKeyOf(&ObjectError{object: identityOf(obj)})}
}

// releaseObject releases an object from the reflector's quarantine.
func (r *Reflector) releaseObject(obj any) {
	for _, key := range r.quarantineKeysOf(obj) {
		r.quarantine.release(table.KeyOf(key))
	}
}

// logger returns the context's logger with the reflector's name and type.
func (r *Reflector) logger(ctx context.Context) klog.Logger {
	return klog.FromContext(ctx).WithValues("reflector", r.name, "type", r.typeDescription)
}

// DefaultWatchErrorHandler logs each failure, at the level of its kind.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	cause := CauseOf(err)
	logger := r.logger(ctx).WithValues("cause", cause)
	message, notOfSource := failureMessages[cause]
	switch {
	case notOfSource: // first: it may wrap one of the errors below
		logger.Error(err, message)
	case errors.Is(err, errNotStreamed):
		logger.V(1).Info("Streaming list failed, listing", "err", err)
	case cause == CauseExpired:
		logger.V(4).Info("Resource version expired, relisting", "err", err)
	case err == io.EOF:
		// The server closed the watch, as it may. For a list or a request, the EOF is wrapped in another error.
	case errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(1).Info("Watch connection lost", "err", err)
	default:
		// Not apimachinery's HandleError, which sleeps to limit its rate. The backoff limits the rate here.
		logger.Error(err, "List or watch failed")
	}
}

// failureMessages are the log messages of failures that are not the source's.
var failureMessages = map[Cause]string{
	causeInvalidObject: "Object refused", causeTransform: "Object refused", causeIndex: "Object refused",
	causeHandlerError: "Handler failed", causePanic: "Handler failed",
	causeMutated: "Shared object was changed", causeMisuse: "Wrong use",
}

// byUrgency are the phases, most urgent first.
var byUrgency = []Phase{
	PhaseForbidden, PhaseNotFound, PhasePaused, PhaseStopped, PhaseIdle, PhaseListing, PhaseStreaming, PhaseWatching,
}

// broadcast wakes all goroutines that wait for a change.
type broadcast struct{ next atomic.Pointer[chan struct{}] }

// changed returns a channel that is closed at the next change.
func (b *broadcast) changed() <-chan struct{} {
	for {
		if next := b.next.Load(); next != nil {
			return *next
		}
		next := make(chan struct{})
		b.next.CompareAndSwap(nil, &next)
	}
}

func (b *broadcast) wake() {
	if next := b.next.Swap(nil); next != nil {
		close(*next)
	}
}

// combine returns the status of several namespaces, at least one. See Status.Namespaces.
func combine(all []Status) Status {
	status := all[0]
	status.Namespace, status.Namespaces, status.Quarantined, status.LastRead = "", all, nil, time.Time{}
	status.Failures = map[Cause]int64{}
	for _, one := range all {
		order := cmp.Compare(slices.Index(byUrgency, one.Phase), slices.Index(byUrgency, status.Phase))
		if order < 0 || order == 0 && one.PhaseSince.Before(status.PhaseSince) {
			status.Phase, status.PhaseSince = one.Phase, one.PhaseSince
		}
		status.Synced = status.Synced && one.Synced
		for cause, count := range one.Failures {
			status.Failures[cause] += count
		}
		status.ConsecutiveFailures = max(status.ConsecutiveFailures, one.ConsecutiveFailures)
		if last := one.LastFailure; last != nil && (status.LastFailure == nil || last.Time.After(status.LastFailure.Time)) {
			status.LastFailure = last
		}
		if one.LastCurrent.Before(status.LastCurrent) {
			status.LastCurrent, status.CurrentBy = one.LastCurrent, one.CurrentBy
		}
		if one.LastList.Time.After(status.LastList.Time) {
			status.LastList = one.LastList
		}
		if next := one.NextAttempt; !next.IsZero() && (status.NextAttempt.IsZero() || next.Before(status.NextAttempt)) {
			status.NextAttempt = next
		}
		status.ReceivedVersion = lowestVersion(status.ReceivedVersion, one.ReceivedVersion)
		status.Quarantined = mergeQuarantined(slices.Concat(status.Quarantined, one.Quarantined))
	}
	return status
}
