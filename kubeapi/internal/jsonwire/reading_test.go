package jsonwire

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

var limits = wire.Limits{ValueBytes: 16 << 20, Nesting: 1000, TokenBytes: 64 << 10}

// arriving runs a test for each way in which body can arrive.
func arriving(t *testing.T, body string, test func(t *testing.T, body io.Reader)) {
	t.Helper()
	for name, way := range wiretest.Deliveries {
		t.Run(name, func(t *testing.T) { test(t, way(strings.NewReader(body))) })
	}
}

// listing is everything that a list returned.
type listing struct {
	items  []string
	header wire.Header
	err    error // io.EOF if it is complete
}

func readList(body io.Reader, limits wire.Limits) (read listing) {
	list := Encoding.List(body, limits)
	for {
		raw, err := list.Next()
		if err != nil {
			read.header, read.err = list.Header(), err
			return read
		}
		read.items = append(read.items, string(raw))
	}
}

// event is a frame that does not change with the next one.
type event struct {
	Type   watch.EventType
	Object string
}

func readWatch(body io.Reader, limits wire.Limits) (events []event, err error) {
	frames := Encoding.Watch(body, limits)
	for {
		frame, err := frames.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event{frame.Type, string(frame.Object)})
	}
}

// quoted returns a JSON string of exactly size bytes, object an object.
func quoted(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
func object(size int) string { return `{"s":` + quoted(size-6) + `}` }

func nested(depth int) string { return strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) }
