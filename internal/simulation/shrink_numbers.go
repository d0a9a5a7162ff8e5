package simulation

import (
	"slices"
	"time"
)

// numbers makes numbers small and durations short and round.
func (s *shrinker) numbers() {
	// All pauses at once, for the most part of them is seldom needed, and after that
	// each by itself.
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

// smaller makes a number zero, one, half as large or one less, again and again. What is
// below zero has a meaning of its own and is only tried as zero.
func smaller[N int | int64](s *shrinker, of func(*Script) *N) {
	lower(s, of, func(now N) []N { return []N{0, 1, now / 2, now - 1} })
}

// duration makes a duration zero, or rounds it to a number that is easily read, or makes it half
// as long; between a microsecond and a millisecond only the first, for shorter is not
// clearer. Durations below that stand for numbers of events or bytes.
func (s *shrinker) duration(of func(*Script) *time.Duration) {
	lower(s, of, func(now time.Duration) []time.Duration {
		shorter := []time.Duration{0, now.Truncate(time.Minute), now.Truncate(time.Second), now.Truncate(time.Millisecond)}
		if now < time.Microsecond || now >= 2*time.Millisecond {
			shorter = append(shorter, now/2)
		}
		return shorter
	})
}

// lower replaces a number by the first of its candidates that fails, and continues from
// there. A candidate must be nearer to zero than the number.
func lower[N int | int64 | time.Duration](s *shrinker, of func(*Script) *N, candidates func(now N) []N) {
	for progress := true; progress; {
		now := *of(&s.best)
		progress = slices.ContainsFunc(candidates(now), func(less N) bool {
			nearer := less == 0 && now != 0 || less > 0 && less < now
			return nearer && s.try(func(script *Script) { *of(script) = less })
		})
	}
}
