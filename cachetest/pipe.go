package cachetest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeSize is the number of bytes that one direction of a connection buffers before writes block.
// Unlike net.Pipe, it lets both ends write first, as both sides of HTTP may.
const pipeSize = 64 << 10

// pipe is one direction of a connection. It waits only on channels, so that virtual time can
// advance.
type pipe struct {
	mu       sync.Mutex
	data     []byte
	quota    int  // bytes that may still be written; negative: any number
	frozen   bool // neither bytes nor the end arrive
	noReader bool
	noWriter bool
	reset    bool          // cut; its bytes are lost
	changed  chan struct{} // closed and replaced whenever a field changes
}

func newPipe(quota int) *pipe {
	return &pipe{quota: quota, changed: make(chan struct{})}
}

// change changes the pipe and wakes both ends.
func (p *pipe) change(alter func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	alter()
	p.wakeLocked()
}

func (p *pipe) wakeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) read(b []byte, d *deadline) (int, error) {
	for {
		passed := d.passedChan()
		p.mu.Lock()
		switch {
		case p.reset:
			p.mu.Unlock()
			return 0, syscall.ECONNRESET
		case p.noReader:
			p.mu.Unlock()
			return 0, net.ErrClosed
		case isClosed(passed):
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case !p.frozen && len(p.data) > 0:
			n := copy(b, p.data)
			p.data = p.data[n:]
			p.wakeLocked()
			p.mu.Unlock()
			return n, nil
		case !p.frozen && p.quota == 0:
			p.mu.Unlock()
			return 0, syscall.ECONNRESET
		case !p.frozen && p.noWriter:
			p.mu.Unlock()
			return 0, io.EOF
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-passed:
		}
	}
}

func (p *pipe) write(b []byte, d *deadline) (int, error) {
	written := 0
	for {
		passed := d.passedChan()
		p.mu.Lock()
		switch {
		case p.reset || p.quota == 0:
			p.mu.Unlock()
			return written, syscall.ECONNRESET
		case p.noWriter:
			p.mu.Unlock()
			return written, net.ErrClosed
		case p.noReader:
			p.mu.Unlock()
			return written, syscall.EPIPE
		case isClosed(passed):
			p.mu.Unlock()
			return written, os.ErrDeadlineExceeded
		}
		if n := p.roomLocked(len(b) - written); n > 0 {
			p.data = append(p.data, b[written:written+n]...)
			written += n
			if p.quota > 0 {
				p.quota -= n
			}
			p.wakeLocked()
		}
		changed := p.changed
		cut := p.quota == 0
		p.mu.Unlock()
		if written == len(b) && !cut {
			return written, nil
		}
		if cut {
			continue
		}
		select {
		case <-changed:
		case <-passed:
		}
	}
}

// roomLocked returns how many of n bytes can be written now.
func (p *pipe) roomLocked(n int) int {
	n = min(n, pipeSize-len(p.data))
	if p.quota >= 0 {
		n = min(n, p.quota)
	}
	return n
}

// deadline is a deadline that may be moved while a call waits for it.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{}
}

func newDeadline() *deadline { return &deadline{passed: make(chan struct{})} }

// set moves the deadline; the zero time means none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if isClosed(d.passed) {
		d.passed = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		close(d.passed)
		return
	}
	var own *time.Timer
	own = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// A replaced timer may still fire.
		if d.timer == own {
			d.timer = nil
			close(d.passed)
		}
	})
	d.timer = own
}

func (d *deadline) passedChan() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
