package wire

import (
	"io"
	"sync"
)

// sharedBytes is the size of the buffers that windows borrow from one another while
// something is unread: room for the objects that are usual, so that growing a buffer is
// a rarity, and one read call for many small ones.
const sharedBytes = 64 << 10

var sharedBuffers = sync.Pool{New: func() any { return new([sharedBytes]byte) }}

// How large the buffers are through which bodies are read to begin with, where an encoding
// has no reason for others. A watch spends its life waiting, and there may be thousands; of
// lists few are read at a time, and at full speed.
const (
	FirstOfWatch = 1 << 10
	FirstOfList  = 32 << 10
)

// Window is the part of a stream that is being looked at. It grows as long as nothing
// is consumed, up to a limit, and its buffer is reused. While nothing is unread it holds
// no more than it began with: most of a watch's life is waiting, and there may be ten
// thousand of them.
//
//	           Unread
//	        ┌───────────┐
//	│ read  │ a value…  │ free │ … not read yet
//	        start       end
type Window struct {
	source     io.Reader
	buffer     []byte
	start, end int
	first      int // size of the buffer to begin with
	limit      int // Unread is never asked to grow beyond
	failure    error

	small  []byte             // the buffer to begin with
	shared *[sharedBytes]byte // what buffer is a part of, if it is borrowed
}

// NewWindow makes a window onto source. It holds first bytes to begin with, and never
// more than the larger of first and limit.
func NewWindow(source io.Reader, first, limit int) *Window {
	return &Window{source: source, first: max(first, 1), limit: limit}
}

// Unread is what was read and not consumed, good until the next call of Fill, Need or
// Consume.
func (w *Window) Unread() []byte { return w.buffer[w.start:w.end] }

// Consume takes n bytes, at most those unread, off the front. If nothing is left, a
// buffer that has grown is given up.
func (w *Window) Consume(n int) {
	w.start += n
	if w.start < w.end {
		return
	}
	w.start, w.end = 0, 0
	w.replaceBuffer(w.small)
}

// Fill reads at least one more byte behind those unread. It returns io.EOF if there is
// none, a *LimitError if as many as the limit are unread already, or the source's
// error; any error stays.
func (w *Window) Fill() error { return w.Need(w.end - w.start + 1) }

// Need reads until at least n bytes are unread. If the source ends before, it returns
// io.EOF, whether or not something is unread. Memory is allocated as the bytes come, so
// that an n which nothing stands behind costs nothing.
func (w *Window) Need(n int) error {
	if n > w.limit && w.end-w.start < n {
		w.fail(&LimitError{What: LimitValue, Limit: w.limit})
	}
	for w.end-w.start < n {
		if w.failure != nil {
			return w.failure
		}
		w.makeRoom()
		if err := w.read(); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom arranges for at least one byte to be free behind end, and for as many as can
// be had cheaply, so that the source is not asked for crumbs.
func (w *Window) makeRoom() {
	unread := w.Unread()
	if w.end < len(w.buffer) && w.start < len(unread) {
		return // to move more than has been consumed would cost too much in the long run
	}
	buffer := w.buffer
	outgrown := len(buffer) > sharedBytes && len(unread) < sharedBytes/2
	if len(buffer) == len(unread) || outgrown {
		w.grow(len(unread) + 1)
		return
	}
	w.start, w.end = 0, copy(buffer, unread)
}

// grow moves the unread bytes into a buffer for at least n bytes, which is the limit at
// most. Beyond the borrowed size it is doubled, so that a value of any length is copied
// a constant number of times.
func (w *Window) grow(n int) {
	unread, most := w.Unread(), max(w.limit, w.first)
	var buffer []byte
	var shared *[sharedBytes]byte
	switch {
	case n <= w.first:
		if w.small == nil {
			w.small = make([]byte, w.first)
		}
		buffer = w.small
	case n <= sharedBytes:
		shared = sharedBuffers.Get().(*[sharedBytes]byte)
		buffer = shared[:min(sharedBytes, most)]
	default:
		buffer = make([]byte, min(2*n, most))
	}
	w.start, w.end = 0, copy(buffer, unread)
	w.replaceBuffer(buffer)
	w.shared = shared
}

func (w *Window) replaceBuffer(buffer []byte) {
	if w.shared != nil {
		sharedBuffers.Put(w.shared)
		w.shared = nil
	}
	w.buffer = buffer
}

// mostEmptyReads is how often a source may return nothing and no error in a row.
const mostEmptyReads = 100

func (w *Window) read() error {
	for range mostEmptyReads {
		n, err := w.source.Read(w.buffer[w.end:])
		w.end += n
		if err != nil {
			w.failure = err
		}
		switch {
		case n > 0:
			return nil // what came with the error counts first
		case err != nil:
			return err
		}
	}
	return w.fail(io.ErrNoProgress)
}

func (w *Window) fail(err error) error {
	if w.failure == nil {
		w.failure = err
	}
	return w.failure
}
