package script

import (
	"slices"
	"time"
)

// numbers makes numbers smaller, and durations shorter and rounder.
func (s *shrinker) numbers() {
	// All pauses at once, since few of them matter, then each one.
	s.try(func(script *Script) {
		for i := range script.Steps {
			script.Steps[i].After = 0
		}
	})
	for i := range s.best.Steps {
		s.duration(func(script *Script) *time.Duration { return &script.Steps[i].After })
		s.duration(func(script *Script) *time.Duration { return &script.Steps[i].For })
		smaller(s, func(script *Script) *int { return &script.Steps[i].N })
		s.try(func(script *Script) { script.Steps[i].What = "" })
	}
	smaller(s, func(script *Script) *int { return &script.Setup.Objects })
	smaller(s, func(script *Script) *int { return &script.Setup.HistoryLimit })
	s.duration(func(script *Script) *time.Duration { return &script.Setup.BookmarkInterval })
	for i := range s.best.Setup.Mirrors {
		s.mirrorNumbers(i)
	}
}

func (s *shrinker) mirrorNumbers(i int) {
	smaller(s, func(script *Script) *int64 { return &script.Setup.Mirrors[i].PageSize })
	s.duration(func(script *Script) *time.Duration { return &script.Setup.Mirrors[i].Retry500 })
	s.duration(func(script *Script) *time.Duration { return &script.Setup.Mirrors[i].MaxWatch })
	s.duration(func(script *Script) *time.Duration { return &script.Setup.Mirrors[i].Resync })
	for h := range s.best.Setup.Mirrors[i].Handlers {
		s.duration(func(script *Script) *time.Duration { return &script.Setup.Mirrors[i].Handlers[h].Slow })
		smaller(s, func(script *Script) *int { return &script.Setup.Mirrors[i].Handlers[h].PanicEvery })
	}
}

// smaller tries zero, one, half and one less, repeatedly. A negative number has a special meaning and
// is only replaced by zero.
func smaller[N int | int64](s *shrinker, of func(*Script) *N) {
	lower(s, of, func(now N) []N { return []N{0, 1, now / 2, now - 1} })
}

// duration tries zero, round values and half; between a microsecond and a millisecond only zero.
// Durations below that are numbers of events or bytes.
func (s *shrinker) duration(of func(*Script) *time.Duration) {
	lower(s, of, func(now time.Duration) []time.Duration {
		shorter := []time.Duration{0, now.Truncate(time.Minute), now.Truncate(time.Second), now.Truncate(time.Millisecond)}
		if now < time.Microsecond || now >= 2*time.Millisecond {
			shorter = append(shorter, now/2)
		}
		return shorter
	})
}

// lower replaces a number by the first candidate that fails, repeatedly. Candidates must be nearer to
// zero.
func lower[N int | int64 | time.Duration](s *shrinker, of func(*Script) *N, candidates func(now N) []N) {
	for progress := true; progress; {
		now := *of(&s.best)
		progress = slices.ContainsFunc(candidates(now), func(less N) bool {
			nearer := less == 0 && now != 0 || less > 0 && less < now
			return nearer && s.try(func(script *Script) { *of(script) = less })
		})
	}
}
