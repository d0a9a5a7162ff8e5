package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// queueInput makes a script of FuzzDeltaFIFOAgainstMap of what a source has sent. A consumer
// takes it out as that of the mirror did: not while it was held up, and while more comes in
// if that came at the same moment.
func queueInput(source recording.Source, script *recording.Script) recording.Input {
	q := &queueEncoder{Script: script, source: source, slots: slots{most: 6}, way: 11}
	if source.Mirror.Kind == "process" {
		q.way = 9
	}
	q.Add("records", byte(source.Number)) // odd or even
	before := time.Duration(0)
	for _, d := range recording.Deliveries(source.Lines) {
		if r := source.Mirror.Resync; r > 0 && d.At-before > r {
			q.Add("resync", 8)
		}
		before = d.At
		q.take(d)
		if script.Full() {
			break
		}
	}
	return script.Input()
}

type queueEncoder struct {
	*recording.Script
	source recording.Source
	slots  slots
	// way is how the consumer takes things out: 9 is Pop, 11 popPending.
	way byte
	// held has the state that each slot was sent last.
	held    [6]int
	stalled bool
	// moment is what has come at one moment, waiting how much since the last Pop.
	moment  []queueStep
	waiting int
}

// queueStep is a step that brings something in.
type queueStep struct {
	name  string
	bytes []byte
}

func (q *queueEncoder) in(name string, bytes ...byte) {
	q.moment = append(q.moment, queueStep{name, bytes})
}

func (q *queueEncoder) take(d recording.Delivery) {
	switch d.Do {
	case recording.Whole:
		q.in("whole", append([]byte{5}, q.list(d.Objects)...)...)
	case recording.Begin:
		q.in("begin", 6)
	case recording.Part:
		q.in("part", append([]byte{6, 3}, q.list(d.Objects)...)...)
	case recording.Gone:
		q.in("gone", 6, 3|8|byte(q.slots.of(d.Objects[0].Key))<<5, 0, 0)
	case recording.Commit:
		q.in("commit", 6, 1)
	case recording.Abort:
		q.in("abort", 6, 0)
	case recording.Event:
		q.event(d)
	case recording.Bookmark:
		q.in("bookmark", 4)
	case recording.Step:
		if d.Mirror%q.source.Mirrors == q.source.Number && (d.Step == "stall" || d.Step == "release") {
			q.stalled = d.Step == "stall"
		}
	}
	if d.Last {
		q.consume()
	}
}

// consume brings in what has come at a moment, and has the consumer take it out, if it has
// time. It takes the first of it at once, and some of the rest comes in meanwhile.
func (q *queueEncoder) consume() {
	for i, step := range q.moment {
		q.Add(step.name, step.bytes...)
		if rest := len(q.moment) - 1; i == 0 && rest > 0 && !q.stalled {
			q.Add("pop within", q.way, byte(min(rest, 3)))
		}
	}
	q.waiting += len(q.moment)
	q.moment = nil
	if q.stalled {
		return
	}
	for range min(q.waiting, 6) {
		q.Add("pop", q.way, 0)
	}
	q.waiting = 0
}

// list says of each slot whether a list has it, and how.
func (q *queueEncoder) list(objects []recording.Object) []byte {
	var listed [6]*recording.Object
	for _, o := range objects {
		if o.Key != "" {
			listed[q.slots.of(o.Key)] = &o
		}
	}
	choices, outcomes := 0, []byte{}
	for i, o := range listed {
		switch {
		case o == nil:
			q.held[i] = 0
		case o.Serial != 0 && o.Serial == q.held[i]:
			choices |= 1 << (2 * i)
		default:
			choices |= 2 << (2 * i)
			outcomes = append(outcomes, outcomeOf(*o)<<5)
			q.held[i] = o.Serial
		}
	}
	return append([]byte{byte(choices), byte(choices >> 8)}, outcomes...)
}

// outcomeOf is what the transform of a queueModel makes of an object: 6 is an error, 7
// nothing.
func outcomeOf(o recording.Object) byte {
	switch {
	case o.Undecoded || o.Bad != "" && o.Bad != "index" && o.Bad != "index-panic":
		return 6
	case o.Unwanted:
		return 7
	}
	return 0
}

func (q *queueEncoder) event(d recording.Delivery) {
	o := d.Objects[0]
	if o.Key == "" {
		return
	}
	op := map[string]byte{"ADDED": 0, "MODIFIED": 1, "DELETED": 2}[d.Type]
	slot := q.slots.of(o.Key)
	q.held[slot] = o.Serial
	q.in(d.Type+" "+string('0'+rune(outcomeOf(o))), op, queueEvent(slot, outcomeOf(o)))
}

// queueEvent is the byte of an event with its version: the number of the key is that of the
// whole byte modulo 6, and the upper bits are the outcome.
func queueEvent(slot int, outcome byte) byte {
	for b := range 256 {
		if b%6 == slot && b&8 != 0 && b&16 == 0 && (byte(b>>5) == outcome || outcome == 0 && b>>5 < 6) {
			return byte(b)
		}
	}
	panic("some byte is that")
}

func TestQueueInputsLeadToWhatTheSourceHolds(t *testing.T) {
	require.Equal(t, []int{2, 4}, keysOfQueue(t, queueInput, aRecording))
}

// keysOfQueue are the slots that the source of a queueModel has in the end.
func keysOfQueue(t *testing.T, encode func(recording.Source, *recording.Script) recording.Input, source recording.Source) (slots []int) {
	m := newQueueModel(t, encode(source, recording.NewScript(600)).Values[0].([]byte))
	m.run()
	for i := range 6 {
		if _, there := m.source["a/"+itoa(i)]; there {
			slots = append(slots, i)
		}
	}
	return slots
}

// aRecording is of a list in pages that fails, one that comes to its end, events of all
// kinds and a stream. In the end the source has the third and the fifth of its keys.
var aRecording = recording.Source{Mirrors: 1, Mirror: recording.Mirror{Kind: "typed", Resync: time.Minute, Handlers: []recording.Handler{{}, {Coalesced: true}}}, Lines: []recording.Line{
	{Do: recording.List, Ask: &recording.Ask{Limit: 2}},
	{Do: recording.Listed, More: true, Version: 8, Objects: []recording.Object{{Key: "a/0", Version: 1, Serial: 1, UID: "1"}, {Key: "a/1", Version: 2, Serial: 2, UID: "2"}}},
	{Do: recording.List, Ask: &recording.Ask{Limit: 2, Continue: true}},
	{Do: recording.Refused, Failure: &recording.Failure{Code: 410}},
	{Do: recording.List, Ask: &recording.Ask{}},
	{Do: recording.Listed, Version: 9, Objects: []recording.Object{
		{Key: "a/0", Version: 1, Serial: 1, UID: "1"}, {Key: "a/1", Version: 2, Serial: 2, UID: "2"}, {Key: "a/2", Version: 4, Serial: 4, UID: "4"},
	}},
	{At: 1, Do: recording.Watch, Ask: &recording.Ask{Version: "9"}},
	{At: 1, Do: recording.Event, Type: "DELETED", Objects: []recording.Object{{Key: "a/0", Version: 10, Serial: 1, UID: "1"}}},
	{At: 1, Do: recording.Event, Type: "MODIFIED", Objects: []recording.Object{{Key: "a/1", Version: 11, Serial: 5, UID: "2"}}},
	{At: 1, Do: recording.Event, Type: "ADDED", Objects: []recording.Object{{Key: "a/3", Version: 12, Serial: 6, UID: "12"}}},
	{At: 2, Do: recording.Bookmark, Version: 14, More: true},
	{At: 3, Do: recording.Failed, Failure: &recording.Failure{Code: 410}},
	{At: 3, Do: recording.Ended},
	{At: 4 * time.Minute, Do: recording.Watch, Ask: &recording.Ask{Streaming: true}},
	{At: 4 * time.Minute, Do: recording.Event, Type: "ADDED", Objects: []recording.Object{{Key: "a/2", Version: 16, Serial: 8, UID: "4"}}},
	{At: 4 * time.Minute, Do: recording.Event, Type: "ADDED", Objects: []recording.Object{{Key: "a/4", Version: 17, Serial: 9, UID: "17"}}},
	{At: 4 * time.Minute, Do: recording.Bookmark, Version: 17},
}}
