// A reflector's reports: its phase, its failures, the objects that it quarantines, and its log.
// What does Status return, and which failures are logged?

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/table"
)

// lastingFailures is how many "not found" or "forbidden" in a row become a phase. An API server
// that restarts answers 404 for some seconds.
const lastingFailures = 3

// Status returns the reflector's status. It does not block.
func (r *Reflector) Status() Status {
	r.mu.Lock()
	status := r.status
	r.mu.Unlock()
	status.Time = r.clock.Now()
	isPaused := status.NextAttempt.After(status.Time)
	if !isPaused {
		status.NextAttempt = time.Time{}
	}
	r.addVersions(&status)
	r.addSource(&status)
	status.Quarantined = r.quarantine.shared.list(r.quarantine.shares)
	status.Shard = r.shard.Status()
	return status
}

// addVersions adds the versions, and the last proof that the store is current.
func (r *Reflector) addVersions(status *Status) {
	status.AppliedVersion = r.appliedVersion() // before ReceivedVersion, which must not be lower
	p := r.proof.Load()
	// The store may have applied a version that is not recorded yet.
	status.ReceivedVersion = newerOf(p.version, status.AppliedVersion)
	status.LastCurrent = p.at
	status.CurrentBy = p.by
	status.Synced = p.accepted
	if queue, ok := r.store.(interface{ HasSynced() bool }); ok {
		status.Synced = queue.HasSynced()
	}
}

// appliedVersion returns the store's version or, for a store that applies at once, the last
// accepted one.
func (r *Reflector) appliedVersion() string {
	switch store := r.store.(type) {
	case interface{ processedVersion() string }:
		return store.processedVersion()
	case interface{ LastStoreSyncResourceVersion() string }:
		return store.LastStoreSyncResourceVersion()
	}
	return r.LastSyncResourceVersion()
}

// addSource adds what the source says about itself.
func (r *Reflector) addSource(status *Status) {
	if own, ok := r.own.(interface{ SourceStatus() map[string]string }); ok {
		status.Source = own.SourceStatus()
	}
	if own, ok := r.own.(interface{ LastRead() time.Time }); ok {
		status.LastRead = own.LastRead()
	}
}

// lastingPhases are the phases after lastingFailures of one cause in a row.
var lastingPhases = map[Cause]Phase{CauseNotFound: PhaseNotFound, CauseForbidden: PhaseForbidden}

// setPhase sets a phase other than PhasePaused.
func (r *Reflector) setPhase(phase Phase) { r.enterPhase(phase, time.Time{}) }

// setPaused sets PhasePaused, until the next attempt.
func (r *Reflector) setPaused(until time.Time) { r.enterPhase(PhasePaused, until) }

// enterPhase sets the phase and the next attempt. The phases "not found" and "forbidden" last
// through further attempts until one succeeds.
func (r *Reflector) enterPhase(phase Phase, nextAttempt time.Time) {
	now := r.clock.Now()
	r.mu.Lock()
	lasting, isLasting := lastingPhases[r.lastCause]
	if isLasting && r.sameCause >= lastingFailures && phase != PhaseStopped {
		phase = lasting
	}
	r.status.NextAttempt = nextAttempt
	changed := r.status.Phase != phase
	if changed {
		r.status.Phase = phase
		r.status.PhaseSince = now
		r.changes.wake()
	}
	r.mu.Unlock()
	if changed && r.options.PhaseHandler != nil {
		r.options.PhaseHandler(r, r.Status())
	}
}

// setLastList records the last list that was applied.
func (r *Reflector) setLastList(list ListStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastList = list
}

// recordSuccess ends a series of failures, since a watch works.
func (r *Reflector) recordSuccess(ctx context.Context) {
	r.endFailures(ctx)
	r.setPhase(PhaseWatching)
}

// endFailures ends a series of failures of the source. It logs that, if the failures were logged.
func (r *Reflector) endFailures(ctx context.Context) {
	r.mu.Lock()
	failures := r.status.ConsecutiveFailures
	since := r.status.FailingSince
	wasLogged := r.failureLog.lines > 0
	r.status.ConsecutiveFailures = 0
	r.status.FailingSince = time.Time{}
	r.sameCause = 0
	r.failureLog = failureLog{}
	r.mu.Unlock()
	if failures > 0 && wasLogged {
		lasted := roundForPeople(r.clock.Since(since))
		r.logger(ctx).Info("Source works again", "failures", failures, "lasted", lasted)
	}
}

// hasFailed reports whether the last attempts have failed.
func (r *Reflector) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status.ConsecutiveFailures > 0
}

// setCurrent records a proof that the store is current: see Status.CurrentBy.
func (r *Reflector) setCurrent(by string) {
	current := *r.proof.Load()
	current.at = r.clock.Now()
	current.by = by
	r.proof.Store(&current)
}

// setAccepted records that the store has accepted a version, and by which proof: see
// Status.CurrentBy.
func (r *Reflector) setAccepted(version, by string) {
	r.progress.version = version
	current := &proof{at: r.clock.Now(), by: by, version: version, accepted: true}
	before := r.proof.Swap(current)
	if !before.accepted {
		r.changes.wake()
	}
	if gauge := r.metrics.version; gauge != nil {
		setVersionGauge(gauge, version)
	}
}

// reportFailure reports a failure of the source, and when the next attempt follows: see
// setSourceFailure.
func (r *Reflector) reportFailure(ctx context.Context, err error, retryAt time.Time) {
	r.setSourceFailure(err, retryAt)
	r.options.ErrorHandler(ctx, r, err)
}

// report reports an error that is not a failure of the source, such as a quarantined object. After
// its context has ended it only reports a slow source.
func (r *Reflector) report(ctx context.Context, err error) {
	if ctx.Err() == nil || CauseOf(err) == causeSlowSource {
		r.setLastFailure(err)
		r.options.ErrorHandler(ctx, r, err)
	}
}

// setLastFailure makes err the status's last failure.
func (r *Reflector) setLastFailure(err error) {
	last := &Failure{Cause: CauseOf(err), Err: err, Time: r.clock.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLastFailureLocked(last)
}

func (r *Reflector) setLastFailureLocked(last *Failure) {
	r.status.LastFailure = last
	r.status.Failures = maps.Clone(r.status.Failures) // earlier statuses have the old map
	r.status.Failures[last.Cause]++
	r.changes.wake()
}

// setSourceFailure makes err the status's last failure and counts it as a consecutive one. A zero
// retryAt leaves the time of the next attempt: none is caused by this failure.
func (r *Reflector) setSourceFailure(err error, retryAt time.Time) {
	last := &Failure{Cause: CauseOf(err), Err: err, Time: r.clock.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLastFailureLocked(last)
	if !retryAt.IsZero() {
		r.status.NextAttempt = retryAt
	}
	if r.status.ConsecutiveFailures == 0 {
		r.status.FailingSince = last.Time
	}
	r.status.ConsecutiveFailures++
	if r.lastCause != last.Cause {
		r.lastCause = last.Cause
		r.sameCause = 0
	}
	r.sameCause++
}

// quarantineObject quarantines an object, unless the store has done so, and reports it once per
// version. It does not change the error, which may belong to the store.
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

// quarantineKeyOf returns the key under which the reflector quarantines an object: its
// namespace/name if known, whatever the store's key is, with the kind if the reflector accepts
// every type. All deletions that nobody can name have one key.
func (r *Reflector) quarantineKeyOf(object *ObjectError) string {
	if object.isNamelessDeletion {
		return "deletions without a name"
	}
	id := object.object
	if id == (identity{}) {
		return object.Key
	}
	if r.expectedType != nil {
		return id.name.String()
	}
	return fmt.Sprintf("%s\x00%v", id.name, id.kind)
}

// quarantineKeysOf returns the keys under which the reflector may have quarantined an object, with
// the kind and without.
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
	return loglines.FromContext(ctx).WithValues("reflector", r.name, "type", r.typeDescription)
}

// DefaultWatchErrorHandler logs each failure, at the level of its kind. Of equal failures of the
// source in a row, it logs the first two, then one a minute with the number of failures since the
// last line.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	cause := CauseOf(err)
	logger := r.logger(ctx).WithValues("cause", cause)
	message, notOfSource := failureMessages[cause]
	switch {
	case notOfSource: // first: it may wrap one of the errors below
		if object, ok := errors.AsType[*ObjectError](err); ok {
			logger = logger.WithValues("key", object.Key)
			err = loglines.Wrapped(object)
		}
		logger.Error(err, message)
	case errors.Is(err, errNotStreamed):
		logger.V(1).Info("Streaming list failed, listing", "err", err)
	case cause == CauseExpired:
		logger.V(4).Info("Resource version expired, relisting", "err", err)
	case err == io.EOF:
		// The server closed the watch, as it may. For a list or a request, the EOF is wrapped in
		// another error.
	case errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(1).Info("Watch connection lost", "err", err)
	default:
		// Not apimachinery's HandleError, which sleeps to limit its rate. The backoff limits the
		// rate here.
		r.logFailure(logger, cause, err)
	}
}

// failureLog is the log of a series of failures.
type failureLog struct {
	// lines is the number of logged failures.
	lines int
	// text is that of the last failure, without digits, which may be ports or versions.
	text string
	// inRow is the number of last failures with this text, omitted of those since the last line.
	inRow   int
	omitted int
	// lastLine is the time of the last line.
	lastLine time.Time
}

const (
	// loggedAlways is how many equal failures in a row are logged. Later ones are logged once in
	// repeatInterval.
	loggedAlways   = 2
	repeatInterval = time.Minute
)

// record records a failure. If it is to be logged, it returns the number of equal failures since
// the last line, this one included.
func (l *failureLog) record(text string, now time.Time) (count int, isLogged bool) {
	text = withoutDigits(text)
	if text != l.text {
		l.text = text
		l.inRow = 0
		l.omitted = 0
	}
	l.inRow++
	if l.inRow > loggedAlways && now.Sub(l.lastLine) < repeatInterval {
		l.omitted++
		return 0, false
	}
	count = l.omitted + 1
	l.omitted = 0
	l.lines++
	l.lastLine = now
	return count, true
}

func withoutDigits(text string) string {
	return strings.Map(func(char rune) rune {
		if '0' <= char && char <= '9' {
			return -1
		}
		return char
	}, text)
}

// logFailure logs a failure of the source, unless it repeats earlier ones.
func (r *Reflector) logFailure(logger klog.Logger, cause Cause, err error) {
	text := err.Error()
	r.mu.Lock()
	now := r.clock.Now()
	count, isLogged := r.failureLog.record(text, now)
	nextAttempt := r.status.NextAttempt
	failures := r.status.ConsecutiveFailures
	r.mu.Unlock()
	if !isLogged {
		return
	}
	if count > 1 {
		logger = logger.WithValues("repeated", count)
	}
	if !nextAttempt.IsZero() {
		retryIn := max(nextAttempt.Sub(now), 0)
		logger = logger.WithValues("retryIn", roundForPeople(retryIn))
	}
	logger.Error(loglines.Wrapped(err), "List or watch failed", "failures", failures)
}

// failureMessages are the log messages of failures that are not the source's.
var failureMessages = map[Cause]string{
	causeInvalidObject: "Object refused",
	causeTransform:     "Object refused",
	causeIndex:         "Object refused",
	causeHandlerError:  "Handler failed",
	causePanic:         "Handler failed",
	causeMutated:       "Shared object was changed",
	causeMisuse:        "Wrong use",
}
