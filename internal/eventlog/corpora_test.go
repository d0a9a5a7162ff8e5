package eventlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

var corpora = recording.CorporaFlag()

// TestWriteCorpora is the second half of making corpora, not a test; see package recording.
func TestWriteCorpora(t *testing.T) {
	var inputs []recording.Input
	for source, script := range recording.Starts(corpora.Runs(t), 40) {
		inputs = append(inputs, backlogInput(source, script))
	}
	corpora.Write(t, "FuzzBacklogMatchesAModel", inputs)
}

// backlogInput makes a script of FuzzBacklogMatchesAModel from the events that a source sent and
// the speed of its mirror's first handler. The model decides which keys change.
func backlogInput(source recording.Source, script *recording.Script) recording.Input {
	b := &backlogEncoder{Script: script, source: source}
	keys := map[string]bool{}
	if len(source.Mirror.Handlers) > 0 {
		b.slow = source.Mirror.Handlers[0].Slow
	}
	for _, d := range recording.Deliveries(source.Lines) {
		for _, o := range d.Objects {
			keys[o.Key] = true
		}
		if b.encode(d); script.Full() {
			break
		}
	}
	return script.Input(uint8(max(1, len(keys))-1), uint64(source.Number))
}

type backlogEncoder struct {
	*recording.Script
	source recording.Source
	slow   time.Duration
	// waiting is the number of changes that the handler has not received.
	waiting int
	stalled bool
	at      time.Duration
}

func (b *backlogEncoder) encode(d recording.Delivery) {
	b.advance(d.At - b.at)
	b.at = d.At
	switch {
	case d.Do == recording.Event:
		// b modulo 8: 0 to 3 is an update, 4 and 5 a deletion.
		b.Add(d.Type, map[string]byte{"DELETED": 4}[d.Type])
		b.waiting++
	case d.Do == recording.Whole, d.Do == recording.Part:
		for range min(len(d.Objects), 3) {
			b.Add("listed", 6) // possibly of another object by now
			b.waiting++
		}
	case d.Do == recording.Commit:
		b.Add("end of list", 190)
		b.waiting++
	case d.Do != recording.Step:
	case d.Step == "burst":
		// From 195 on, twenty times as many changes are appended.
		b.Add("burst", byte(min(195+d.N/50, 224)))
		b.waiting += max(d.N, 100)
	case d.Mirror%b.source.Mirrors == b.source.Number && (d.Step == "stall" || d.Step == "release"):
		b.stalled = d.Step == "stall"
	}
}

// advance delivers as many changes as the handler has time for; from 225 on, twenty times as many.
func (b *backlogEncoder) advance(pause time.Duration) {
	n := b.waiting
	if b.slow > 0 {
		n = min(n, int(pause/b.slow))
	}
	switch {
	case b.stalled || pause == 0:
		return
	case n == b.waiting && n > 5:
		b.Add("caught up", 250)
	case n > 10:
		b.Add("catches up", byte(min(220+n/20, 249)))
	default:
		for range n {
			b.Add("delivered", 120)
		}
	}
	b.waiting -= n
	if r := b.source.Mirror.Resync; r > 0 && pause > r {
		b.Add("resync", 180)
	}
}

func TestBacklogInputsHaveThePaceOfTheHandler(t *testing.T) {
	event := func(at time.Duration, kind, key string) recording.Line {
		return recording.Line{
			At:      at,
			Do:      recording.Event,
			Type:    kind,
			Objects: []recording.Object{{Key: key}},
		}
	}
	source := recording.Source{
		Mirrors: 1,
		Mirror:  recording.Mirror{Kind: "typed", Handlers: []recording.Handler{{}}},
		Lines: []recording.Line{
			{
				Do:      recording.Listed,
				Version: 9,
				Objects: []recording.Object{{Key: "a/0"}, {Key: "a/1"}, {Key: "a/2"}},
			},
			event(time.Second, "DELETED", "a/0"), event(2*time.Second, "MODIFIED", "a/1"),
			event(3*time.Second, "ADDED", "a/3"),
		},
	}
	quick := backlogInput(source, recording.NewScript(40)).Values
	source.Mirror.Handlers = []recording.Handler{{Slow: time.Hour}}
	slow := backlogInput(source, recording.NewScript(40)).Values[0].([]byte)
	require.Contains(t, string(quick[0].([]byte)), "\x06\x06")
	require.Contains(t, string(quick[0].([]byte)), "\x78\x78", "notified in time")
	require.NotContains(t, string(slow), "\x78")
	require.Equal(t, uint8(3), quick[1], "four keys")
	newCursorModel(t, WhenBehind, 4, 0).run(quick[0].([]byte))
	newCursorModel(t, WhenBehind, 4, 0).run(slow)
}
