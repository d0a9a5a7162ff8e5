package cache

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

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
