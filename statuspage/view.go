package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchmirror/cache"
)

// statusOf is a status as the pages and the JSON form show it.
type statusOf struct {
	// Name is the name passed to Add.
	Name         string `json:"name"`
	Objects      *int   `json:"objects,omitempty"`
	cache.Status `json:"status"`

	now time.Time
}

// errorText returns an error's text, cut to fit into a page.
func errorText(err error) string {
	const most = 600
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// Color returns the color of a phase: ok, busy, bad, off.
func (s statusOf) Color() string {
	switch s.Phase {
	case cache.PhaseWatching:
		return "ok"
	case cache.PhaseListing, cache.PhaseStreaming:
		return "busy"
	case cache.PhasePaused, cache.PhaseForbidden, cache.PhaseNotFound:
		return "bad"
	}
	return "off"
}

func (s statusOf) For() string { return shortDuration(s.now.Sub(s.PhaseSince)) }

// Staleness is empty if it is not known.
func (s statusOf) Staleness() string {
	age, known := staleness(s.Status, s.now)
	if !known {
		return ""
	}
	return shortDuration(age)
}

// Quarantine returns the quarantined objects that a page shows.
func (s statusOf) Quarantine() []cache.Quarantined {
	const most = 200
	return s.Quarantined[:min(len(s.Quarantined), most)]
}

// Sources returns the statuses of the namespaces.
func (s statusOf) Sources() []statusOf {
	var all []statusOf
	for _, one := range s.Namespaces {
		all = append(all, statusOf{Name: one.Namespace, Status: one, now: s.now})
	}
	return all
}

// fact is a line on a cache's page.
type fact struct{ Name, Value string }

// Facts returns the values that have no place elsewhere on the page. Empty ones are left out.
func (s statusOf) Facts() []fact {
	facts := []fact{
		{"Next attempt", s.nextAttempt()},
		{"Applied version", s.AppliedVersion},
		{"Received version", s.ReceivedVersion},
		{"Failures in a row", strconv.Itoa(s.ConsecutiveFailures)},
		{"Failures by cause", s.failures()},
		{"Checksum", s.checksum()},
		{"Last shown current by", s.CurrentBy},
		{"Last list", s.lastList()},
		{"Last read", s.lastRead()},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Source)) {
		facts = append(facts, fact{"Source, " + name, s.Source[name]})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// failures returns the counts by cause, the most frequent first.
func (s statusOf) failures() string {
	causes := slices.SortedFunc(maps.Keys(s.Failures), func(a, b cache.Cause) int {
		return cmp.Or(cmp.Compare(s.Failures[b], s.Failures[a]), cmp.Compare(a, b))
	})
	var counts []string
	for _, cause := range causes {
		counts = append(counts, fmt.Sprintf("%s %d", cause, s.Failures[cause]))
	}
	return strings.Join(counts, ", ")
}

// checksum is empty for a status that is not an informer's, and for an empty store.
func (s statusOf) checksum() string {
	if s.Checksum == 0 {
		return ""
	}
	return strconv.FormatUint(s.Checksum, 10) // decimal, as in JSON
}

func (s statusOf) nextAttempt() string {
	if s.NextAttempt.IsZero() {
		return ""
	}
	return "in " + shortDuration(max(s.NextAttempt.Sub(s.now), 0))
}

// lastRead is of kubeapi's sources.
func (s statusOf) lastRead() string {
	if s.LastRead.IsZero() {
		return ""
	}
	return shortDuration(max(s.now.Sub(s.LastRead), 0)) + " ago"
}

func (s statusOf) lastList() string {
	list := s.LastList
	if list.Time.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d objects in %s, %s ago, %s: %s", list.Objects, shortDuration(list.Duration), shortDuration(s.now.Sub(list.Time)), list.Strategy, list.Reason)
}

// Backlog returns the largest backlog of a handler.
func (s statusOf) Backlog() (most int) {
	for _, h := range s.Handlers {
		most = max(most, h.Backlog)
	}
	return most
}

func (s statusOf) HasBacklog() bool { return len(s.Handlers) > 0 }

// keysOf returns at most most keys with a prefix, sorted, after the key after, and the number of keys with the prefix.
func keysOf(objects cache.Reader[any], prefix, after string, most int) (keys []string, count int) {
	for key := range objects.All() {
		if len(key) < len(prefix) || key[:len(prefix)] != prefix {
			continue
		}
		if count++; key > after {
			keys = append(keys, key)
		}
		if len(keys) > 20*most { // keep the first ones, so that memory does not grow with the store
			slices.Sort(keys)
			keys = slices.Clip(keys[:most+1])
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), most)], count
}
