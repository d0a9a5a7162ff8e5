package guarantees

import (
	"fmt"
	"maps"
	"sort"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchmirror/cache"
)

// intakeWays returns all ways in, grouped by kind of mirror. Paged and streaming lists do not
// change the route of events, so only scripts with lists run there.
func intakeWays() (all [][]*intakeWay) {
	roots := []intakeWay{
		{name: "informer", make: intakeInformer, isInformer: true, handler: true, resyncs: true},
		{name: "store and handler", make: intakeStoreAndHandler, isInformer: true, handler: true, resyncs: true},
		{name: "namespaces", make: intakeNamespaces, isInformer: true, handler: true, resyncs: true},
		{name: "process", make: intakeProcess(false), handler: true, resyncs: true, process: true},
		{name: "process batch", make: intakeProcess(true), batches: true, handler: true, resyncs: true, process: true},
		{name: "store", make: intakeStore},
		{name: "view", make: intakeView},
		{name: "foreign store", make: intakeForeignStore, foreign: true},
	}
	calls := [][]*intakeWay{
		{{name: "calls of a store", direct: intakeDirectStore, openDifferences: map[intakeDifference]bool{}, differenceCounts: map[intakeDifference]int{}}},
		{{
			name: "calls of a queue", direct: intakeDirectQueue, handler: true,
			openDifferences: map[intakeDifference]bool{intakeFinal: true, intakeUnchanged: true}, differenceCounts: map[intakeDifference]int{},
		}},
	}
	for _, root := range roots {
		var ways []*intakeWay
		today, hits := root.differences(), map[intakeDifference]int{}
		for _, how := range []struct {
			name     string
			strategy cache.ListStrategy
			pageSize int64
			burst    bool
		}{{"whole", cache.ListUnpaged, 0, false}, {"paged", cache.ListPaged, 1, false},
			{"streaming", cache.ListStreaming, 0, false}, {"burst", cache.ListUnpaged, 0, true}} {
			way := root
			way.name += ", " + how.name
			if how.burst && (way.foreign || way.handler && !way.isInformer) {
				continue // reports of the consumer and the reflector are unordered
			}
			way.openDifferences, way.differenceCounts = today, hits
			way.strategy, way.pageSize, way.burst = how.strategy, how.pageSize, how.burst
			ways = append(ways, &way)
		}
		all = append(all, ways)
	}
	return append(all, calls...)
}

// intakeCase is one script.
type intakeCase struct {
	name      string
	script    []intakeStep
	transform bool
}

func (c *intakeCase) hasLists() bool {
	for _, step := range c.script[1:] {
		if !step.isEvent() {
			return true
		}
	}
	return false
}

// intakeInitialScripts are the scripts that produce the state before the change.
func intakeInitialScripts(transform bool) map[string][]intakeStep {
	present := intakeStep{kind: "list", state: intakeState{"20", "u", intakeOK, 0}, listed: "22"}
	absent := intakeStep{kind: "list without", listed: "22"}
	bad := func(kind, version, behavior string) intakeStep {
		return intakeStep{kind: kind, state: intakeState{version, "u", behavior, 1}}
	}
	before := map[string][]intakeStep{
		"absent":                         {absent},
		"present":                        {present},
		"deleted":                        {present, {kind: "deleted", state: intakeState{"25", "u", intakeOK, 1}}},
		"present without version":        {{kind: "list", state: intakeState{"", "u", intakeOK, 0}, listed: "22"}},
		"present without UID":            {{kind: "list", state: intakeState{"20", "", intakeOK, 0}, listed: "22"}},
		"present, index failed":          {present, bad("modified", "30", intakeIndexFail)},
		"present, undecodable":           {present, bad("modified", "30", intakeUndecodable)},
		"absent, index failed":           {absent, bad("added", "30", intakeIndexFail)},
		"absent, undecodable":            {absent, bad("added", "30", intakeUndecodable)},
		"older, index failed":            {present, bad("modified", "10", intakeIndexFail)},
		"index failed in the first list": {{kind: "list", state: intakeState{"20", "u", intakeIndexFail, 0}, listed: "22"}},
	}
	if transform {
		before["present, stripped"] = []intakeStep{{kind: "list", state: intakeState{"20", "u", intakeStrip, 0}, listed: "22"}}
		before["present, transform failed"] = []intakeStep{present, bad("modified", "30", intakeFail)}
		before["absent, transform failed"] = []intakeStep{absent, bad("added", "30", intakeFail)}
		before["older, transform failed"] = []intakeStep{present, bad("modified", "10", intakeFail)}
		before["present, stripped and index failed"] = []intakeStep{present, bad("modified", "30", intakeStripFail)}
		before["unwanted"] = []intakeStep{present, bad("modified", "25", intakeUnwanted)}
		before["transform failed in the first list"] = []intakeStep{{kind: "list", state: intakeState{"20", "u", intakeFail, 0}, listed: "22"}}
	}
	return before
}

// intakeCases returns all scripts: an initial script, one change, and a last event that shows
// the change's lasting effects.
func intakeCases() (cases []*intakeCase) {
	for _, transform := range []bool{false, true} {
		doing := []string{intakeOK, intakeIndexFail, intakeUndecodable}
		if transform {
			doing = append(doing, intakeChange, intakeStrip, intakeUnwanted, intakeFail, intakePanic, intakeIndexPanic, intakeStripFail)
		}
		for name, before := range intakeInitialScripts(transform) {
			for _, change := range intakeChanges(doing) {
				script := append(append([]intakeStep{}, before...), change)
				last := intakeStep{kind: "modified", state: intakeState{"500", "u", intakeOK, 3}}
				cases = append(cases, &intakeCase{
					name: fmt.Sprintf("%s: %s, transform %t", name, change, transform), script: append(script, last), transform: transform,
				})
			}
		}
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].name < cases[j].name })
	return cases
}

func intakeChanges(doing []string) (changes []intakeStep) {
	versions := []string{"10", "20", "25", "30", "40", "", "abc"}
	for _, version := range versions {
		changes = append(changes, intakeStep{kind: "bookmark", state: intakeState{version: version}})
		for _, behavior := range doing {
			for _, uid := range []string{"u", "other", ""} {
				if uid != "u" && behavior != intakeOK && behavior != intakeIndexFail {
					continue
				}
				if intakeSameBehavior(behavior) && version != "20" && version != "40" {
					continue
				}
				state := intakeState{version, uid, behavior, 2}
				for _, kind := range []string{"added", "modified", "deleted"} {
					changes = append(changes, intakeStep{kind: kind, state: state})
				}
				changes = append(changes, intakeStep{kind: "list", state: state, listed: "200"})
			}
		}
	}
	return append(changes, intakeStep{kind: "list without", listed: "200"}, intakeStep{kind: "resync"})
}

// intakeSameBehavior says whether a behavior differs from another one only by its cause, so that
// few versions suffice.
func intakeSameBehavior(behavior string) bool {
	return behavior == intakePanic || behavior == intakeIndexPanic || behavior == intakeStripFail || behavior == intakeStrip
}

// TestEveryWayInAppliesTheRulesOfTheIntake plays each script to each way in, and compares what
// became of the object with the model. B6, B7, B15, G2, G6, G12 and G14 for single objects: it
// fails if a way in has a rule of its own, and if a known difference disappears.
func TestEveryWayInAppliesTheRulesOfTheIntake(t *testing.T) {
	cases := intakeCases()
	for _, ways := range intakeWays() {
		root, _, _ := strings.Cut(ways[0].name, ",")
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			for _, way := range ways {
				t.Run(way.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { intakePlayAll(t, way, cases) })
				})
			}
			for difference := range ways[0].openDifferences {
				if ways[0].differenceCounts[difference] == 0 && !sampled() {
					t.Errorf("a known difference has disappeared, take it out of the list: %s", difference)
				}
			}
		})
	}
}

func intakePlayAll(t *testing.T, way *intakeWay, cases []*intakeCase) {
	const shown = 20
	played, failed := 0, 0
	for _, c := range cases {
		if !way.plays(c) {
			continue
		}
		if played++; sampled() && played%10 != 0 {
			continue
		}
		want := intakeExpect(way, c.script, c.transform)
		var observations []intakeObservation
		if way.direct != nil {
			observations = intakeRunDirect(way, c.script, c.transform)
		} else {
			observations = intakeRun(way, c.script, c.transform, want)
		}
		if wrong := intakeCompare(observations, want); len(wrong) > 0 {
			if failed++; failed <= shown {
				t.Errorf("%s\n\t%s", c.name, strings.Join(wrong, "\n\t"))
			}
			continue
		}
		for difference := range way.openDifferences {
			if way.differenceCounts[difference] == 0 && way.needs(difference, c, observations) {
				way.differenceCounts[difference]++
			}
		}
	}
	if failed > shown {
		t.Errorf("%d of %d scripts failed", failed, played)
	}
	t.Logf("%d scripts", played)
}

// needs says whether the observations are only right with a known difference.
func (w *intakeWay) needs(difference intakeDifference, c *intakeCase, observations []intakeObservation) bool {
	without := *w
	without.openDifferences = maps.Clone(w.openDifferences)
	delete(without.openDifferences, difference)
	want := intakeExpect(&without, c.script, c.transform)
	return len(want) != len(observations) || len(intakeCompare(observations, want)) > 0
}

func (c *intakeCase) has(kind string) bool {
	for _, step := range c.script {
		if step.kind == kind {
			return true
		}
	}
	return false
}

func intakeCompare(observations []intakeObservation, want []intakeExpectation) (wrong []string) {
	for i, observation := range observations {
		for _, what := range observation.differs(want[i].intakeObservation) {
			wrong = append(wrong, fmt.Sprintf("look %d: %s", i, what))
		}
	}
	return wrong
}

// plays says whether a script applies to a way. A Process does not see the version and UID that a
// transform strips; a foreign store has no transform, and its errors are not modeled.
func (w *intakeWay) plays(c *intakeCase) bool {
	lists := c.hasLists()
	switch {
	case w.direct != nil || w.strategy == cache.ListUnpaged && !w.burst:
	case w.burst == lists, w.pageSize > 0 && c.has("resync"):
		return false // events take the same route as with whole lists
	}
	for _, step := range c.script {
		switch behavior := step.state.behavior; {
		case w.consumes() && (behavior == intakeStrip || behavior == intakeStripFail):
			return false
		case w.batches && (behavior == intakeIndexFail || behavior == intakeIndexPanic):
			return false // ProcessBatch fails for the whole batch
		case w.direct != nil && (behavior == intakeUndecodable || step.kind == "resync" || w.handler && step.kind == "bookmark"):
			return false
		case w.foreign && (c.transform || behavior == intakeIndexFail):
			return false
		}
	}
	return true
}

// sampled says whether every tenth script is enough: it is for the race detector.
func sampled() bool { return testing.Short() || underRace }

// sampleOf returns a tenth of a number of objects or runs if a sample is enough.
func sampleOf(number int) int {
	if sampled() {
		return number / 10
	}
	return number
}
