package nats

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// keptConsumers bounds the consumers that are to be removed. The server removes others when they
// have not been used for consumerLife.
const keptConsumers = 100

// leftConsumers are the names of consumers that could not be removed: without a connection, or
// because the response to their creation was lost. While connections are lost again and again, they
// would accumulate at the server.
type leftConsumers struct {
	mu    sync.Mutex
	names []string
}

func (l *leftConsumers) add(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, names...)
	excess := max(len(l.names)-keptConsumers, 0)
	l.names = l.names[excess:]
}

func (l *leftConsumers) takeAll() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = nil
	return names
}

// removeConsumers removes consumers, and those that are left from before. It takes at most
// removeLimit.
func (s *store) removeConsumers(ctx context.Context, names ...string) {
	s.left.add(names...)
	if s.connected() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	all := s.left.takeAll()
	for i, name := range all {
		err := s.js.DeleteConsumer(ctx, s.stream, name)
		isGone := errors.Is(err, jetstream.ErrConsumerNotFound) ||
			errors.Is(err, jetstream.ErrStreamNotFound)
		switch {
		case err == nil, isGone:
		case s.connected() != nil:
			s.left.add(all[i:]...)
			return
		default: // the server does not answer, perhaps because it is not permitted
			s.left.add(all[i+1:]...)
			return
		}
	}
}
