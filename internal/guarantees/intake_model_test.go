package guarantees

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/watchmirror/cache"
)

// The rules of docs/intake.md as a model: the effect of the changes of one object, for each way
// in.

// intakeModel is the expected state of the object in a mirror.
type intakeModel struct {
	way       *intakeWay
	transform bool

	// stored is the state that readers see, nil if there is none.
	stored *intakeState
	// bad is the quarantined state, refused at stage; nil if there is none.
	bad *intakeState
	// others are entries that another quarantine table may still show, see intakeManyTables.
	others  []string
	stage   string
	applied string
	synced  bool

	reports, calls []string
	transforms     int
}

// intakeExpectation is an expected observation. relist is set if the mirror lists before it
// because of a version regression.
type intakeExpectation struct {
	intakeObservation
	relist *intakeStep
}

// intakeExpect returns the expected observations of a script.
func intakeExpect(way *intakeWay, script []intakeStep, transform bool) (want []intakeExpectation) {
	m := &intakeModel{way: way, transform: transform}
	for _, step := range script {
		relist := m.apply(step)
		want = append(want, intakeExpectation{intakeObservation: m.observation()})
		if relist != nil {
			m.applyList(*relist, true)
			want = append(want, intakeExpectation{intakeObservation: m.observation(), relist: relist})
			if way.burst {
				break // the watch's other events are lost
			}
		}
	}
	if !way.burst {
		return want
	}
	all := want[len(want)-1] // one observation of all steps
	all.reports, all.calls, all.transforms = "", "", 0
	for _, one := range want {
		all.reports = intakeJoin(all.reports, one.reports)
		all.calls = intakeJoin(all.calls, one.calls)
		all.transforms += one.transforms
	}
	return []intakeExpectation{all}
}

func intakeJoin(a, b string) string {
	return strings.Join(slices.DeleteFunc([]string{a, b}, func(s string) bool { return s == "" }), ", ")
}

// apply applies a step. It returns the list that follows if the step is a version regression.
func (m *intakeModel) apply(s intakeStep) (relist *intakeStep) {
	switch s.kind {
	case "resync":
		if m.stored != nil && m.way.resyncs {
			m.call("update n%d n%d", m.stored.number, m.stored.number)
		}
		return nil
	case "list", "list without":
		m.applyList(s, false)
		return nil
	case "bookmark":
		if intakeOlder(s.state.version, m.applied) && m.way.direct == nil {
			m.report("regression of bookmark  from %s to %s", m.applied, s.state.version)
			return intakeListAfter(s)
		}
	default:
		undecodable := s.state.behavior == intakeUndecodable
		if undecodable && s.kind == "deleted" {
			m.report("decode %s@%s", intakeKey, s.state.version)
		}
		if (!undecodable || s.kind == "deleted") && m.regresses(s.state) {
			return intakeListAfter(s)
		}
		if s.kind == "deleted" {
			m.delete(s.state)
		} else {
			m.applyState(s.state, false)
		}
	}
	if m.way.direct != nil {
		if s.kind == "bookmark" {
			m.applied = s.state.version
		}
		return nil // one object's version is not the store's
	}
	if s.state.version != "" && !intakeOlder(s.state.version, m.applied) {
		m.applied = s.state.version
	}
	return nil
}

// regresses reports a state that is older than the last one received: the quarantined state if
// there is one, else the stored one.
func (m *intakeModel) regresses(s intakeState) bool {
	have := ""
	if m.way.foreign || m.way.direct != nil {
		return false // the state is not known; direct calls of a store are always applied
	}
	if m.stored != nil {
		have = m.stored.version
	}
	if m.bad != nil && m.bad.version != "" && !(m.hasDifference(intakeUnknown) && m.stage == "decode") {
		have = m.bad.version
	}
	if !intakeOlder(s.version, have) {
		return false
	}
	m.report("regression of event %s from %s to %s", intakeKey, have, s.version)
	return true
}

// applyList applies a list. Only a streaming list is checked for regressions of its objects; the
// list after a regression (any) is accepted whatever its version.
func (m *intakeModel) applyList(s intakeStep, any bool) {
	listed := s.kind == "list"
	if listed && m.way.strategy == cache.ListStreaming && m.synced && !any && s.state.behavior != intakeUndecodable {
		any = m.regresses(s.state) // the next list has the same state, which is accepted
	}
	last := m.bad == nil || m.way.foreign || m.hasDifference(intakeUnchanged) && (m.stage == "decode" || m.stage == "transform" && m.way.handler && !m.way.isInformer)
	unchanged := m.stored != nil && last && s.state.version != "" && s.state.uid != "" &&
		m.stored.version == s.state.version && m.stored.uid == s.state.uid
	switch {
	case !listed:
		m.remove("tombstone n%d")
		m.bad = nil
	case s.state.behavior == intakeUndecodable:
		if m.way.foreign { // its Replace has only the other objects
			m.remove("")
		}
		m.applyState(s.state, !m.synced)
		m.quarantine(s.state, "decode") // undecodable objects are listed twice
	case !unchanged || any:
		m.applyState(s.state, !m.synced)
	default:
		m.bad = nil
	}
	m.applied, m.synced = s.listed, true
}

// applyState applies a state of the object from an event or a list.
func (m *intakeModel) applyState(s intakeState, initial bool) {
	transforms := m.transform && s.behavior != intakeUndecodable
	if transforms {
		m.transforms++
	}
	switch {
	case s.behavior == intakeUndecodable:
		m.quarantine(s, "decode")
	case transforms && (s.behavior == intakeFail || s.behavior == intakePanic):
		m.quarantine(s, "transform")
	case transforms && s.behavior == intakeUnwanted:
		m.remove("tombstone n%d")
		m.bad = nil
	case s.behavior == intakeIndexFail || s.behavior == intakeIndexPanic || s.behavior == intakeStripFail:
		m.quarantine(s, m.way.refusal())
	default:
		m.store(s, initial)
	}
}

// quarantine refuses a state, and reports it once per version.
func (m *intakeModel) quarantine(s intakeState, stage string) {
	switch {
	case stage == "process":
		m.report("process %s", intakeKey) // every time: each failure of Process is reported
	case m.way.direct != nil:
		m.report("%s %s@%s", stage, intakeKey, s.version) // every time: returned to the caller
	case m.bad == nil || m.bad.version != s.version || s.version == "" || m.stage != stage:
		m.report("%s %s@%s", stage, intakeKey, s.version)
	}
	if m.bad != nil && m.stage != stage {
		m.others = append(m.others, m.quarantined())
	}
	m.bad, m.stage = &s, stage
}

func (m *intakeModel) store(s intakeState, initial bool) {
	switch {
	case m.stored == nil && initial:
		m.call("first n%d", s.number)
	case m.stored == nil:
		m.call("add n%d", s.number)
	case m.stored.uid != "" && s.uid != "" && m.stored.uid != s.uid:
		m.call("delete tombstone n%d", m.stored.number)
		m.call("add n%d", s.number)
	default:
		m.call("update n%d n%d", m.stored.number, s.number)
	}
	m.stored, m.bad = &s, nil
}

// delete deletes the object. Its final state is transformed if a handler receives it.
func (m *intakeModel) delete(s intakeState) {
	final := fmt.Sprintf("n%d", s.number)
	switch {
	case s.behavior == intakeUndecodable:
		final = "tombstone n%d"
	case m.transform && m.way.handler && (m.stored != nil || m.hasDifference(intakeFinal) && m.bad != nil && m.stage == m.way.refusal()):
		m.transforms++
		switch s.behavior {
		case intakeFail, intakePanic:
			m.report("transform %s@%s", intakeKey, s.version)
			final = "tombstone n%d"
		case intakeUnwanted:
			final = "tombstone n%d"
		}
	}
	if m.isQuarantinedByStore() {
		final = "tombstone n%d" // no handler has received the state before the final one
	}
	m.remove(final)
	m.bad = nil
}

// isQuarantinedByStore reports whether the store has quarantined a later state than the stored one. A
// queue hands out what it has, in its order.
func (m *intakeModel) isQuarantinedByStore() bool {
	isQueue := m.way.process || m.hasDifference(intakeFinal)
	return m.bad != nil && m.stage != "decode" && !isQueue
}

// remove removes the stored object and notifies the handler.
func (m *intakeModel) remove(final string) {
	if m.stored != nil {
		m.call("delete %s", strings.Replace(final, "%d", strconv.Itoa(m.stored.number), 1))
		m.stored = nil
	}
}

func (m *intakeModel) report(format string, args ...any) {
	m.reports = append(m.reports, fmt.Sprintf(format, args...))
}

func (m *intakeModel) call(format string, args ...any) {
	if m.way.handler {
		m.calls = append(m.calls, fmt.Sprintf(format, args...))
	}
}

// observation returns the expected observation, and resets reports and calls.
func (m *intakeModel) observation() (observation intakeObservation) {
	switch {
	case m.stored != nil:
		color := "plain"
		if m.transform && m.stored.behavior == intakeChange {
			color = "changed"
		}
		observation.stored = fmt.Sprintf("n%d %s [%s]", m.stored.number, color, color)
	case m.bad != nil && !m.way.consumes() && !m.way.foreign:
		observation.stored = "quarantined"
	}
	if m.bad != nil && m.way.direct == nil {
		observation.quarantined = m.quarantined()
		if m.hasDifference(intakeManyTables) {
			observation.others = m.others
		}
	}
	observation.applied = m.applied
	observation.reports, observation.calls, observation.transforms = strings.Join(m.reports, ", "), strings.Join(m.calls, ", "), m.transforms
	m.reports, m.calls, m.transforms = nil, nil, 0
	return observation
}

func (m *intakeModel) quarantined() string {
	return fmt.Sprintf("%s %s@%s", m.stage, intakeKey, m.bad.version)
}

// intakeOlder says whether both versions are decimal and a is the lower one.
func intakeOlder(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x < y
}
