package kubeapi

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// expectation is when a server that works would have sent something.
type expectation struct {
	// bytes is true while the server has something to send: during a list and the initial events of
	// a streaming list.
	bytes bool
	// isList is true for a list, whose caller may lose interest: only a deadline shows that it was
	// too slow.
	isList bool
	// lifetime is the time after which the server ends a watch; 0 means never.
	lifetime time.Duration
}

// expectationOf returns the expectation of a call.
func expectationOf(v verb, options metav1.ListOptions) expectation {
	if v == verbList {
		return expectation{bytes: true, isList: true}
	}
	e := expectation{bytes: ptr.Deref(options.SendInitialEvents, false)}
	seconds := ptr.Deref(options.TimeoutSeconds, 0)
	if seconds > 0 && seconds < int64(maxLifetime/time.Second) {
		e.lifetime = time.Duration(seconds) * time.Second
	}
	return e
}

// maxLifetime is far from an overflow of time.Duration.
const maxLifetime = 10 * 365 * 24 * time.Hour

// isOnDeadConnection reports whether the request was given up because the server, which owed
// something, was silent, and the connection has brought nothing for other requests either.
func (r *response) isOnDeadConnection(c *connection) bool {
	silence := c.silence()
	if r.stall.err() != nil {
		return silence >= min(r.stall.limit, silentTimeout)
	}
	if silence < silentTimeout {
		return false
	}
	if r.neverCompleted.Load() {
		return true
	}
	ended := r.ctx.Err()
	switch {
	case ended == nil:
		return false
	case r.expects.isList:
		return ended == context.DeadlineExceeded
	case r.expects.bytes:
		return true
	}
	return r.expects.lifetime > 0 && time.Since(r.sentAt) >= r.expects.lifetime+silentTimeout
}

// discardDeadConnection closes the connection if it is dead, and all idle ones, which may be as
// dead: the next request uses a new one.
func (r *response) discardDeadConnection() {
	c := r.use.get()
	if c == nil || !r.isOnDeadConnection(c) {
		return
	}
	c.discard()
	r.source.client.CloseIdleConnections()
	now := time.Now()
	r.source.discardedAt.Store(&now)
}

// noticeDelay is how long a transport may take to notice that a connection is closed.
const noticeDelay = time.Second

// takeDiscard returns, once after each discard, whether that was so recent that the transport may
// have sent a failed request on the discarded connection. A later failure belongs to the caller: to
// repeat a watch then would begin its timeout again, and the caller would give it up long before.
func (lw *ListerWatcher) takeDiscard() (isRecent bool) {
	discarded := lw.discardedAt.Swap(nil)
	return discarded != nil && time.Since(*discarded) < noticeDelay
}
