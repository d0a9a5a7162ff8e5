package main

import (
	"bytes"
	"strings"
	"sync"
)

// What a worker says of one script is kept up to so many bytes of its beginning, where
// the cause stands, and of its end. The stacks of a whole bubble fit in.
const (
	remarksHead = 192 << 10
	remarksTail = 64 << 10
)

// remarks is what a worker has said on standard error of its last script.
type remarks struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte
	skipped int
}

// Write takes all, and keeps what there is room for. It forgets what stands before the
// last newScript.
func (r *remarks) Write(p []byte) (int, error) {
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

func (r *remarks) String() string {
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
