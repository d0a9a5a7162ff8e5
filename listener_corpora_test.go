package cache

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// listenersInput makes a script of FuzzListenersAgainstTheStore of what a source has sent, of
// the handlers of its mirror, which join late, leave and are held up, and of their pace.
func listenersInput(source recording.Source, script *recording.Script) recording.Input {
	l := &listenersEncoder{Script: script, source: source, slots: slots{most: 4}}
	for _, h := range source.Mirror.Handlers {
		l.join(h, true)
	}
	for _, d := range recording.Deliveries(source.Lines) {
		if l.take(d); script.Full() {
			break
		}
	}
	return script.Input()
}

type listenersEncoder struct {
	*recording.Script
	source   recording.Source
	slots    slots
	handlers []*encodedHandler
	at       time.Duration
	// held has the state and the UID that each slot was sent last; listed is of a list
	// that is under way.
	held   [4]recording.Object
	listed []recording.Object
}

type encodedHandler struct {
	recording.Handler
	waiting        int
	joins, stalled bool
}

// ofHandler is a byte of what a handler does.
func ofHandler(what, handler int) byte { return byte(what | handler%16<<4) }

// join has a handler join at once or, if not wholly, only begin to.
func (l *listenersEncoder) join(h recording.Handler, wholly bool) {
	choice := 0
	if h.Coalesced {
		choice |= 1
	}
	if l.source.Mirror.Resync > 0 {
		choice |= 2
	}
	n := len(l.handlers)
	if n == 16 {
		return
	}
	l.handlers = append(l.handlers, &encodedHandler{Handler: h, joins: !wholly, waiting: 4})
	if !wholly {
		l.Add("join late", ofHandler(7, choice))
		return
	}
	l.Add("join", ofHandler(7, choice), ofHandler(8, n), ofHandler(8, n))
}

func (l *listenersEncoder) take(d recording.Delivery) {
	l.pass(d.At - l.at)
	l.at = d.At
	switch d.Do {
	case recording.Step:
		if d.Mirror%l.source.Mirrors == l.source.Number {
			l.step(d)
		}
	case recording.Begin, recording.Abort:
		l.listed = nil
	case recording.Part:
		l.listed = append(l.listed, d.Objects...)
	case recording.Gone:
		l.listed = slices.DeleteFunc(l.listed, func(o recording.Object) bool { return o.Key == d.Objects[0].Key })
	case recording.Commit:
		l.relist(l.listed)
	case recording.Whole:
		l.relist(d.Objects)
	case recording.Event:
		l.event(d.Type, d.Objects[0])
	}
}

func (l *listenersEncoder) step(d recording.Delivery) {
	switch d.Step {
	case "stall", "release":
		for _, h := range l.handlers {
			h.stalled = d.Step == "stall"
		}
	case "join":
		l.join(recording.Handler{Coalesced: Delivery(d.N%3) == Coalesced, Slow: d.For}, false)
	case "leave":
		if n := len(l.handlers); n > 0 {
			l.Add("leave", ofHandler(14, d.N%n))
			l.handlers = slices.Delete(l.handlers, d.N%n, d.N%n+1)
		}
	}
}

// meanwhile has those that are joining go on within the write that comes next, and so between
// the store and the publication.
func (l *listenersEncoder) meanwhile() {
	var steps []byte
	for i, h := range l.handlers {
		if h.joins {
			steps = append(steps, ofHandler(8, i))
		}
		h.waiting++
	}
	if len(steps) > 0 {
		l.Add("meanwhile", append([]byte{ofHandler(15, len(steps))}, steps...)...)
	}
}

func (l *listenersEncoder) event(kind string, o recording.Object) {
	if o.Key == "" {
		return
	}
	l.meanwhile()
	slot := l.slots.of(o.Key)
	was := l.held[slot]
	op := o.Serial % 4
	switch {
	case kind == "DELETED":
		op, o = 4, recording.Object{}
	case was.UID != "" && was.UID != o.UID:
		kind, op = "another", 5
	}
	l.held[slot] = o
	l.Add(kind, byte(op|slot<<4))
}

// relist has a bit for each slot that a list has, and one for each that it has as it was.
func (l *listenersEncoder) relist(objects []recording.Object) {
	var now [4]recording.Object
	for _, o := range objects {
		if o.Key != "" {
			now[l.slots.of(o.Key)] = o
		}
	}
	bits := 0
	for i, o := range now {
		if o.Key != "" {
			bits |= 1 << i
		}
		if o.Key == "" || o.Serial != l.held[i].Serial || o.Serial == 0 {
			bits |= 16 << i
		}
	}
	l.meanwhile()
	l.Add("relist", 6, byte(bits))
	l.held, l.listed = now, nil
}

// pass lets time pass: handlers have joined, take what they have time for, and what is due
// for a resync is.
func (l *listenersEncoder) pass(pause time.Duration) {
	if pause == 0 {
		return
	}
	for i, h := range l.handlers {
		if h.joins {
			l.Add("joined", ofHandler(8, i), ofHandler(8, i))
			h.joins = false
		}
		n := min(h.waiting, 8)
		if h.Slow > 0 {
			n = min(n, int(pause/h.Slow))
		}
		if h.stalled {
			continue
		}
		for range n {
			l.Add("taken", ofHandler(9, i))
		}
		h.waiting -= n
		if r := l.source.Mirror.Resync; r > 0 && pause > r {
			l.Add("resync", ofHandler(13, i))
		}
	}
}

func TestListenerInputsLeadToWhatTheSourceHolds(t *testing.T) {
	source := aRecording
	at := slices.IndexFunc(source.Lines, func(line recording.Line) bool { return line.Do == recording.Event })
	source.Lines = slices.Insert(slices.Clone(source.Lines), at, recording.Line{At: 1, Do: recording.Step, Step: "join"})
	script := listenersInput(source, recording.NewScript(400)).Values[0].([]byte)
	require.Contains(t, string(script), "\x27\x1f(", "a handler that begins to join, and goes on within a write")
	require.Contains(t, string(script), "\x06\xf5", "a relist with new states of both")
	m := newListenersModel(t, script)
	m.run()
	// The fifth key has the slot of the first.
	require.ElementsMatch(t, []string{"a/0", "a/2"}, m.informer.store.ListKeys())
	require.Len(t, m.handlers, 3)
}
