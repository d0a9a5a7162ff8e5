package kubeapi

import (
	"encoding/json"
	"fmt"
	"io"
)

const (
	// maxValueBytes bounds one value: an object in a list, a watch frame. It is the
	// limit apimachinery's own stream decoder has, and ten times what etcd stores by
	// default (1.5 MiB a request).
	maxValueBytes = 16 << 20

	// recycleBytes is the size of a value after which the decoder's buffer, which only
	// ever grows, is given up. Without it each open watch would hold on to twice its
	// largest object.
	recycleBytes = 1 << 20
)

// valueReader reads one JSON value after the other and holds no more of the stream
// than the value at hand. It sits on both sides of the json.Decoder: it decides
// when a value begins, and hands out the bytes so that none gets too long.
type valueReader struct {
	source  io.Reader
	pending []byte // read from source, not yet given to decoder
	failure error  // first error of source other than io.EOF, or ErrTooLarge; then it stays
	limit   int64  // bytes of one value; maxValueBytes except in tests

	decoder *json.Decoder
	given   int64 // bytes the decoder has got
	begin   int64 // where in them the value at hand begins
}

func newValueReader(source io.Reader) *valueReader {
	v := &valueReader{source: source, limit: maxValueBytes}
	v.restart()
	return v
}

func (v *valueReader) restart() {
	v.given, v.begin = 0, 0
	v.decoder = json.NewDecoder((*limited)(v))
	// Numbers are converted afterwards, to int64 where that is exact.
	v.decoder.UseNumber()
}

// limited is the side of a valueReader that the json.Decoder reads from.
type limited valueReader

func (l *limited) Read(p []byte) (int, error) {
	if l.failure != nil {
		return 0, l.failure
	}
	// The decoder asks for more only while the value at hand is incomplete, so at 0
	// its length is known to exceed the limit.
	room := l.limit - (l.given - l.begin)
	if room <= 0 {
		l.failure = ErrTooLarge
		return 0, l.failure
	}
	p = p[:min(int64(len(p)), room)]
	n, err := l.fill(p)
	l.given += int64(n)
	if err != nil && err != io.EOF {
		l.failure = err
	}
	return n, err
}

func (l *limited) fill(p []byte) (int, error) {
	if len(l.pending) == 0 {
		return l.source.Read(p)
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// decode reads the next value. io.EOF means that there is none and the stream ended
// in good order; io.ErrUnexpectedEOF, that it ended inside a value. Other errors are
// the stream's own, or wrap ErrTooLarge or ErrMalformed.
func (v *valueReader) decode(into any) error {
	v.begin = v.decoder.InputOffset()
	return v.explain(v.decoder.Decode(into))
}

// token reads a brace, bracket or object key.
func (v *valueReader) token() (json.Token, error) {
	v.begin = v.decoder.InputOffset()
	token, err := v.decoder.Token()
	return token, v.explain(err)
}

// more reports whether the array or object that was opened has another element. It
// says false, too, where the stream breaks off; the token read next then says why.
func (v *valueReader) more() bool {
	v.begin = v.decoder.InputOffset()
	return v.decoder.More()
}

// recycle frees the buffer if the last value made it large. Only between values at
// the top level of the stream: a json.Decoder that is inside one cannot be replaced.
func (v *valueReader) recycle() {
	if v.decoder.InputOffset()-v.begin < recycleBytes {
		return
	}
	// Buffered cannot fail: it reads from memory.
	ahead, _ := io.ReadAll(v.decoder.Buffered())
	v.pending = append(ahead, v.pending...)
	v.restart()
}

func (v *valueReader) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case v.failure != nil:
		return v.failure
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}
