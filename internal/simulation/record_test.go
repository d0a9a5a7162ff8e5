package simulation

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
	"github.com/watchmirror/cache/internal/simulation/script"
)

var recordFlag = flag.String("record", "", "the directory to write recordings of the seeds to")

// This is no test but the first half of making corpora; see package recording.
func TestRecordRuns(t *testing.T) {
	if *recordFlag == "" {
		t.Skip("no -record")
	}
	for seed := *fromFlag; seed < *fromFlag+uint64(*seedsFlag); seed++ {
		result, lines := Record(t, script.Generate(seed))
		require.Empty(t, result.Failures, "seed %d", seed)
		require.NoError(t, recording.WriteFile(filepath.Join(*recordFlag, fmt.Sprintf("%06d.jsonl",
			seed)), lines))
	}
}

func TestARecordingHasWhatPassedEachTapInOrder(t *testing.T) {
	input := script.Script{
		Setup: script.Setup{HTTP: true, Objects: 3, Mirrors: []script.MirrorSetup{{Kind: script.KindReflector, Strategy: 2, PageSize: 2}}},
		Steps: []script.Step{
			{After: time.Second, Do: "write", Key: "a/o0", What: script.BadIndex},
			{After: time.Second, Do: "write", Key: "ab/o0", What: script.BadDecode},
			{After: time.Second, Do: "delete", Key: "b/o0"},
			{After: time.Second, Do: "break-watches", What: "expired"},
			{After: time.Minute, Do: "settle"},
		},
	}
	result, lines := Record(t, input)
	require.Empty(t, result.Failures)
	require.Equal(t, recording.Run, lines[0].Do)
	require.Len(t, lines[0].Objects, 3)
	require.Equal(t, []recording.Mirror{{Name: "reflector-0", Kind: "reflector"}}, lines[0].Mirrors)

	var events []recording.Object
	var failed *recording.Failure
	listed, steps, codes := [][]recording.Object{}, 0, map[int]int{}
	for _, line := range lines {
		switch line.Do {
		case recording.Event:
			events = append(events, line.Objects...)
		case recording.Listed:
			listed = append(listed, line.Objects)
		case recording.Step:
			steps++
		case recording.Failed:
			failed = line.Failure
		case recording.Answer:
			codes[line.Answer.Code]++
			// The list of what could not be decoded may end a watch that has sent nothing yet.
			if len(line.Answer.Content) > 0 {
				require.Contains(t, string(line.Answer.Content), `"kind"`)
			}
		}
	}
	require.Len(t, input.Steps, steps)
	require.GreaterOrEqual(t, len(events), 3)
	require.Equal(t, recording.Object{Key: "a/o0", UID: listed[0][0].UID, Version: 5, Serial: 4, Bad: script.BadIndex}, events[0])
	require.Equal(t, recording.Object{Key: "ab/o0", UID: listed[0][1].UID, Version: 6, Undecoded: true}, events[1])
	require.Equal(t, "b/o0", events[2].Key)
	require.Equal(t, int32(410), failed.Code)
	require.Len(t, recording.Sources(lines), 1)
	require.GreaterOrEqual(t, len(listed), 3, "two pages at the start, and a list after the error")
	require.Len(t, listed[0], 2)
	require.Len(t, listed[1], 1)
	require.Greater(t, codes[200], 3)
}

func TestARecordingSaysWhatWasRefusedAndWhereAStreamHasBegun(t *testing.T) {
	input := script.Script{
		Setup: script.Setup{HTTP: true, Objects: 1, Begin: 1, Mirrors: []script.MirrorSetup{{Kind: script.KindReflector, Strategy: 1}, {Kind: script.KindReflector, Strategy: 3}}},
		Steps: []script.Step{{Do: "fail-lists", N: 1, What: "too-many-pause"}, {After: time.Hour, Do: "bookmarks"}, {Do: "settle"}},
	}
	result, lines := Record(t, input)
	require.Empty(t, result.Failures)
	var refused, refusals []string
	ends, bookmarks := map[string]int{}, 0
	for _, line := range lines {
		switch {
		case line.Do == recording.Refused:
			refused = append(refused, fmt.Sprint(line.Source, " ", line.Failure.Code, " ", line.Failure.RetryAfterSeconds))
		case line.Do == recording.Answer && line.Answer.Code != 200:
			refusals = append(refusals, fmt.Sprint(line.Answer.Code, " ", line.Answer.RetryAfter))
		case line.Do == recording.Bookmark && !line.More:
			ends[line.Source]++
		case line.Do == recording.Bookmark:
			bookmarks++
		}
	}
	require.Equal(t, []string{"reflector-0 429 45"}, refused)
	require.Equal(t, []string{"429 45"}, refusals)
	require.Equal(t, map[string]int{"reflector-1": 1}, ends)
	require.Positive(t, bookmarks)
}
