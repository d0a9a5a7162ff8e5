package statuspage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchmirror/cache"
)

// statusOf is a status as the pages and the JSON form show it.
type statusOf struct {
	// Name is the name passed to Add.
	Name    string `json:"name"`
	Objects *int   `json:"objects,omitempty"`
	// Activity is the phase in words for people, as in the history.
	Activity     string `json:"activity"`
	cache.Status `json:"status"`

	now time.Time
}

func newStatusOf(name string, status cache.Status, now time.Time) statusOf {
	return statusOf{Name: name, Activity: status.Activity(), Status: status, now: now}
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

// Color returns the color of the state: ok, busy, bad, off.
func (s statusOf) Color() string {
	switch s.Phase {
	case cache.PhaseForbidden, cache.PhaseNotFound, cache.PhaseIdle:
		return "bad"
	case cache.PhaseStopped:
		return "off"
	}
	if s.ConsecutiveFailures > 0 {
		return "bad"
	}
	if s.Phase == cache.PhaseWatching || s.Phase == cache.PhasePaused {
		return "ok"
	}
	return "busy"
}

// For is how long the activity has lasted. While attempts fail, that is since the first of them.
func (s statusOf) For() string {
	failingFor := s.FailingFor()
	if failingFor != "" && s.Phase != cache.PhaseStopped {
		return failingFor
	}
	return shortDuration(s.now.Sub(s.PhaseSince))
}

// FailingFor is empty if the last attempt has not failed.
func (s statusOf) FailingFor() string {
	if s.FailingSince.IsZero() {
		return ""
	}
	return shortDuration(max(s.now.Sub(s.FailingSince), 0))
}

// Cause is the reason in the index: of the present failure, or why the cache does nothing.
func (s statusOf) Cause() string {
	switch {
	case s.Phase == cache.PhaseIdle:
		return "Run was not called"
	case s.Phase == cache.PhaseStopped:
		return "Run has returned"
	case s.LastFailure != nil:
		return causeInWords(s.LastFailure)
	}
	return ""
}

// causeInWords returns the cause of a failure. Many faults cause an invalid response; a wrong scheme is named.
func causeInWords(failure *cache.Failure) string {
	words := string(failure.Cause)
	if errors.Is(failure.Err, http.ErrSchemeMismatch) {
		words += ": the server speaks HTTP, not HTTPS"
	}
	return words
}

// IsPastFailure is true if the last failure is over.
func (s statusOf) IsPastFailure() bool { return s.LastFailure != nil && s.ConsecutiveFailures == 0 }

// Ago is how long ago the last failure was.
func (s statusOf) Ago() string {
	return shortDuration(max(s.now.Sub(s.LastFailure.Time), 0)) + " ago"
}

// slowHandler is the age of a handler's oldest change from which on it is a problem.
const slowHandler = time.Minute

// problem is something that needs attention now.
type problem struct {
	Title string
	Text  string
}

// Problems returns the present problems. An error that is over is none.
func (s statusOf) Problems() []problem {
	var problems []problem
	switch {
	case s.Phase == cache.PhaseIdle:
		problems = append(problems, problem{
			"Run was not called",
			"The cache is empty until its Run is called.",
		})
	case s.Phase == cache.PhaseStopped:
		problems = append(problems, problem{
			"Run has returned",
			"The content does not change any more.",
		})
	case s.ConsecutiveFailures > 0:
		problems = append(problems, s.failing())
	}
	if count := len(s.Quarantined); count > 0 {
		title := fmt.Sprintf("%s quarantined", counted(count, "object is", "objects are"))
		problems = append(problems, problem{
			title,
			"Readers see an earlier state of them, or none.",
		})
	}
	for _, handler := range s.Handlers {
		if handler.OldestAge < slowHandler {
			continue
		}
		title := fmt.Sprintf("Handler %s is behind", handler.Name)
		text := fmt.Sprintf("%s behind, the oldest for %s",
			counted(handler.Backlog, "change", "changes"), shortDuration(handler.OldestAge))
		problems = append(problems, problem{title, text})
	}
	return problems
}

func (s statusOf) failing() problem {
	p := problem{Title: fmt.Sprintf("%s for %s", s.Activity, s.FailingFor())}
	p.Title = strings.ToUpper(p.Title[:1]) + p.Title[1:]
	if s.LastFailure != nil {
		p.Title += ": " + string(s.LastFailure.Cause)
		p.Text = errorText(s.LastFailure.Err)
	}
	return p
}

// HasProblem is true for caches that are listed first.
func (s statusOf) HasProblem() bool { return len(s.Problems()) > 0 }

// counted returns a number with its noun. They do not break.
func counted(count int, singular, plural string) string {
	noun := plural
	if count == 1 {
		noun = singular
	}
	return fmt.Sprintf("%d\u00a0%s", count, noun)
}

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
		all = append(all, newStatusOf(one.Namespace, one, s.now))
	}
	return all
}

// fact is a line on a cache's page.
type fact struct {
	Name  string
	Value string
	// IsWide is true for a value that is too long for half of a card.
	IsWide bool
}

// factGroup is a group of facts with a title.
type factGroup struct {
	Title string
	Facts []fact
}

// FactGroups returns the facts of a cache. Empty ones are left out.
func (s statusOf) FactGroups() []factGroup {
	groups := []factGroup{
		{"State", s.stateFacts()},
		{"Versions", []fact{
			{Name: "Applied version", Value: s.AppliedVersion},
			{Name: "Received version", Value: s.ReceivedVersion},
			{Name: "Checksum", Value: s.checksum(), IsWide: true},
		}},
		{"Last list", s.listFacts()},
		{"Source", s.sourceFacts()},
	}
	isEmpty := func(f fact) bool { return f.Value == "" }
	for i := range groups {
		groups[i].Facts = slices.DeleteFunc(groups[i].Facts, isEmpty)
	}
	return slices.DeleteFunc(groups, func(g factGroup) bool { return len(g.Facts) == 0 })
}

func (s statusOf) stateFacts() []fact {
	objects := ""
	if s.Objects != nil {
		objects = strconv.Itoa(*s.Objects)
	}
	synced := "no"
	if s.Synced {
		synced = "yes"
	}
	return []fact{
		{Name: "State", Value: fmt.Sprintf("%s for %s", s.Activity, s.For())},
		{Name: "Synced", Value: synced},
		{Name: "Objects", Value: objects},
		{Name: "Staleness", Value: s.Staleness()},
		{Name: "Last shown current by", Value: s.CurrentBy},
		{Name: "Failures in a row", Value: strconv.Itoa(s.ConsecutiveFailures)},
		{Name: "Next attempt", Value: s.nextAttempt()},
		{Name: "Failures by cause", Value: s.failures(), IsWide: true},
		{Name: "Name in the log", Value: s.nameInLog(), IsWide: true},
	}
}

// nameInLog is empty if it is the name passed to Add.
func (s statusOf) nameInLog() string {
	if s.Status.Name == s.Name {
		return ""
	}
	return s.Status.Name
}

func (s statusOf) listFacts() []fact {
	list := s.LastList
	if list.Time.IsZero() {
		return nil
	}
	return []fact{
		{Name: "Applied", Value: shortDuration(s.now.Sub(list.Time)) + " ago"},
		{Name: "Objects listed", Value: strconv.Itoa(list.Objects)},
		{Name: "Duration", Value: shortDuration(list.Duration)},
		{Name: "Strategy", Value: list.Strategy.String()},
		{Name: "Reason", Value: list.Reason, IsWide: true},
	}
}

func (s statusOf) sourceFacts() []fact {
	facts := []fact{{Name: "Last read", Value: s.lastRead()}}
	for _, name := range slices.Sorted(maps.Keys(s.Source)) {
		facts = append(facts, fact{Name: name, Value: s.Source[name], IsWide: true})
	}
	return facts
}

// failures returns the counts by cause, the most frequent first.
func (s statusOf) failures() string {
	causes := slices.SortedFunc(maps.Keys(s.Failures), func(a, b cache.Cause) int {
		return cmp.Or(cmp.Compare(s.Failures[b], s.Failures[a]), cmp.Compare(a, b))
	})
	var counts []string
	for _, cause := range causes {
		counts = append(counts, fmt.Sprintf("%s\u00a0%d", cause, s.Failures[cause]))
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
	return "in\u00a0" + shortDuration(max(s.NextAttempt.Sub(s.now), 0))
}

// lastRead is of kubeapi's sources.
func (s statusOf) lastRead() string {
	if s.LastRead.IsZero() {
		return ""
	}
	return shortDuration(max(s.now.Sub(s.LastRead), 0)) + " ago"
}

// Backlog returns the largest backlog of a handler.
func (s statusOf) Backlog() int {
	most := 0
	for _, h := range s.Handlers {
		most = max(most, h.Backlog)
	}
	return most
}

func (s statusOf) HasBacklog() bool { return len(s.Handlers) > 0 }

// keyFilter selects keys.
type keyFilter struct {
	Prefix string
	Part   string
}

func (f keyFilter) selects(key string) bool {
	return strings.HasPrefix(key, f.Prefix) && strings.Contains(key, f.Part)
}

// keysOf returns at most most selected keys, sorted, after the key after, and the number of
// selected keys.
func keysOf(
	objects cache.Reader[any], filter keyFilter, after string, most int,
) (keys []string, count int) {
	for key := range objects.All() {
		if !filter.selects(key) {
			continue
		}
		count++
		if key > after {
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
