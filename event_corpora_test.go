package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// eventsInput makes a script of FuzzWatchEvents of the events that a source has sent,
// whichever of its watches they came on: the lists between them are left out, and their
// versions are just ahead.
func eventsInput(source recording.Source, script *recording.Script) recording.Input {
	keys, version := slots{most: 8}, 0
	for _, line := range source.Lines {
		var trace eventTrace
		name := line.Do
		switch line.Do {
		case recording.Listed:
			version = int(line.Version)
		case recording.Bookmark:
			trace.event(6, watch.Bookmark, 0, max(int(line.Version)-version, -4))
			version = max(version, int(line.Version))
		case recording.Event:
			o := line.Objects[0]
			ahead := max(int(o.Version)-version, -4)
			what := whatOf(o)
			trace.event(what, watch.EventType(line.Type), keys.of(o.Key), ahead)
			if o.Version == 0 {
				trace[1] = 255 // none
			}
			version = max(version, int(o.Version))
			name = line.Type + " " + itoa(int(what))
		}
		if len(trace) > 0 && !script.Add(name, trace...) {
			break
		}
	}
	return script.Input()
}

// whatOf is what FuzzWatchEvents calls an object.
func whatOf(o recording.Object) byte {
	switch {
	case o.Undecoded && o.Key != "":
		return 2
	case o.Undecoded, o.Bad == "key":
		return 3
	case o.Bad != "":
		return 1
	}
	return 0
}

func TestEventInputsLeadToWhatTheSourceHolds(t *testing.T) {
	script := eventsInput(aRecording, recording.NewScript(200)).Values[0].([]byte)
	m := newEventsModel(t)
	for len(script) > 1 {
		require.True(t, m.take(script[0], script[1]), "a watch that ends early")
		m.check()
		script = script[2:]
	}
	// The deleted key is the first, and two that are there from the beginning come twice.
	require.Equal(t, map[string]string{"a/1": "12", "a/2": "13", "a/3": "17", "a/4": "18"}, m.content)
}
