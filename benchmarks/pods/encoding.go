package pods

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Encoding makes encoded pods quickly: there is one encoded template of each shape, and
// a pod's own fields are written over a copy of it. A server that does so is not what a
// measurement measures.
type Encoding struct{ templates []template }

// JSON is for pods in JSON, without apiVersion and kind, as they are in lists. The first
// call makes the templates, in some tenths of a second.
var JSON = sync.OnceValue(func() *Encoding {
	return newEncoding(func(pod *corev1.Pod) ([]byte, error) { return json.Marshal(pod) },
		func(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339)) })
})

// Protobuf is for pods as protobuf messages, without an envelope. The first call makes
// the templates.
var Protobuf = sync.OnceValue(func() *Encoding {
	return newEncoding((*corev1.Pod).Marshal,
		func(at time.Time) []byte { return binary.AppendUvarint(nil, uint64(at.Unix())) })
})

// Append appends pod i as it is at a resource version. It may be called concurrently.
func (e *Encoding) Append(to []byte, i int, version uint64) []byte {
	from := len(to)
	template := &e.templates[i%shapes]
	to = append(to, template.encoded...)
	template.personalize(to[from:], identityOf(i, version))
	return to
}

// Len is the length of what Append appends for pod i, whatever the version.
func (e *Encoding) Len(i int) int { return len(e.templates[i%shapes].encoded) }

// template is a pod whose identity is the placeholder, and where that is in it.
type template struct {
	encoded []byte
	places  []place
	time    func(time.Time) []byte
}

// place is an offset where a part of the identity is.
type place struct{ at, part int }

func newEncoding(encode func(*corev1.Pod) ([]byte, error), clock func(time.Time) []byte) *Encoding {
	e := &Encoding{}
	for number := range shapes {
		encoded, err := encode(newShape(number).pod(placeholder()))
		if err != nil {
			panic(fmt.Sprintf("a pod made here cannot be encoded: %v", err))
		}
		t := template{encoded: slices.Clip(encoded), time: clock}
		for part, mark := range t.parts(placeholder()) {
			for from := 0; ; {
				at := bytes.Index(encoded[from:], mark)
				if at < 0 {
					break
				}
				t.places = append(t.places, place{from + at, part})
				from += at + len(mark)
			}
		}
		slices.SortFunc(t.places, func(a, b place) int { return a.at - b.at })
		e.templates = append(e.templates, t)
	}
	return e
}

// parts are the parts of an identity as they are encoded.
func (t *template) parts(id identity) [9 + instances][]byte {
	parts := [9 + instances][]byte{
		[]byte(id.namespace), []byte(id.suffix), []byte(id.uid), []byte(id.version),
		[]byte(id.node), []byte(id.hostIP), []byte(id.podIP), t.time(id.created), t.time(id.ready),
	}
	for c, container := range id.containers {
		parts[9+c] = []byte(container)
	}
	return parts
}

func (t *template) personalize(encoded []byte, id identity) {
	parts := t.parts(id)
	for _, place := range t.places {
		copy(encoded[place.at:], parts[place.part])
	}
}
