// Package wiretest reads bodies in the ways in which they may arrive. It is for the tests
// of the encodings.
package wiretest

import (
	"bytes"
	"io"
	"testing/iotest"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Deliveries are the ways in which a body may arrive.
var Deliveries = map[string]func(io.Reader) io.Reader{
	"whole":           func(r io.Reader) io.Reader { return r },
	"byte by byte":    iotest.OneByteReader,
	"in halves":       iotest.HalfReader,
	"EOF with data":   iotest.DataErrReader,
	"bytes, then EOF": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
}

// Listing is what came of a list. Its error is never nil: io.EOF if it is complete.
type Listing struct {
	Items  [][]byte
	Header wire.Header
	Err    error
}

// ReadList reads a list to its end, or to its first fault.
func ReadList(encoding wire.Encoding, body io.Reader, limits wire.Limits) Listing {
	list := encoding.List(body, limits)
	var all Listing
	for {
		item, err := list.Next()
		if err != nil {
			all.Header, all.Err = list.Header(), err
			return all
		}
		all.Items = append(all.Items, bytes.Clone(item))
	}
}

// Watching is what came of a watch. Its error is never nil: io.EOF if it ended well.
type Watching struct {
	Frames []wire.Frame
	Err    error
}

// ReadWatch reads a watch to its end, or to its first fault.
func ReadWatch(encoding wire.Encoding, body io.Reader, limits wire.Limits) Watching {
	w := encoding.Watch(body, limits)
	var all Watching
	for {
		frame, err := w.Next()
		if err != nil {
			all.Err = err
			return all
		}
		frame.Object = bytes.Clone(frame.Object)
		all.Frames = append(all.Frames, frame)
	}
}
