package simulation

import (
	"context"
	"slices"
)

// Shrink makes a script that fails smaller for as long as the rest fails: fewer
// steps, less of a setup, smaller and rounder numbers. fails says whether a script
// fails in the same way; for one that does so only now and then it should try more than
// once, and a healthy answer to a faulty script costs only size, never correctness.
// Shrink ends when nothing makes the script smaller any more, or when ctx does; either
// way it returns the smallest that was seen to fail. The script itself is not tried,
// nor is it changed. Two scripts are never tried twice.
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

// shrinker is one shrinking. best fails, always.
type shrinker struct {
	ctx      context.Context
	fails    func(Script) bool
	best     Script
	tried    map[string]bool
	progress bool
}

// try keeps a change if what it makes of the best script fails too, and says so.
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

// clone shares nothing with the script.
func clone(script Script) Script {
	script.Steps = slices.Clone(script.Steps)
	script.Setup.Mirrors = slices.Clone(script.Setup.Mirrors)
	for i := range script.Setup.Mirrors {
		m := &script.Setup.Mirrors[i]
		m.Handlers = slices.Clone(m.Handlers)
	}
	return script
}

// steps removes steps: half of them, a quarter, and so on to single ones. What follows
// on a removed step happens earlier by its pause; if that does not fail, the pause is
// given to the next step, so that everything else stays when it was.
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
