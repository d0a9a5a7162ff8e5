package wire

import (
	"io"
	"sync"
)

// sharedBufferSize is the size of the buffers that windows borrow while they have unread bytes:
// enough for usual objects, so that growing is rare, and for many small ones in one read.
const sharedBufferSize = 64 << 10

var sharedBuffers = sync.Pool{New: func() any { return new([sharedBufferSize]byte) }}

// Initial buffer sizes of an encoding. A watch is idle most of the time, and there may be
// thousands; few lists are read at a time.
const (
	FirstOfWatch = 1 << 10
	FirstOfList  = 32 << 10
)

// Window is the unread part of a stream. It grows up to a limit while nothing is consumed, and its
// buffer is reused. Without unread bytes it has only its first buffer, because there may be ten
// thousand idle watches.
//
//	           Unread
//	        ┌───────────┐
//	│ read  │ a value…  │ free │ … not read yet
//	        start       end
type Window struct {
	source     io.Reader
	buffer     []byte
	start, end int
	firstSize  int // size of the first buffer
	limit      int // upper bound for Unread
	err        error

	firstBuffer  []byte                  // the first buffer
	sharedBuffer *[sharedBufferSize]byte // the borrowed array that buffer is a part of, or nil
}

// NewWindow returns a window onto source. Its buffer has first bytes initially, and at most the
// larger of first and limit.
func NewWindow(source io.Reader, first, limit int) *Window {
	return &Window{source: source, firstSize: max(first, 1), limit: limit}
}

// Unread returns the bytes that were read and not consumed, valid until the next call of Fill, Need
// or Consume.
func (w *Window) Unread() []byte { return w.buffer[w.start:w.end] }

// Consume removes n unread bytes from the front. If none is left, it releases a buffer that has
// grown.
func (w *Window) Consume(n int) {
	w.start += n
	if w.start < w.end {
		return
	}
	w.start = 0
	w.end = 0
	w.replaceBuffer(w.firstBuffer)
}

// Fill reads at least one more byte. It returns io.EOF if there is none, a *LimitError if the limit
// is reached, or the source's error. All later calls return the same error.
func (w *Window) Fill() error { return w.Need(w.end - w.start + 1) }

// Need reads until at least n bytes are unread. If the source ends before, it returns io.EOF, even
// if some bytes are unread. Memory is allocated as bytes arrive, so a large n alone costs nothing.
func (w *Window) Need(n int) error {
	if n > w.limit && w.end-w.start < n {
		_ = w.fail(&LimitError{What: LimitValue, Limit: w.limit})
	}
	for w.end-w.start < n {
		if w.err != nil {
			return w.err
		}
		w.makeRoom()
		if err := w.read(); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom ensures at least one free byte after end, and more if that is cheap, to avoid tiny
// reads.
func (w *Window) makeRoom() {
	unread := w.Unread()
	if w.end < len(w.buffer) && w.start < len(unread) {
		return // moving more bytes than were consumed would cost too much over time
	}
	buffer := w.buffer
	oversized := len(buffer) > sharedBufferSize && len(unread) < sharedBufferSize/2
	if len(buffer) == len(unread) || oversized {
		w.grow(len(unread) + 1)
		return
	}
	w.start = 0
	w.end = copy(buffer, unread)
}

// grow moves the unread bytes into a buffer for at least n bytes, at most the limit. Beyond the
// shared size it doubles, so that a value of any length is copied a constant number of times.
func (w *Window) grow(n int) {
	unread := w.Unread()
	maxSize := max(w.limit, w.firstSize)
	var buffer []byte
	var shared *[sharedBufferSize]byte
	switch {
	case n <= w.firstSize:
		if w.firstBuffer == nil {
			w.firstBuffer = make([]byte, w.firstSize)
		}
		buffer = w.firstBuffer
	case n <= sharedBufferSize:
		shared = sharedBuffers.Get().(*[sharedBufferSize]byte)
		buffer = shared[:min(sharedBufferSize, maxSize)]
	default:
		buffer = make([]byte, min(2*n, maxSize))
	}
	w.start = 0
	w.end = copy(buffer, unread)
	w.replaceBuffer(buffer)
	w.sharedBuffer = shared
}

func (w *Window) replaceBuffer(buffer []byte) {
	if w.sharedBuffer != nil {
		sharedBuffers.Put(w.sharedBuffer)
		w.sharedBuffer = nil
	}
	w.buffer = buffer
}

// maxEmptyReads bounds consecutive reads that return neither bytes nor an error.
const maxEmptyReads = 100

func (w *Window) read() error {
	for range maxEmptyReads {
		n, err := w.source.Read(w.buffer[w.end:])
		w.end += n
		if err != nil {
			w.err = err
		}
		switch {
		case n > 0:
			return nil // bytes that came with an error are used first
		case err != nil:
			return err
		}
	}
	return w.fail(io.ErrNoProgress)
}

func (w *Window) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}
