package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Fails if a watch passes during the step, or is still refused after its end.
func TestWatchesAreRefusedUntilTheStepThatEndsIt(t *testing.T) {
	for name, end := range map[string]func(*run){
		"by the step": func(r *run) { r.do(script.Step{Do: "refuse-watches"}) },
		"by healing":  func(r *run) { r.heal() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t.Context(), script.Script{Setup: script.Setup{
					Objects: 2,
					Mirrors: []script.MirrorSetup{{Kind: script.KindReflector}},
				}}, nil)
				r.do(script.Step{Do: "refuse-watches", N: 1, What: script.NotAllowed})
				r.begin()
				time.Sleep(10 * time.Minute)
				require.True(t, lastWatch(r).IsNotAllowed)
				end(r)
				time.Sleep(time.Hour) // after which the reflector asks for a watch again
				require.True(t, lastWatch(r).Open)
				r.compare("after watches are allowed again")
				r.end()
				require.Empty(t, r.world.Failures())
			})
		})
	}
}

// lastWatch is the last watch that the first mirror has requested.
func lastWatch(r *run) *world.Request {
	var last *world.Request
	for _, request := range r.mirrors[0].Client.Histories()[0].Requests {
		if !request.List {
			last = request
		}
	}
	return last
}
