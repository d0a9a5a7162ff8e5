package cachetest_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/simulation/recording"
)

var corpora = recording.CorporaFlag()

// TestWriteCorpora is the second half of making corpora, not a test; see package recording.
func TestWriteCorpora(t *testing.T) {
	runs := corpora.Runs(t)
	var sources, requests []recording.Input
	for _, run := range runs {
		for _, line := range run {
			if line.Answer != nil {
				requests = append(requests, requestInput(line.Answer))
			}
		}
		// A run is long. So scripts also begin in the middle, with the content at that point.
		for from := 0; from < len(run); from += 40 {
			for _, most := range []int{30, 80, 200} {
				sources = append(sources, sourceInput(run, from, recording.NewScript(most)))
			}
		}
	}
	for target, inputs := range map[string][]recording.Input{
		"FuzzSourceAgainstMaps": sources, "FuzzRequests": requests,
	} {
		corpora.Write(t, target, inputs)
	}
}

// sourceInput converts a recording, from one of its lines on, to a script of FuzzSourceAgainstMaps:
// the writes to a source and its reflectors' requests.
func sourceInput(run []recording.Line, from int, script *recording.Script) recording.Input {
	s := &sourceEncoder{Script: script}
	for _, o := range run[0].Objects {
		s.put(o.Key)
	}
	for _, line := range run[from:] {
		switch line.Do {
		case recording.Step:
			s.step(line)
		case recording.List:
			s.list(line)
		case recording.Watch:
			s.Add("watch "+agoOf(line.Ask), half(12, ago(line.Ask)))
		}
		if script.Full() {
			break
		}
	}
	return script.Input()
}

type sourceEncoder struct {
	*recording.Script
	keys   []string
	serial int
}

// half returns a byte of two halves.
func half(what, choice int) byte { return byte(what | min(choice, 15)<<4) }

// slot assigns the eight numbers of a sourceModel to keys, in the order in which they appear.
func (s *sourceEncoder) slot(key string) int {
	at := slices.Index(s.keys, key)
	if at < 0 {
		at = len(s.keys)
		s.keys = append(s.keys, key)
	}
	return at % 8
}

func (s *sourceEncoder) put(key string) {
	s.serial++
	s.Add("put", half(s.serial%5, s.slot(key)))
}

func (s *sourceEncoder) step(line recording.Line) {
	switch line.Step {
	case "write", "unwanted":
		s.put(line.Key)
	case "delete":
		s.Add("delete", half(5, s.slot(line.Key)))
	case "recreate":
		s.Add("delete", half(5, s.slot(line.Key)))
		s.put(line.Key)
	case "hide":
		s.Add("hide", half(6, s.slot(line.Key)))
	case "burst":
		for i := range min(line.N, 12) {
			s.put(strconv.Itoa(i))
		}
	case "advance":
		s.Add("advance", half(7, line.N))
	case "compact":
		s.Add("compact", 8)
	case "compact-watches":
		s.Add("compact watches", 9)
	case "restore":
		s.Add("restore", half(10, line.N))
	}
}

// list encodes a list, either in pages with other steps in between, or whole.
func (s *sourceEncoder) list(line recording.Line) {
	switch {
	case line.Ask.Continue:
		s.Add("next page", 14)
		return
	case line.Ask.Limit > 0:
		s.Add("first page", 13)
		return
	}
	how := byte(0)
	if strings.Contains(line.Source, "/") {
		how |= 8
	}
	switch line.Ask.Match {
	case "Exact":
		how |= 32
	case "NotOlderThan":
		how |= 64
	}
	s.Add("list "+agoOf(line.Ask), half(11, ago(line.Ask)), how)
}

// ago returns the number of versions between the requested version and the current one.
func ago(ask *recording.Ask) int {
	version, err := strconv.ParseUint(ask.Version, 10, 64)
	if err != nil || version == 0 || version > ask.Now {
		return 0
	}
	return int(min(ask.Now-version, 15))
}

func agoOf(ask *recording.Ask) string {
	return map[bool]string{true: "of the present", false: "of the past"}[ago(ask) == 0]
}

func TestSourceInputsLeadToWhatTheSourceHeld(t *testing.T) {
	run := []recording.Line{
		{Do: recording.Run, Objects: []recording.Object{{Key: "a/o0"}, {Key: "b/o0"}}},
		{Do: recording.List, Ask: &recording.Ask{Now: 2, Limit: 2}},
		{Do: recording.Step, Step: "write", Key: "a/o1"},
		{Do: recording.Step, Step: "recreate", Key: "a/o0"},
		{Do: recording.List, Ask: &recording.Ask{Now: 5, Limit: 2, Continue: true}},
		{Do: recording.Watch, Ask: &recording.Ask{Now: 5, Version: "3"}},
		{Do: recording.Step, Step: "delete", Key: "b/o0"},
		{Do: recording.Step, Step: "compact"},
	}
	script := sourceInput(run, 0, recording.NewScript(200)).Values[0].([]byte)
	require.Equal(t, byte(0x2c), script[len(script)-3], "a watch of two versions ago")
	m := &sourceModel{
		T:      t,
		source: cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind}),
		script: script,
	}
	m.states = map[uint64]map[string]string{0: {}}
	for len(m.script) > 0 {
		m.step()
	}
	m.source.Close()
	// The first and the third key, by the model's names.
	require.Equal(t, []string{"a/0", "a/1"}, slices.Sorted(maps.Keys(m.states[m.version])))
	require.Equal(t, m.version, m.compacted)
	require.Empty(t, m.token, "the list has come to its end")
}
