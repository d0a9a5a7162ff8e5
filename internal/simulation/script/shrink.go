package script

import (
	"context"
	"slices"
)

// Shrink makes a failing script smaller: fewer steps, a smaller setup, smaller and rounder numbers.
// fails says whether a script fails in the same way; it should run a script that fails rarely
// several times. A wrong false costs only size, not correctness. Shrink ends when the script cannot
// be made smaller or ctx ends, and returns the smallest failing script. It neither runs nor modifies
// script itself, and calls fails once for each candidate.
func Shrink(ctx context.Context, script Script, fails func(Script) bool) Script {
	s := &shrinker{ctx: ctx, fails: fails, best: clone(script), tried: map[string]bool{string(script.Encode()): true}}
	for s.progress = true; s.progress && ctx.Err() == nil; {
		s.progress = false
		s.steps()
		s.setup()
		s.numbers()
	}
	return s.best
}

// shrinker is the state of Shrink. best is the smallest script that failed.
type shrinker struct {
	ctx      context.Context
	fails    func(Script) bool
	best     Script
	tried    map[string]bool
	progress bool
}

// try applies a change to the best script, and keeps it and returns true if the result fails.
func (s *shrinker) try(change func(*Script)) bool {
	if s.ctx.Err() != nil {
		return false
	}
	candidate := clone(s.best)
	change(&candidate)
	text := string(candidate.Encode())
	if s.tried[text] {
		return false
	}
	s.tried[text] = true
	if !s.fails(clone(candidate)) {
		return false
	}
	s.best, s.progress = candidate, true
	return true
}

// clone returns a deep copy.
func clone(script Script) Script {
	script.Steps = slices.Clone(script.Steps)
	script.Setup.Mirrors = slices.Clone(script.Setup.Mirrors)
	for i := range script.Setup.Mirrors {
		m := &script.Setup.Mirrors[i]
		m.Handlers = slices.Clone(m.Handlers)
	}
	return script
}

// steps removes steps: half of them, a quarter, and so on to single ones. Later steps then happen
// earlier; if that does not fail, the removed pause is added to the next step.
func (s *shrinker) steps() {
	for size := len(s.best.Steps); size > 0; size /= 2 {
		for at := 0; at < len(s.best.Steps); {
			end := min(at+size, len(s.best.Steps))
			without := func(script *Script) { script.Steps = slices.Delete(script.Steps, at, end) }
			waiting := func(script *Script) {
				for _, step := range script.Steps[at:end] {
					if end < len(script.Steps) {
						script.Steps[end].After += step.After
					}
				}
				without(script)
			}
			if !s.try(without) && !s.try(waiting) {
				at += size
			}
		}
	}
}
