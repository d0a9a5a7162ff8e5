package cache

import (
	"slices"
	"time"
)

// Status implements StatusReporter: each namespace's, and what they come to.
func (c *namespaceController) Status() Status {
	all := make([]NamespaceStatus, 0, len(c.members))
	for _, member := range c.members {
		all = append(all, NamespaceStatus{member.namespace, member.Status()})
	}
	status := overall(all)
	status.Name = c.name
	status.AppliedVersion = c.store.LastStoreSyncResourceVersion()
	return status
}

// byUrgency are the phases, those first that are most worth a look: what somebody
// has to do something about, what will mend itself, what is as it should be.
var byUrgency = []Phase{
	PhaseForbidden, PhaseAbsent, PhasePaused, PhaseStopped, PhaseIdle, PhaseListing, PhaseStreaming, PhaseWatching,
}

// overall is what the statuses of several namespaces, at least one, come to. See
// Status.Namespaces.
func overall(all []NamespaceStatus) Status {
	status := Status{
		TypeDescription: all[0].TypeDescription,
		Phase:           all[0].Phase,
		PhaseSince:      all[0].PhaseSince,
		Synced:          true,
		Namespaces:      all,
	}
	var accepted []string
	var held [][]Quarantined
	for _, one := range all {
		status.Phase, status.PhaseSince = moreUrgent(status.Phase, status.PhaseSince, one.Phase, one.PhaseSince)
		status.Synced = status.Synced && one.Synced
		status.ConsecutiveFailures = max(status.ConsecutiveFailures, one.ConsecutiveFailures)
		status.LastFailure = newer(status.LastFailure, one.LastFailure)
		accepted, held = append(accepted, one.AcceptedVersion), append(held, one.Quarantined)
	}
	status.AcceptedVersion = lowestVersion(accepted)
	status.Quarantined = mergeQuarantined(held...)
	return status
}

// moreUrgent returns the more urgent of two phases; of equals the one that has
// lasted longer.
func moreUrgent(a Phase, since time.Time, b Phase, sinceB time.Time) (Phase, time.Time) {
	order := slices.Index(byUrgency, b) - slices.Index(byUrgency, a)
	if order < 0 || order == 0 && sinceB.Before(since) {
		return b, sinceB
	}
	return a, since
}

// newer returns the newer of two failures, either of which may be nil, in a copy of
// its own.
func newer(a, b *Failure) *Failure {
	if a == nil || b != nil && b.Time.After(a.Time) {
		a = b
	}
	if a == nil {
		return nil
	}
	mine := *a
	return &mine
}
