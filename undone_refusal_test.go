package cache

import (
	"testing"
	"testing/synctest"
)

// G6: a state that a Process, or a store that is not of this package, has refused is held
// back no longer once the source has undone it. Fails if what comes with a relist is taken
// for a resync of the old state.
func TestG6AStateThatWasRefusedAndUndoneIsNoLongerHeldBack(t *testing.T) {
	for name, build := range refusingRigs {
		for how, list := range map[string]func(*Config){"a list": func(*Config) {}, "a streaming list": stream} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := build(t, source, list)
					r.run()
					sleep(healthy)
					undo(t, source, r.status)
					r.equalsSource()
					r.stop()
				})
			})
		}
	}
}
