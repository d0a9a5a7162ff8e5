package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The overall phase is the one most worth a look, since it began.
func TestTheOverallPhaseIsTheOneMostWorthALook(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(phase Phase, minutes int) NamespaceStatus {
		return NamespaceStatus{Status: Status{Phase: phase, PhaseSince: start.Add(time.Duration(minutes) * time.Minute)}}
	}
	for i, urgent := range byUrgency {
		for _, other := range byUrgency[i+1:] {
			for _, all := range [][]NamespaceStatus{
				{at(other, 0), at(urgent, 2), at(other, 3), at(urgent, 1)},
				{at(urgent, 1), at(urgent, 2), at(other, 0)},
			} {
				status := overall(all)
				assert.Equal(t, urgent, status.Phase, "beside %s", other)
				assert.Equal(t, start.Add(time.Minute), status.PhaseSince)
			}
		}
	}
	assert.Len(t, byUrgency, 8, "every phase has a place")
}

func TestTheOverallStatusJoinsTheNamespaces(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	older := &Failure{Cause: CauseForbidden, Err: errBoom, Time: start}
	newest := &Failure{Cause: CauseNotFound, Err: errBoom, Time: start.Add(time.Second)}
	all := []NamespaceStatus{
		{"a", Status{AcceptedVersion: "7", Synced: true, LastFailure: older, ConsecutiveFailures: 2, TypeDescription: "things"}},
		{"b", Status{AcceptedVersion: "10", Synced: true, LastFailure: newest, ConsecutiveFailures: 1, Quarantined: []Quarantined{{Key: "b/1"}}}},
		{"c", Status{AcceptedVersion: "8", Synced: true, Quarantined: []Quarantined{{Key: "a/1"}}}},
	}
	status := overall(all)
	assert.Equal(t, "7", status.AcceptedVersion)
	assert.True(t, status.Synced)
	assert.Equal(t, newest, status.LastFailure)
	assert.NotSame(t, newest, status.LastFailure, "a plain value")
	assert.Equal(t, 2, status.ConsecutiveFailures)
	assert.Equal(t, "things", status.TypeDescription)
	assert.Equal(t, []string{"a/1", "b/1"}, keysHeldIn(status))
	assert.Equal(t, all, status.Namespaces)

	all[1].Synced, all[1].AcceptedVersion = false, ""
	assert.False(t, overall(all).Synced)
	assert.Empty(t, overall(all).AcceptedVersion)
	assert.Nil(t, overall(all[2:]).LastFailure)
}
