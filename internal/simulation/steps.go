package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// steps are the steps of a script that concern mirrors, by name. The others are the world's.
var steps = map[string]func(*run, script.Step){
	// Handlers and mirrors.
	"join":    (*run).join,
	"leave":   (*run).leave,
	"stall":   func(r *run, s script.Step) { r.eachHandler(s.Mirror, (*check.Handler).Hold) },
	"release": func(r *run, s script.Step) { r.eachHandler(s.Mirror, (*check.Handler).Release) },
	"stop": func(r *run, s script.Step) {
		if m := r.mirrorAt(s.Mirror); m.begun() {
			m.stop()
		}
	},
	"again": (*run).runAgain,

	// Callers.
	"fresh":  (*run).freshStep,
	"verify": (*run).verifyStep,
	"lose":   (*run).lose,
	"set":    (*run).setStep,
	// Other writers of a store.
	"replace": (*run).replaceStep,

	// Reads.
	"look": func(r *run, _ script.Step) { r.check() },
	"settle": func(r *run, _ script.Step) {
		settle()
		r.check()
	},
}

// do carries out a step.
func (r *run) do(s script.Step) {
	r.world.Note("-- %v", s)
	step := steps[s.Do]
	if step != nil {
		step(r, s)
	} else if !r.world.Do(s) {
		r.world.Fail("there is no step %q", s.Do)
		return
	}
	r.check()
}

func (r *run) mirrorAt(i int) *mirror { return r.mirrors[i%len(r.mirrors)] }

func (r *run) eachHandler(mirror int, do func(*check.Handler)) {
	for _, h := range r.mirrorAt(mirror).Handlers {
		do(h)
	}
}

// join adds a handler while the mirror runs.
func (r *run) join(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if len(m.Handlers) > 6 {
		return
	}
	m.add(script.HandlerSetup{Delivery: s.N % 3, Slow: s.For}, fmt.Sprintf("%s/late-%d",
		m.Name, len(m.Handlers)))
}

// leave removes a handler, and waits for its last call on a goroutine of its own.
func (r *run) leave(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.leave == nil || len(m.Handlers) == 0 {
		return
	}
	i := s.N % len(m.Handlers)
	h := m.Handlers[i]
	h.Release()
	if err := m.leave(h); err != nil && !m.Stopped() {
		r.world.Fail("G9: %s cannot be shut down: %v", h.Name, err)
	}
	h.MarkLeft()
	m.Handlers = slices.Delete(slices.Clone(m.Handlers), i, i+1)
}

// runAgain runs a mirror that runs already: that must return at once and change nothing.
func (r *run) runAgain(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.Stopped() || !m.begun() {
		return // a reflector that has returned may run again
	}
	settle() // else it could be the first
	before, reported := time.Now(), m.Count(cache.ErrAlreadyRan)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.runAgain(r.ctx)
	}()
	<-done
	if took := time.Since(before); took > 0 {
		r.world.Fail("B12: a second Run of %s took %v", m.Name, took)
	}
	if m.again == nil && m.Count(cache.ErrAlreadyRan) == reported {
		r.world.Fail("B12: a second Run of %s was not reported", m.Name)
	}
}
