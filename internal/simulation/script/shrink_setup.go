package script

import (
	"slices"
	"time"
)

// setup removes mirrors, handlers and options.
func (s *shrinker) setup() {
	// From the last one, so that the others keep their numbers. One mirror stays.
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
		func(o *Setup) { o.HTTP2 = false },
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

// mirror removes handlers and options of mirror i.
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
			func(o *HandlerSetup) { o.Filter = "" },
		} {
			s.try(func(script *Script) { plain(&script.Setup.Mirrors[i].Handlers[h]) })
		}
	}
}

// removeMirror removes a mirror and its steps. Steps name mirrors by number, modulo the number of
// mirrors; those of later mirrors are renumbered.
func removeMirror(script *Script, removed int) {
	count := len(script.Setup.Mirrors)
	script.Setup.Mirrors = slices.Delete(script.Setup.Mirrors, removed, removed+1)
	kept := make([]Step, 0, len(script.Steps))
	pause := time.Duration(0) // of removed steps since the last kept one
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

// aboutMirror are the steps that use the field Mirror.
var aboutMirror = map[string]bool{
	"join": true, "leave": true, "stall": true, "release": true, "stop": true, "again": true,
	"fresh": true, "verify": true, "lose": true, "replace": true,
}
