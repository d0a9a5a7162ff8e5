// Package wiretest reads bodies with various read sizes. It is for the tests of the encodings.
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

// Listing is the result of reading a list. Err is never nil: io.EOF if the list is complete.
type Listing struct {
	Items  [][]byte
	Header wire.Header
	Err    error
}

// ReadList reads a list to its end or its first error.
func ReadList(encoding wire.Encoding, body io.Reader, limits wire.Limits) Listing {
	list := encoding.List(body, limits)
	var result Listing
	for {
		item, err := list.Next()
		if err != nil {
			result.Header, result.Err = list.Header(), err
			return result
		}
		result.Items = append(result.Items, bytes.Clone(item))
	}
}

// Watching is the result of reading a watch. Err is never nil: io.EOF if it ended normally.
type Watching struct {
	Frames []wire.Frame
	Err    error
}

// ReadWatch reads a watch to its end or its first error.
func ReadWatch(encoding wire.Encoding, body io.Reader, limits wire.Limits) Watching {
	w := encoding.Watch(body, limits)
	var result Watching
	for {
		frame, err := w.Next()
		if err != nil {
			result.Err = err
			return result
		}
		frame.Object = bytes.Clone(frame.Object)
		result.Frames = append(result.Frames, frame)
	}
}
