package simulation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/recording"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// run is one run of a script: a world and its mirrors. It belongs to the script's goroutine.
type run struct {
	ctx     context.Context
	script  script.Script
	world   *world.World
	mirrors []*mirror
	// set has the typed informers.
	set cache.InformerSet
	// questions are the calls of Fresh and Verify that are under way.
	questions sync.WaitGroup
}

// Run runs a script in a bubble of virtual time and returns the failures. Hangs and panics end the
// process, as in any test, so internal/simulation/cmd runs scripts in their own processes.
func Run(t *testing.T, input script.Script) (result script.Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = perform(input, nil) })
	return result
}

// Record is Run, and also returns the recorded lines.
func Record(t *testing.T, input script.Script) (result script.Result, lines []recording.Line) {
	t.Helper()
	recorder := &world.Recorder{}
	synctest.Test(t, func(*testing.T) { result = perform(input, recorder) })
	return result, recorder.Lines
}

// longest is the limit of a run in virtual time.
const longest = 48 * time.Hour

// perform runs a script. It is called inside of a bubble.
func perform(input script.Script, recorder *world.Recorder) script.Result {
	// Ends a run that would continue forever in virtual time.
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if len(input.Setup.Mirrors) == 0 {
		// A world without any says nothing.
		input.Setup.Mirrors = []script.MirrorSetup{{Kind: script.KindTyped}}
	}
	r := newRun(ctx, input, recorder)
	for i, step := range input.Steps {
		if i == input.Setup.Begin {
			r.begin()
		}
		if step.After > 0 {
			time.Sleep(step.After)
		}
		recorder.Step(step)
		r.do(step)
		if r.world.Failed() {
			break
		}
	}
	r.beginAnyway()
	switch {
	case r.world.Failed():
	case input.Setup.Abrupt:
		r.stopAbruptly()
	default:
		r.finale()
	}
	r.end()
	r.afterwards()
	return r.result()
}

// newRun makes everything; begin starts the mirrors.
func newRun(ctx context.Context, input script.Script, recorder *world.Recorder) *run {
	r := &run{ctx: ctx, script: input, world: world.New(input, recorder)}
	for i, m := range input.Setup.Mirrors {
		r.mirrors = append(r.mirrors, newMirror(r, i, m))
	}
	r.world.BeginRecording()
	return r
}

// begin runs the mirrors.
func (r *run) begin() {
	for _, m := range r.mirrors {
		m.begin(r.ctx)
	}
}

// beginAnyway runs the mirrors if the script ended before Setup.Begin.
func (r *run) beginAnyway() {
	for _, m := range r.mirrors {
		if !m.begun() {
			m.begin(r.ctx)
		}
	}
}

// checked are the mirrors as the checks see them.
func (r *run) checked() []*check.Mirror {
	mirrors := make([]*check.Mirror, len(r.mirrors))
	for i, m := range r.mirrors {
		mirrors[i] = m.Mirror
	}
	return mirrors
}

// check checks all mirrors, whatever they are doing.
func (r *run) check() { check.Now(r.world, r.checked()) }

// compare checks that all running mirrors equal the source.
func (r *run) compare(when string) { check.Compare(r.world, r.checked(), when) }

// end stops everything that still runs and waits for it.
func (r *run) end() {
	r.world.ReleaseEverything()
	for i := range r.mirrors {
		r.eachHandler(i, (*check.Handler).Release)
	}
	r.stopAll()
	r.questions.Wait()
	r.world.Close()
}

// stopAll ends all runs at the same moment, and checks that each returns at once.
func (r *run) stopAll() {
	for _, m := range r.mirrors {
		m.stop()
	}
	for _, m := range r.mirrors {
		m.await()
	}
}

// stopAbruptly ends every run in any state; calls that ignore their context or hang are released
// some time later.
func (r *run) stopAbruptly() {
	r.world.Note("-- abrupt end")
	for _, m := range r.mirrors {
		m.stop()
	}
	time.Sleep(check.Patience + 5*time.Second)
}

// afterwards checks that nothing is left after everything has been stopped.
func (r *run) afterwards() { check.Stopped(r.world, r.checked()) }

func (r *run) result() script.Result {
	result := r.world.Result()
	for _, m := range r.mirrors {
		result.Received += m.ReceivedCount()
	}
	return result
}

// settle waits until all goroutines are blocked.
func settle() { synctest.Wait() }

// quiet returns a logger that discards everything.
func quiet() *klog.Logger { return &klog.Logger{} }
