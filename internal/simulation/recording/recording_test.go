package recording

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinesAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadDir(dir)
	require.ErrorContains(t, err, dir)

	runs := [][]Line{
		{{Do: Run, Seed: 3, Mirrors: []Mirror{{Name: "m", Handlers: []Handler{{Slow: time.Second}}}}}},
		{{Do: Answer, At: 5, Answer: &Body{Code: 200, Content: []byte("\x00{}")}}, {Do: Step, Step: "write", Key: "a/b"}},
	}
	require.NoError(t, WriteFile(filepath.Join(dir, "1.jsonl"), runs[0]))
	require.NoError(t, WriteFile(filepath.Join(dir, "2.jsonl"), runs[1]))
	require.ErrorIs(t, WriteFile(filepath.Join(dir, "2.jsonl"), nil), os.ErrExist)
	read, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, runs, read)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "3.jsonl"), []byte("{}\n{"), 0o600))
	_, err = ReadDir(dir)
	require.ErrorContains(t, err, "3.jsonl: line 2")
}

// dos are what deliveries are.
func dos(deliveries []Delivery) (dos []string) {
	for _, d := range deliveries {
		dos = append(dos, d.Do)
	}
	return dos
}

func TestAListInPagesIsOneReplacement(t *testing.T) {
	one := []Object{{Key: "a/1"}}
	first, next := Line{Do: List, Ask: &Ask{Limit: 1}}, Line{Do: List, Ask: &Ask{Continue: true}}
	page, last, refused := Line{Do: Listed, Objects: one, More: true}, Line{Do: Listed, Objects: one}, Line{Do: Refused}

	require.Equal(t, []string{Whole}, dos(Deliveries([]Line{first, last})))
	require.Equal(t, []string{Begin, Part, Part, Commit}, dos(Deliveries([]Line{first, page, next, last})))
	require.Equal(t, []string{Begin, Part, Part, Commit}, dos(Deliveries([]Line{first, page, next, refused, next, last})), "a page may be asked for again")
	require.Equal(t, []string{Begin, Part, Abort, Whole}, dos(Deliveries([]Line{first, page, next, refused, first, last})))
	require.Equal(t, []string{Begin, Part, Abort}, dos(Deliveries([]Line{first, page, {Do: Watch, Ask: &Ask{}}})))
}

func TestAStreamThatBeginsIsAReplacement(t *testing.T) {
	stream := Line{Do: Watch, Ask: &Ask{Streaming: true}}
	added := func(at time.Duration) Line {
		return Line{At: at, Do: Event, Type: "ADDED", Objects: []Object{{Key: "a/1"}}}
	}
	removed := Line{At: 2, Do: Event, Type: "DELETED", Objects: []Object{{Key: "a/1"}}}
	progress, end := Line{At: 2, Do: Bookmark, More: true}, Line{At: 2, Do: Bookmark, Version: 7}

	got := Deliveries([]Line{stream, added(1), added(1), added(2), removed, progress, end, added(2), progress})
	require.Equal(t, []string{Begin, Part, Part, Removed, Commit, Event, Bookmark}, dos(got))
	require.Len(t, got[1].Objects, 2, "what comes at once is one part")
	require.Equal(t, uint64(7), got[4].Version)
	var last []bool
	for _, d := range got {
		last = append(last, d.Last)
	}
	require.Equal(t, []bool{true, true, false, false, false, false, true}, last)

	for _, ends := range []Line{{Do: Ended}, {Do: Failed}, {Do: Refused}, stream} {
		require.Equal(t, []string{Begin, Part, Abort}, dos(Deliveries([]Line{stream, added(0), ends}))[:3], ends.Do)
	}
}

func TestSourcesHaveTheirLinesAndTheSteps(t *testing.T) {
	run := []Line{
		{Do: Run, Mirrors: []Mirror{{Name: "x"}, {Name: "y", Kind: "namespaces"}}},
		{Do: List, Source: "y/a", Ask: &Ask{}}, {Do: Step, Step: "write"}, {Do: List, Source: "y/b", Ask: &Ask{}}, {Do: Listed, Source: "y/a"},
		{Do: Answer},
	}
	sources := Sources(run)
	require.Len(t, sources, 2)
	require.Equal(t, Source{Name: "y/a", Mirror: run[0].Mirrors[1], Number: 1, Mirrors: 2, Lines: []Line{run[1], run[2], run[4]}}, sources[0])
	require.Equal(t, []Line{run[2], run[3]}, sources[1].Lines)

	starts := 0
	for source, script := range Starts([][]Line{run}, 24) {
		require.Equal(t, List, source.Lines[0].Do)
		require.False(t, script.Add("too much", make([]byte, 25)...))
		starts++
	}
	require.Equal(t, 2*len(sizes), starts)
}

func TestAScriptEndsWithTheFirstStepThatHasNoRoom(t *testing.T) {
	s := NewScript(4)
	require.True(t, s.Add("a", 1, 2))
	require.False(t, s.Full())
	require.False(t, s.Add("b", 3, 4, 5))
	require.True(t, s.Full())
	require.False(t, s.Add("c", 6), "there would be a gap")
	input := s.Input(uint8(7))
	require.Equal(t, []any{[]byte{1, 2}, uint8(7)}, input.Values)
	require.Equal(t, map[string]bool{"a": true}, input.Features)
}

func TestInputsAreChosenThatDiffer(t *testing.T) {
	small, same := NewInput([]string{"a", "b"}, []byte("1")), NewInput([]string{"a", "b"}, []byte("11111"))
	other := NewInput([]string{"b", "a"}, []byte("222"))
	huge := NewInput([]string{"x", "y", "z"}, make([]byte, mostBytes))
	require.Equal(t, []Input{small, other}, Choose([]Input{same, huge, other, small}))

	var many []Input
	for i := range 3 * mostInputs {
		many = append(many, NewInput([]string{string(rune('a' + i))}, []byte{byte(i)}))
	}
	require.Len(t, Choose(many), mostInputs)
}

func TestACorpusReplacesOnlyWhatWasMadeBefore(t *testing.T) {
	dir := t.TempDir()
	corpus := filepath.Join(dir, "testdata", "fuzz", "FuzzX")
	_, err := WriteCorpus(dir, "FuzzX", nil)
	require.ErrorContains(t, err, "FuzzX")
	require.NoDirExists(t, corpus)

	n, err := WriteCorpus(dir, "FuzzX", []Input{NewInput([]string{"a"}, []byte("a")), NewInput([]string{"b"}, []byte("b"))})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoError(t, os.WriteFile(filepath.Join(corpus, "found"), nil, 0o600))
	_, err = WriteCorpus(dir, "FuzzX", []Input{NewInput([]string{"c"}, []byte("\x00\"ü\xff"), "GET\n", int32(-3), uint16(7), uint8(2), uint64(9), true)})
	require.NoError(t, err)

	files, err := os.ReadDir(corpus)
	require.NoError(t, err)
	require.Len(t, files, 2)
	text, err := os.ReadFile(filepath.Join(corpus, "simulation-01"))
	require.NoError(t, err)
	require.Equal(t, "go test fuzz v1\n[]byte(\"\\x00\\\"ü\\xff\")\nstring(\"GET\\n\")\nint32(-3)\nuint16(0x7)\nuint8(0x2)\nuint64(0x9)\nbool(true)\n", string(text))
}
