package simulation

import (
	"slices"
	"time"
)

// setup takes away mirrors, handlers and options.
func (s *shrinker) setup() {
	// From the back, so that the others keep their numbers. One mirror stays: without
	// any there is nothing to look at, and steps would have nobody to be about.
	for i := len(s.best.Setup.Mirrors) - 1; i >= 0; i-- {
		if len(s.best.Setup.Mirrors) > 1 {
			s.try(func(script *Script) { removeMirror(script, i) })
		}
	}
	for i := range s.best.Setup.Mirrors {
		s.mirror(i)
	}
	for _, plain := range []func(*Setup){
		func(o *Setup) { o.HTTP = false },
		func(o *Setup) { o.HistoryLimit = 0 },
		func(o *Setup) { o.BookmarkInterval = 0 },
		func(o *Setup) { o.IgnoreLimitAtZero = false },
		func(o *Setup) { o.ExpiredOnStream = false },
		func(o *Setup) { o.NoWatchList = false },
		func(o *Setup) { o.WatchListUnsupported = false },
		func(o *Setup) { o.RefuseFutureWatches = false },
		func(o *Setup) { o.RestoreLast = 0 },
		func(o *Setup) { o.DamageLast = 0 },
	} {
		s.try(func(script *Script) { plain(&script.Setup) })
	}
}

// mirror takes away what the mirror of that number need not have.
func (s *shrinker) mirror(i int) {
	for h := len(s.best.Setup.Mirrors[i].Handlers) - 1; h >= 0; h-- {
		s.try(func(script *Script) {
			m := &script.Setup.Mirrors[i]
			m.Handlers = slices.Delete(m.Handlers, h, h+1)
		})
	}
	for _, plain := range []func(*MirrorSetup){
		func(m *MirrorSetup) { m.Strategy = 0 },
		func(m *MirrorSetup) { m.PageSize = 0 },
		func(m *MirrorSetup) { m.Retry500 = 0 },
		func(m *MirrorSetup) { m.MaxWatch = 0 },
		func(m *MirrorSetup) { m.Resync = 0 },
		func(m *MirrorSetup) { m.Merge = false },
	} {
		s.try(func(script *Script) { plain(&script.Setup.Mirrors[i]) })
	}
	for h := range s.best.Setup.Mirrors[i].Handlers {
		for _, plain := range []func(*HandlerSetup){
			func(o *HandlerSetup) { o.Delivery = 0 },
			func(o *HandlerSetup) { o.Slow = 0 },
			func(o *HandlerSetup) { o.PanicEvery = 0 },
		} {
			s.try(func(script *Script) { plain(&script.Setup.Mirrors[i].Handlers[h]) })
		}
	}
}

// removeMirror takes a mirror away, and the steps that are about it. Steps that are
// about one behind it are still about that one: steps name mirrors by number, modulo
// how many there are.
func removeMirror(script *Script, removed int) {
	count := len(script.Setup.Mirrors)
	script.Setup.Mirrors = slices.Delete(script.Setup.Mirrors, removed, removed+1)
	kept := make([]Step, 0, len(script.Steps))
	pause := time.Duration(0) // of the steps that went since the last one that stays
	for _, step := range script.Steps {
		if aboutMirror[step.Do] {
			of := step.Mirror % count
			if of == removed {
				pause += step.After
				continue
			}
			if of > removed {
				of--
			}
			step.Mirror = of
		}
		step.After += pause
		pause = 0
		kept = append(kept, step)
	}
	script.Steps = kept
}

// aboutMirror are the steps whose field Mirror means something. In others it is zero, and
// that does not mean the first mirror.
var aboutMirror = map[string]bool{
	"join": true, "leave": true, "stall": true, "release": true, "stop": true, "again": true,
	"fresh": true, "verify": true, "lose": true,
}
