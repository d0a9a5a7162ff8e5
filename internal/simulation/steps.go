package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// steps are the steps of a script that concern mirrors, by name. The others are the world's.
var steps = map[string]func(*run, script.Step){
	// Handlers and mirrors.
	"join":    (*run).join,
	"leave":   (*run).leave,
	"stall":   func(r *run, s script.Step) { r.eachHandler(s.Mirror, (*Handler).hold) },
	"release": func(r *run, s script.Step) { r.eachHandler(s.Mirror, (*Handler).release) },
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

func (r *run) eachHandler(mirror int, do func(*Handler)) {
	for _, h := range r.mirrorAt(mirror).handlers {
		do(h)
	}
}

// join adds a handler while the mirror runs.
func (r *run) join(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if len(m.handlers) > 6 {
		return
	}
	m.add(script.HandlerSetup{Delivery: s.N % 3, Slow: s.For}, fmt.Sprintf("%s/late-%d", m.name, len(m.handlers)))
}

// leave removes a handler, and waits for its last call on a goroutine of its own.
func (r *run) leave(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.leave == nil || len(m.handlers) == 0 {
		return
	}
	i := s.N % len(m.handlers)
	h := m.handlers[i]
	h.release()
	if err := m.leave(h); err != nil && !m.stopped() {
		r.world.Fail("G9: %s cannot be shut down: %v", h.name, err)
	}
	h.markLeft()
	m.handlers = slices.Delete(slices.Clone(m.handlers), i, i+1)
}

// runAgain runs a mirror that runs already: that must return at once and change nothing.
func (r *run) runAgain(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.stopped() || !m.begun() {
		return // a reflector that has returned may run again
	}
	settle() // else it could be the first
	before, reported := time.Now(), m.count(cache.ErrAlreadyRan)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.runAgain(r.ctx)
	}()
	<-done
	if took := time.Since(before); took > 0 {
		r.world.Fail("B12: a second Run of %s took %v", m.name, took)
	}
	if m.again == nil && m.count(cache.ErrAlreadyRan) == reported {
		r.world.Fail("B12: a second Run of %s was not reported", m.name)
	}
}
