package main

import (
	"bytes"
	"strings"
	"sync"
)

// The kept bytes of a worker's output for one script: of the beginning, which has the cause, and of the end.
// The stacks of a whole bubble fit.
const (
	remarksHead = 192 << 10
	remarksTail = 64 << 10
)

// workerOutput has a worker's standard error of its last script.
type workerOutput struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte
	skipped int
}

// Write keeps the output since the last newScript, up to the limits. It never fails.
func (r *workerOutput) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if i := bytes.LastIndexByte(p, newScript); i >= 0 {
		p = p[i+1:]
		r.head, r.tail, r.skipped = r.head[:0], r.tail[:0], 0
	}
	fits := min(len(p), remarksHead-len(r.head))
	r.head = append(r.head, p[:fits]...)
	r.tail = append(r.tail, p[fits:]...)
	if over := len(r.tail) - remarksTail; over > 0 {
		r.tail = append(r.tail[:0], r.tail[over:]...)
		r.skipped += over
	}
	return n, nil
}

func (r *workerOutput) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	text.Write(r.head)
	if r.skipped > 0 {
		text.WriteString("\n...\n")
	}
	text.Write(r.tail)
	return text.String()
}
