package cache

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

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

// storeInput makes a script of FuzzIndexerAgainstFullScan of what a source has sent. What
// came at one moment came in one batch, but for the mirrors that have no queue.
func storeInput(source recording.Source, script *recording.Script) recording.Input {
	s := &storeEncoder{Script: script, slots: slots{most: 6}, held: map[int]int{}}
	s.batches = source.Mirror.Kind != "reflector" && source.Mirror.Kind != "foreign"
	for _, d := range recording.Deliveries(source.Lines) {
		s.take(d)
		if script.Full() {
			break
		}
	}
	return script.Input()
}

type storeEncoder struct {
	*recording.Script
	slots slots
	// held has the state that each slot was sent last.
	held    map[int]int
	batches bool
	batch   []recording.Delivery
}

func (s *storeEncoder) take(d recording.Delivery) {
	switch d.Do {
	case recording.Whole:
		if len(d.Objects) <= 4 {
			s.Add("whole", append([]byte{3, byte(len(d.Objects))}, s.objects(d.Objects)...)...)
			return
		}
		s.Add("begin", 4)
		s.parts(d.Objects)
		s.Add("commit", 7, 1)
	case recording.Begin:
		s.Add("begin", 4)
	case recording.Part:
		s.parts(d.Objects)
	case recording.Gone:
		s.Add("gone", append([]byte{5, 0, 1, 0}, s.objects(d.Objects)...)...)
	case recording.Commit:
		s.Add("commit", 7, 1)
	case recording.Abort:
		s.Add("abort", 7, 0)
	case recording.Event:
		s.event(d)
	case recording.Bookmark:
		s.Add("bookmark", 10)
	}
}

// parts are parts of four objects each.
func (s *storeEncoder) parts(objects []recording.Object) {
	for part := range slices.Chunk(objects, 4) {
		bytes := append([]byte{5, byte(len(part))}, s.objects(part)...)
		s.Add("part", append(bytes, 1, 1)...) // neither Keep nor Gone
	}
}

// objects are the bytes of so many objects: the tags of each are another choice than those
// of the state before, 15 is the state itself and 10 one that no index takes.
func (s *storeEncoder) objects(objects []recording.Object) (bytes []byte) {
	for _, o := range objects {
		slot := s.slots.of(o.Key)
		choice := byte(o.Serial % 9)
		switch {
		case o.Undecoded || o.Bad != "":
			choice = 10
		case o.Serial != 0 && s.held[slot] == o.Serial:
			choice = 15
		}
		s.held[slot] = o.Serial
		bytes = append(bytes, byte(slot), choice)
	}
	return bytes
}

func (s *storeEncoder) event(d recording.Delivery) {
	s.batch = append(s.batch, d)
	if s.batches && !d.Last && len(s.batch) < 4 {
		return
	}
	objects := make([]recording.Object, 0, len(s.batch))
	kinds := make([]byte, 0, len(s.batch))
	for _, d := range s.batch {
		objects = append(objects, d.Objects[0])
		kinds = append(kinds, map[string]byte{"ADDED": 0, "MODIFIED": 1, "DELETED": 2}[d.Type])
	}
	s.batch = nil
	if len(objects) == 1 {
		name := d.Type
		if objects[0].Bad != "" {
			name += " bad"
		}
		s.Add(name, append(append([]byte{11}, s.objects(objects)...), kinds[0], 0)...)
		return
	}
	bytes := append([]byte{12, byte(len(objects))}, s.objects(objects)...)
	s.Add("batch", append(append(bytes, kinds...), 0)...)
}

func TestStoreInputsLeadToWhatTheSourceHolds(t *testing.T) {
	m := newStoreModel(t, storeInput(aRecording, recording.NewScript(400)).Values[0].([]byte))
	m.run()
	require.Equal(t, []string{"a/2", "a/4"}, slices.Sorted(maps.Keys(m.held)))
	require.True(t, m.committed)
}

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

// listenersInput makes a script of FuzzListenersAgainstTheStore of what a source has sent, of
// the handlers of its mirror, which join late, leave and are held up, and of their pace.
func listenersInput(source recording.Source, script *recording.Script) recording.Input {
	l := &listenersEncoder{Script: script, source: source, slots: slots{most: 4}}
	for _, h := range source.Mirror.Handlers {
		l.join(h, false)
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
	// late are the joins that happen within the next write.
	late []byte
}

type encodedHandler struct {
	recording.Handler
	waiting int
	stalled bool
}

// ofHandler is a byte of what a handler does.
func ofHandler(what, handler int) byte { return byte(what | handler%16<<4) }

// join has a handler join, within the next write if late.
func (l *listenersEncoder) join(h recording.Handler, late bool) {
	choice := 0
	if h.Coalesced {
		choice |= 1
	}
	if l.source.Mirror.Resync > 0 {
		choice |= 2
	}
	if len(l.handlers) == 16 {
		return
	}
	l.handlers = append(l.handlers, &encodedHandler{Handler: h, waiting: 4})
	if late {
		l.late = append(l.late, ofHandler(7, choice))
		return
	}
	l.Add("join", ofHandler(7, choice))
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
		l.join(recording.Handler{Coalesced: Delivery(d.N%3) == Coalesced, Slow: d.For}, true)
	case "leave":
		l.joinLate()
		if n := len(l.handlers); n > 0 {
			l.Add("leave", ofHandler(14, d.N%n))
			l.handlers = slices.Delete(l.handlers, d.N%n, d.N%n+1)
		}
	}
}

// meanwhile has late handlers join within the write that comes next, between the store and the publication.
func (l *listenersEncoder) meanwhile() {
	for _, h := range l.handlers {
		h.waiting++
	}
	if len(l.late) > 0 {
		l.Add("meanwhile", append([]byte{ofHandler(15, len(l.late))}, l.late...)...)
		l.late = nil
	}
}

// joinLate has late handlers join where no write comes.
func (l *listenersEncoder) joinLate() {
	if len(l.late) > 0 {
		l.Add("joined", l.late...)
		l.late = nil
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
	l.joinLate()
	for i, h := range l.handlers {
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
	require.Contains(t, string(script), "\x1f\x27", "a handler that joins within a write")
	require.Contains(t, string(script), "\x06\xf5", "a relist with new states of both")
	m := newListenersModel(t, script)
	m.run()
	// The fifth key has the slot of the first.
	require.ElementsMatch(t, []string{"a/0", "a/2"}, m.informer.store.ListKeys())
	require.Len(t, m.handlers, 3)
}

// viewsInputs makes scripts of FuzzViewsAgainstMaps of what the sources of one mirror of
// several namespaces have sent.
func viewsInputs(runs [][]recording.Line) (inputs []recording.Input) {
	for _, run := range runs {
		var mirrors []string
		for _, source := range recording.Sources(run) {
			name, _, one := strings.Cut(source.Name, "/")
			if !one || slices.Contains(mirrors, name) {
				continue
			}
			mirrors = append(mirrors, name)
			for _, most := range []int{75, 200, 600} {
				inputs = append(inputs, viewsInput(run, name, recording.NewScript(most)))
			}
		}
	}
	return inputs
}

func viewsInput(run []recording.Line, mirror string, script *recording.Script) recording.Input {
	v := &viewsEncoder{Script: script, views: map[string]*encodedView{}}
	var all []recording.Delivery
	for _, source := range recording.Sources(run) {
		if name, namespace, _ := strings.Cut(source.Name, "/"); name == mirror {
			v.views[source.Name] = &encodedView{part: slices.Index([]string{"a", "ab", "b"}, namespace), slots: slots{most: 5}, objects: map[int]int{}}
			all = append(all, recording.Deliveries(source.Lines)...)
		}
	}
	slices.SortStableFunc(all, func(a, b recording.Delivery) int { return cmp.Compare(a.At, b.At) })
	for _, d := range all {
		if view := v.views[d.Source]; view != nil {
			v.take(view, d)
		}
		if script.Full() {
			break
		}
	}
	return script.Input()
}

// viewsEncoder makes the choices of a namespacesModel. It knows as much of the model as the
// choices depend on.
type viewsEncoder struct {
	*recording.Script
	views map[string]*encodedView
}

type encodedView struct {
	part  int
	slots slots
	// objects has the states that are there; staged those that a list has brought.
	objects, staged map[int]int
	listed          map[int]bool
	open, visible   bool
	committed       bool
}

// choose is the byte by which a model takes choice c of n.
func choose(c, n int) byte {
	if n&(n-1) == 0 {
		return byte(c)
	}
	return byte((c*256 + n - 1) / n)
}

func (v *viewsEncoder) take(n *encodedView, d recording.Delivery) {
	prefix := []byte{choose(n.part, 3)}
	replace := append(prefix, choose(1, 8))
	switch d.Do {
	case recording.Whole:
		n.begin(false)
		v.Add("whole", slices.Concat(replace, []byte{choose(0, 5)}, n.items(d.Objects))...)
		n.commit()
	case recording.Begin:
		n.begin(!n.committed)
		n.open = true
		v.Add("begin", append(replace, choose(1, 5))...)
	case recording.Part:
		for part := range slices.Chunk(d.Objects, 3) {
			v.Add("part", slices.Concat(replace, []byte{choose(4, 6)}, n.items(part))...)
		}
	case recording.Commit:
		v.Add("commit", append(replace, choose(1, 6))...)
		n.commit()
	case recording.Abort:
		v.Add("abort", append(replace, choose(0, 6))...)
		n.open = false
	case recording.Event:
		v.event(n, append(prefix, choose(5, 8)), d)
	case recording.Bookmark:
		change := append(prefix, choose(5, 8))
		v.Add("bookmark", append(change, choose(0, 5), choose(1, 6), choose(0, 3), choose(4, 6))...)
	}
}

// object is the choices for one: its name, and whether it can be taken.
func (n *encodedView) object(o recording.Object) (slot int, good bool, bytes []byte) {
	slot = n.slots.of(o.Key)
	if o.Bad != "" || o.Undecoded {
		return slot, false, []byte{choose(slot, 5), choose(0, 6)}
	}
	return slot, true, []byte{choose(slot, 5), choose(1, 6), choose(o.Serial%3, 3)}
}

func (v *viewsEncoder) event(n *encodedView, change []byte, d recording.Delivery) {
	slot, good, object := n.object(d.Objects[0])
	kind := 1
	switch {
	case d.Type == "DELETED":
		kind = 3
		delete(n.objects, slot)
	case good:
		n.objects[slot] = d.Objects[0].Serial
	}
	name := d.Type
	if !good {
		name += " bad"
	}
	v.Add(name, slices.Concat(change, object, []byte{choose(kind, 6)})...)
}

func (n *encodedView) begin(visible bool) {
	n.visible, n.listed, n.staged = visible, map[int]bool{}, map[int]int{}
}

// items are at most three objects of a list, for a model takes no more of one part.
func (n *encodedView) items(objects []recording.Object) []byte {
	objects = objects[:min(len(objects), 3)]
	bytes := []byte{choose(len(objects), 4)}
	for _, o := range objects {
		slot, good, object := n.object(o)
		bytes = append(bytes, object...)
		if n.listed[slot] {
			continue // which the model leaves out
		}
		n.listed[slot] = true
		if have, there := n.objects[slot]; there {
			unchanged := have == o.Serial
			bytes = append(bytes, choose(map[bool]int{true: 0, false: 1}[unchanged], 2))
			if unchanged {
				continue
			}
		}
		switch {
		case !good:
		case n.visible:
			n.objects[slot] = o.Serial
		default:
			n.staged[slot] = o.Serial
		}
	}
	return bytes
}

func (n *encodedView) commit() {
	maps.Copy(n.objects, n.staged)
	maps.DeleteFunc(n.objects, func(slot, _ int) bool { return !n.listed[slot] })
	n.open, n.committed, n.staged, n.listed = false, true, nil, nil
}

func TestViewInputsLeadToWhatTheSourcesHold(t *testing.T) {
	run := []recording.Line{{Do: recording.Run, Mirrors: []recording.Mirror{{Name: "n"}}}}
	for _, line := range aRecording.Lines {
		for _, namespace := range []string{"a", "b"} {
			line.Source = "n/" + namespace
			run = append(run, line)
		}
	}
	inputs := viewsInputs([][]recording.Line{run})
	m := newNamespacesModel(t, 0)
	m.runScript(inputs[len(inputs)-1].Values[0].([]byte))
	require.Equal(t, []string{"a/2", "a/4", "b/2", "b/4"}, slices.Sorted(slices.Values(m.store.ListKeys())))
	for _, n := range m.parts {
		require.Equal(t, n.name != "ab", n.committed)
	}
}

// runScript is FuzzViewsAgainstMaps of one script.
func (m *namespacesModel) runScript(script []byte) {
	choices := &byteSource{script: script}
	m.random = rand.New(choices)
	for len(choices.script) > 0 {
		m.parts[m.random.IntN(len(m.parts))].step()
		m.compare()
	}
}
