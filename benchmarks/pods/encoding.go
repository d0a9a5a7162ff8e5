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
type Encoding struct {
	templates []template
	// clock encodes a time.
	clock func(time.Time) []byte
}

// JSON is for pods in JSON, without apiVersion and kind, as they are in lists. The first
// call makes the templates.
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
	template := e.templates[i%shapes]
	to = append(to, template.encoded...)
	parts := e.parts(identityOf(i, version))
	for _, place := range template.places {
		copy(to[from+place.at:], parts[place.part])
	}
	return to
}

// Len is the length of what Append appends for pod i, whatever the version.
func (e *Encoding) Len(i int) int { return len(e.templates[i%shapes].encoded) }

// template is a pod whose identity is the placeholder, and where that is in it.
type template struct {
	encoded []byte
	places  []place
}

// place is an offset where a part of the identity is.
type place struct {
	at   int
	part string
}

func newEncoding(encode func(*corev1.Pod) ([]byte, error), clock func(time.Time) []byte) *Encoding {
	e := &Encoding{clock: clock}
	for shape := range shapes {
		encoded, err := encode(newPod(shape, placeholder()))
		if err != nil {
			panic(fmt.Sprintf("a pod made here cannot be encoded: %v", err))
		}
		t := template{encoded: slices.Clip(encoded)}
		for part, mark := range e.parts(placeholder()) {
			for _, at := range offsets(encoded, mark) {
				t.places = append(t.places, place{at: at, part: part})
			}
		}
		e.templates = append(e.templates, t)
	}
	return e
}

// offsets are where the mark is.
func offsets(encoded, mark []byte) []int {
	var all []int
	from := 0
	for {
		at := bytes.Index(encoded[from:], mark)
		if at < 0 {
			return all
		}
		all = append(all, from+at)
		from += at + len(mark)
	}
}

// parts are the parts of an identity as they are encoded.
func (e *Encoding) parts(id identity) map[string][]byte {
	parts := map[string][]byte{"created": e.clock(id.created), "ready": e.clock(id.ready)}
	for name, text := range id.texts {
		parts[name] = []byte(text)
	}
	return parts
}
