package check

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Mirror is a mirror as its readers see it, with what it has reported, and what the checks have
// seen of it. Its maker sets how it is read: Get to Verify, and the functions of Snapshots. Unused
// parts are nil.
type Mirror struct {
	World  *world.World
	Client *world.Client
	Setup  script.MirrorSetup
	Name   string
	Calls  *Calls

	Get     func(key string) *world.Object
	List    func() []any
	ByGroup func(group string) ([]string, error)
	Groups  func() []string
	Applied func() string
	Synced  func() bool
	Status  func() cache.Status
	// Fresh and Verify are methods of an informer.
	Fresh, Verify func(context.Context) error

	Handlers []*Handler
	observer observer
	version  versions
	// Snapshots are of its content; see checkSnapshot.
	Snapshots Snapshots

	// regressed counts its reports of version regressions.
	regressed atomic.Int64
	// unknown is true once its version may belong to a history that the source has lost. After an
	// expired stream that is so until the next stream has ended.
	unknown atomic.Bool

	mu      sync.Mutex
	reports []report
	// everQuarantined are the keys that it has reported as quarantined.
	everQuarantined map[string]bool
	// transformed counts the transforms of each receipt.
	transformed map[int]int
	// refused are the serials of states for which a function failed temporarily.
	refused map[int]bool
}

// report is an error that the error handler received.
type report struct {
	at   time.Time
	err  error
	text string
}

// NewMirror returns a mirror of which nothing is known yet.
func NewMirror(w *world.World, index int, setup script.MirrorSetup) *Mirror {
	m := &Mirror{
		World:           w,
		Setup:           setup,
		everQuarantined: map[string]bool{},
		transformed:     map[int]int{},
		refused:         map[int]bool{},
	}
	m.Client = world.NewClient(w, index, setup, m)
	m.Name = m.Client.Name
	m.Calls = &Calls{mirror: m, nests: setup.Kind == script.KindProcess}
	m.observer = observer{mirror: m, what: "store of " + m.Name}
	return m
}

// BeginSource records a call into the source.
func (m *Mirror) BeginSource(what string) (end func()) { return m.Calls.beginSource(what) }

// HasSynced says whether it has synced.
func (m *Mirror) HasSynced() bool { return m.Synced() }

// isInformer says whether it is an informer, whose handlers may come and go.
func (m *Mirror) isInformer() bool { return m.Verify != nil }

// Stopped says whether the context of its run has ended.
func (m *Mirror) Stopped() bool { return m.Calls.isCancelled() }

// hasTransform says whether its objects are transformed.
func (m *Mirror) hasTransform() bool {
	switch m.Setup.Kind {
	case script.KindReflector, script.KindForeign, script.KindOverlap:
		return false
	}
	return true
}

// showsPointInTime says whether its content always equals the source at one moment. A queue that is
// popped key by key changes the order, and so do several writers.
func (m *Mirror) showsPointInTime() bool {
	return m.Setup.Kind != script.KindProcess && m.Setup.Kind != script.KindOverlap
}

// stoppedBy says whether the run's context had ended by then.
func (m *Mirror) stoppedBy(at time.Time) bool {
	m.Calls.mu.Lock()
	defer m.Calls.mu.Unlock()
	return !m.Calls.cancelled.IsZero() && !m.Calls.cancelled.After(at)
}

// reportedAt says whether something was reported at that moment.
func (m *Mirror) reportedAt(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reports, func(r report) bool { return r.at.Equal(at) })
}

// Count returns the number of reports of a cause.
func (m *Mirror) Count(cause error) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.reports {
		if errors.Is(r.err, cause) {
			n++
		}
	}
	return n
}

// HasReportedSince says whether it has reported a cause since a time. After the refusal of a
// foreign store, and after a regression, a list follows after another pause.
func (m *Mirror) HasReportedSince(since time.Time, cause cache.Cause) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reports, func(r report) bool {
		return !r.at.Before(since) && cache.CauseOf(r.err) == cause
	})
}

// HasUndecoded says whether it quarantines an object that could not be decoded. It lists that again
// once a watch has been open for some seconds, which may first be possible after heal.
func (m *Mirror) HasUndecoded() bool {
	return slices.ContainsFunc(m.Status().Quarantined, func(q cache.Quarantined) bool { return q.Stage == "decode" })
}

// hasQuarantined says whether it quarantines anything, which a later list may change.
func (m *Mirror) hasQuarantined() bool { return len(m.Status().Quarantined) > 0 }

// slack is the time by which slow functions may delay what is read behind a batch of events.
func (m *Mirror) slack() time.Duration { return 33 * 2 * m.World.Functions.Slowest() }

// ReceiveReport is its error handler.
func (m *Mirror) ReceiveReport(_ context.Context, _ *cache.Reflector, err error) {
	cause := cache.CauseOf(err)
	switch cause {
	case "regression":
		m.regressed.Add(1)
		// What another writer of the store has listed may be newer than this one's list or event.
		hasOtherWriters := m.Setup.Kind == script.KindOverlap
		if !m.World.Regressed() && !m.World.HasSentOldBookmarks() && !hasOtherWriters {
			m.World.Fail("B31: %s reports a regression of a source that never went back: %v", m.Name, err)
		}
	case cache.CauseVersionTooLarge:
		m.unknown.Store(true)
	case cache.CauseExpired:
		m.unknown.CompareAndSwap(false, strings.HasPrefix(err.Error(), "streaming "))
	}
	var object *cache.ObjectError
	m.mu.Lock()
	if errors.As(err, &object) {
		m.everQuarantined[object.Key] = true
	}
	m.reports = append(m.reports, report{time.Now(), err, err.Error()})
	m.mu.Unlock()
	m.World.Note("%s reports: %v", m.Name, firstLine(err.Error()))
	if cause == "" {
		m.World.Fail("G12: %s: a report without a cause: %v", m.Name, err)
	}
}

// firstLine returns the first line of a text: reports of panics include the stack.
func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// regressions returns the number of reported version regressions.
func (m *Mirror) regressions() int { return int(m.regressed.Load()) }

// wasQuarantined says whether it has ever report a key as quarantined.
func (m *Mirror) wasQuarantined(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.everQuarantined[key]
}

func (m *Mirror) refuse(serial int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[serial] = true
}

// HasRefused says whether a function has failed for a state that is not bad.
func (m *Mirror) HasRefused(serial int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[serial]
}

// ReceivedCount is the number of calls of its present handlers.
func (m *Mirror) ReceivedCount() int {
	n := 0
	for _, h := range m.Handlers {
		n += h.received
	}
	return n
}
