package cache

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

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
