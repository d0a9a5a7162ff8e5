package script

import (
	"regexp"
	"strings"
	"time"
)

// Result is the outcome of a run.
type Result struct {
	Seed     uint64        `json:"seed"`
	Virtual  time.Duration `json:"virtual"`
	Checks   int           `json:"checks"`
	Requests int           `json:"requests"`
	Received int           `json:"received"`
	Failures []string      `json:"failures,omitempty"`
	Trace    []string      `json:"trace,omitempty"`
}

// Deaths are the kinds of failures that ended the process. Failures begin with the kind and a colon.
const (
	DeathPanic    = "panic"
	DeathDeadlock = "deadlock"
	DeathRace     = "data race"
	DeathHang     = "hang" // it took longer than it may, in real time
	DeathOther    = "died"
)

// tagged matches the promises that a failure names, as in "1m2s: G2, G11: ...".
var tagged = regexp.MustCompile(`(?:^|: )([A-Z][0-9]+(?:, [A-Z][0-9]+)*): `)

// FailureKind returns the kind of a failure: a death, or the promises that it names. Failures of one
// kind probably have the same cause.
func FailureKind(failure string) string {
	for _, death := range []string{DeathPanic, DeathDeadlock, DeathRace, DeathHang, DeathOther} {
		if strings.HasPrefix(failure, death+": ") {
			return death
		}
	}
	if found := tagged.FindStringSubmatch(failure); found != nil {
		return found[1]
	}
	return "untagged"
}

// IsDeath says whether a failure of that kind ended the process.
func IsDeath(kind string) bool {
	switch kind {
	case DeathPanic, DeathDeadlock, DeathRace, DeathHang, DeathOther:
		return true
	}
	return false
}

// Kind returns the kind of the first failure, from which others may follow; empty if there is none.
func (r Result) Kind() string {
	if len(r.Failures) == 0 {
		return ""
	}
	return FailureKind(r.Failures[0])
}
