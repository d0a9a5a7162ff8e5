package jsonwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

var corpora = recording.CorporaFlag()

// TestWriteCorpora is the second half of making corpora, not a test; see package recording.
func TestWriteCorpora(t *testing.T) {
	runs := corpora.Runs(t)
	var lists, watches, objects []recording.Input
	for _, run := range runs {
		for _, line := range run {
			switch {
			case line.Answer == nil || len(line.Answer.Content) == 0:
			case strings.Contains(line.Answer.Query, "watch="):
				watches = append(watches, watchInputs(line.Answer.Content)...)
			case !line.Answer.Cut:
				lists = append(lists, listInput(line.Answer.Content))
				objects = append(objects, objectInputs(line.Answer.Content)...)
			}
		}
	}
	for target, inputs := range map[string][]recording.Input{"FuzzListBody": lists, "FuzzWatchBody": watches, "FuzzUnstructured": objects} {
		corpora.Write(t, target, inputs)
	}
}

// listInput makes an input of a list's body. It is characterized by its fields and those of its
// items.
func listInput(body []byte) recording.Input {
	listing := readList(bytes.NewReader(body), limits)
	things := fieldNames(body)
	for _, item := range listing.items {
		things = append(things, strings.Join(fieldNames([]byte(item)), ","))
	}
	return recording.NewInput(append(things, fmt.Sprint(len(listing.items), " items")), body)
}

// pieces are the lengths to which a long stream is cut, possibly in the middle of a frame, as a
// network does.
var pieces = [...]int{500, 1000, 2000, 3000}

// watchInputs makes inputs of the beginnings of a watch's body, whole and cut.
func watchInputs(body []byte) (inputs []recording.Input) {
	for _, most := range pieces {
		piece := body[:min(len(body), most)]
		frames, err := readWatch(bytes.NewReader(piece), limits)
		var things []string
		for _, frame := range frames {
			things = append(things, string(frame.Type)+" "+strings.Join(fieldNames([]byte(frame.Object)), ","))
		}
		inputs = append(inputs, recording.NewInput(append(things, err.Error()), piece))
		if len(piece) == len(body) {
			break
		}
	}
	return inputs
}

// objectInputs makes inputs of the items of a list.
func objectInputs(body []byte) (inputs []recording.Input) {
	for _, item := range readList(bytes.NewReader(body), limits).items {
		inputs = append(inputs, recording.NewInput(fieldNames([]byte(item)), []byte(item)))
	}
	return inputs
}

// fieldNames returns the paths of an object's fields, two levels deep, in order. Keys of labels and
// similar maps are omitted, but not the types of their values.
func fieldNames(object []byte) (names []string) {
	fields, is := fieldsOf(object)
	if is != anObject {
		return []string{"no object"}
	}
	for _, name := range []string{"kind", "apiVersion", "metadata", "items", "status", "reason", "details", "code"} {
		for _, value := range fields[name] {
			names = append(names, name)
			if inner, is := fieldsOf(value); is == anObject {
				names = append(names, innerNames(name, inner)...)
			}
		}
	}
	return names
}

func innerNames(of string, fields map[string][]json.RawMessage) (names []string) {
	for _, name := range []string{"namespace", "name", "uid", "resourceVersion", "continue", "remainingItemCount", "labels", "annotations", "retryAfterSeconds", "causes"} {
		for _, value := range fields[name] {
			names = append(names, of+"."+name)
			for _, mark := range []string{"serial", "bad", "unwanted", "group", "undecodable", "k8s.io/initial-events-end"} {
				if inner, _ := fieldsOf(value); inner[mark] != nil {
					names = append(names, of+"."+name+"."+mark+" "+string(inner[mark][0][:1]))
				}
			}
		}
	}
	return names
}

func TestTheSameThingsAreSpecialAboutEqualBodies(t *testing.T) {
	one := watchInputs([]byte(`{"type":"ADDED","object":{"kind":"A","metadata":{"name":"x"}}}` + "\n"))
	other := watchInputs([]byte(`{"type":"ADDED","object":{"kind":"B","metadata":{"name":"y"}}}` + "\n"))
	cut := watchInputs([]byte(`{"type":"ADDED","object":{"kind":"B","metadata":{"name":"y"}`))
	require.Equal(t, one[0].Features, other[0].Features)
	require.NotEqual(t, one[0].Features, cut[0].Features)
	garbled := listInput([]byte(`{"items":[{"metadata":{"labels":{"undecodable":[1]}}}]}`))
	whole := listInput([]byte(`{"items":[{"metadata":{"labels":{"undecodable":"x"}}}]}`))
	require.NotEqual(t, garbled.Features, whole.Features)
	require.Len(t, objectInputs([]byte(`{"items":[{},{}]}`)), 2)
}
