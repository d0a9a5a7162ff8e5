package simulation

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// A client that slept through a restore must not find its version again, as one of another past:
// no client could tell, so no check would mean anything. Fails if what takes the source on,
// a write, a step or the healing of what was hidden, counts from where it was restored to.
func TestAfterARestoreNoVersionIsGivenOutASecondTime(t *testing.T) {
	for name, next := range map[string]func(*world){
		"write":   func(w *world) { w.write("a/o0", "", false) },
		"advance": func(w *world) { w.do(script.Step{Do: "advance"}) },
		"heal":    func(w *world) { w.heal() },
	} {
		for versions := range 4 {
			t.Run(name+" after "+strconv.Itoa(versions), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t.Context(), script.Script{Setup: script.Setup{Objects: 2, Mirrors: []script.MirrorSetup{{Kind: script.KindReflector}}}}, nil)
					w.begin()
					time.Sleep(time.Millisecond)
					w.do(script.Step{Do: "hide", Key: "b/o0"})
					w.do(script.Step{Do: "hide", Key: "a/o0"})
					w.do(script.Step{Do: "advance", N: 2})
					newest := w.source.Version()
					w.do(script.Step{Do: "restore", N: versions})
					next(w)
					require.Greater(t, w.source.Version(), newest)
					w.end()
					require.Empty(t, w.failures)
				})
			})
		}
	}
}
