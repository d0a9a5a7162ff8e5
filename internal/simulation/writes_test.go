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
	for name, next := range map[string]func(*run){
		"write":   func(r *run) { r.do(script.Step{Do: "write", Key: "a/o0"}) },
		"advance": func(r *run) { r.do(script.Step{Do: "advance"}) },
		"heal":    func(r *run) { r.heal() },
	} {
		for versions := range 4 {
			t.Run(name+" after "+strconv.Itoa(versions), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRun(t.Context(), script.Script{Setup: script.Setup{
						Objects: 2,
						Mirrors: []script.MirrorSetup{{Kind: script.KindReflector}},
					}}, nil)
					r.begin()
					time.Sleep(time.Millisecond)
					r.do(script.Step{Do: "hide", Key: "b/o0"})
					r.do(script.Step{Do: "hide", Key: "a/o0"})
					r.do(script.Step{Do: "advance", N: 2})
					newest := r.world.Source.Version()
					r.do(script.Step{Do: "restore", N: versions})
					next(r)
					require.Greater(t, r.world.Source.Version(), newest)
					r.end()
					require.Empty(t, r.world.Failures())
				})
			})
		}
	}
}
