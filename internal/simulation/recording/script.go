package recording

import (
	"iter"
	"strings"
)

// Script is an input of a fuzz target that takes its bytes for steps, while it is made.
type Script struct {
	Bytes  []byte
	things []string
	most   int
}

// Add adds a step, under a name for what it is, and says whether there was room for it.
func (s *Script) Add(thing string, bytes ...byte) bool {
	if len(s.Bytes)+len(bytes) > s.most {
		s.most = 0 // no later step, or it would follow a gap
		return false
	}
	s.Bytes = append(s.Bytes, bytes...)
	s.things = append(s.things, thing)
	return true
}

// Full says whether a step has found no room.
func (s *Script) Full() bool { return s.most == 0 }

// NewScript makes a script that has room for so many bytes.
func NewScript(most int) *Script { return &Script{most: most} }

// Input makes the input of a script. Further values are those of the target's arguments
// behind the script.
func (s *Script) Input(more ...any) Input {
	return NewInput(s.things, append([]any{s.Bytes}, more...)...)
}

// Source is what a recording says of one source of a run.
type Source struct {
	Name   string
	Mirror Mirror
	// Lines are those of the source, and the steps of the script.
	Lines []Line
	// Number is which of the run's mirrors it is.
	Number, Mirrors int
}

// Sources takes the recording of a run apart.
func Sources(run []Line) (sources []Source) {
	if len(run) == 0 || run[0].Do != Run {
		return nil
	}
	seen := map[string]bool{}
	for _, line := range run {
		if line.Source == "" || seen[line.Source] {
			continue
		}
		seen[line.Source] = true
		source := Source{Name: line.Source, Mirrors: len(run[0].Mirrors)}
		name, _, _ := strings.Cut(line.Source, "/")
		for i, mirror := range run[0].Mirrors {
			if mirror.Name == name {
				source.Mirror, source.Number = mirror, i
			}
		}
		for _, line := range run {
			if line.Source == source.Name || line.Do == Step {
				source.Lines = append(source.Lines, line)
			}
		}
		sources = append(sources, source)
	}
	return sources
}

// sizes are the lengths of scripts to be had, as parts of the longest.
var sizes = [...]int{1, 3, 8}

// Starts are pieces of all sources of the runs: each begins where somebody has asked for a
// list, or for a stream that begins with one. Of each there are several, for scripts of
// another length.
func Starts(runs [][]Line, most int) iter.Seq2[Source, *Script] {
	return func(yield func(Source, *Script) bool) {
		for _, run := range runs {
			for _, source := range Sources(run) {
				if !source.starts(most, yield) {
					return
				}
			}
		}
	}
}

// starts calls yield with the pieces of one source, until it returns false.
func (s Source) starts(most int, yield func(Source, *Script) bool) bool {
	all := s.Lines
	for i, line := range all {
		if !line.beginsList() {
			continue
		}
		s.Lines = all[i:]
		for _, part := range sizes {
			if !yield(s, NewScript(most/part)) {
				return false
			}
		}
	}
	return true
}

// beginsList reports whether the line asks for a list, or for a stream that begins with one.
func (l Line) beginsList() bool {
	switch l.Do {
	case List:
		return !l.Ask.Continue
	case Watch:
		return l.Ask.Streaming
	}
	return false
}
