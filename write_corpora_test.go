package cache

import (
	"slices"
	"testing"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

var corpora = recording.CorporaFlag()

// This is no test but the second half of making corpora; see package recording.
func TestWriteCorpora(t *testing.T) {
	runs := corpora.Runs(t)
	targets := map[string]func(recording.Source, *recording.Script) recording.Input{
		"FuzzDeltaFIFOAgainstMap":      queueInput,
		"FuzzIndexerAgainstFullScan":   storeInput,
		"FuzzWatchEvents":              eventsInput,
		"FuzzListenersAgainstTheStore": listenersInput,
	}
	most := map[string]int{
		"FuzzDeltaFIFOAgainstMap": 600, "FuzzIndexerAgainstFullScan": 400, "FuzzWatchEvents": 200,
		"FuzzListenersAgainstTheStore": 400,
	}
	for target, input := range targets {
		var inputs []recording.Input
		for source, script := range recording.Starts(runs, most[target]) {
			inputs = append(inputs, input(source, script))
		}
		corpora.Write(t, target, inputs)
	}
	corpora.Write(t, "FuzzViewsAgainstMaps", viewsInputs(runs))
	corpora.Write(t, "FuzzCauses", causesInputs(runs))
}

// slots gives the keys of a recording, which are many, the few numbers of a model, in the
// order in which they come.
type slots struct {
	most  int
	known []string
}

func (s *slots) of(key string) int {
	at := slices.Index(s.known, key)
	if at < 0 {
		at = len(s.known)
		s.known = append(s.known, key)
	}
	return at % s.most
}

// causesInputs are the errors that reflectors were answered with.
func causesInputs(runs [][]recording.Line) (inputs []recording.Input) {
	for _, run := range runs {
		for _, line := range run {
			if f := line.Failure; f != nil {
				things := []string{f.Reason, "cause " + f.Cause}
				inputs = append(inputs, recording.NewInput(things, f.Code, f.Reason, f.Message, f.Cause, f.RetryAfterSeconds, f.CauseMessage))
			}
		}
	}
	return inputs
}
