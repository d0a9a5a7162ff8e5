package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchmirror/cache/sources"
)

// longestHeartbeat is the longest one that the client accepts.
const longestHeartbeat = 30 * time.Second

// removeLimit bounds the wait for the removal of a watch's consumer.
const removeLimit = time.Second

// message is a message of a bucket.
type message struct {
	sources.KeyValue
	deletion bool
}

// reader reads messages in order through its own consumer, which the server keeps in memory. It
// fails if a message is missing or the connection is lost. The client library's ordered consumer
// would start again instead, but a watch must first find out whether its version has expired.
type reader struct {
	store *store
	// name is the consumer's.
	name     string
	messages jetstream.MessagesContext
	statuses chan natsgo.Status
	// received has the received messages, until done is closed.
	received chan delivery
	stopping chan struct{}
	done     chan struct{}
	// sequence is the consumer sequence of the last message.
	sequence uint64
	// epoch is that of the bucket.
	epoch int
}

type delivery struct {
	msg jetstream.Msg
	err error
}

// read starts a reader with a deliver policy.
func (s *store) read(ctx context.Context, config jetstream.ConsumerConfig) (*reader, error) {
	if err := s.connected(); err != nil {
		return nil, err
	}
	config.AckPolicy = jetstream.AckNonePolicy
	config.MemoryStorage = true
	config.InactiveThreshold = consumerLife
	config.Replicas = 1
	config.FilterSubject = s.subject
	s.removeConsumers(ctx)
	config.Name = rand.Text()
	epoch := s.keys.epochNow()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	consumer, err := s.js.CreateConsumer(limited, s.stream, config)
	if err != nil {
		s.left.add(config.Name) // it may exist: only the response may have been lost
		return nil, s.asStatus(err)
	}
	r := &reader{
		store:    s,
		name:     config.Name,
		received: make(chan delivery),
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
		epoch:    epoch,
		statuses: s.js.Conn().StatusChanged(
			natsgo.DISCONNECTED, natsgo.RECONNECTING, natsgo.CLOSED),
	}
	r.messages, err = consumer.Messages(
		jetstream.PullHeartbeat(min(s.timeout/2, longestHeartbeat)),
		jetstream.PullExpiry(3*s.timeout))
	if err != nil {
		close(r.done)
		r.stop()
		return nil, s.asStatus(err)
	}
	go r.receive()
	return r, nil
}

// receive passes on the consumer's messages until it ends.
func (r *reader) receive() {
	defer close(r.done)
	for {
		msg, err := r.messages.Next()
		select {
		case r.received <- delivery{msg, err}:
		case <-r.stopping:
			return
		}
		if err != nil {
			return
		}
	}
}

// errSilent: no message arrived in time.
var errSilent = errors.New("no message")

// next waits for a message. If none arrives within the time, the error wraps errSilent.
func (r *reader) next(ctx context.Context, within time.Duration) (message, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case d := <-r.received:
		if d.err != nil {
			return message{}, r.store.asStatus(d.err)
		}
		return r.message(d.msg)
	case <-r.statuses:
		return message{}, r.store.asStatus(errors.New("the connection was lost"))
	case <-timer.C:
		return message{}, fmt.Errorf(
			"nats: bucket %q: %w within %s", r.store.bucket, errSilent, within)
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

// message converts a message and checks that it is the next one.
func (r *reader) message(msg jetstream.Msg) (m message, err error) {
	about, err := msg.Metadata()
	if err != nil {
		return m, r.store.asStatus(err)
	}
	r.sequence++
	if about.Sequence.Consumer != r.sequence {
		return m, r.store.asStatus(fmt.Errorf(
			"message %d came where %d was expected", about.Sequence.Consumer, r.sequence))
	}
	m.KeyValue = sources.KeyValue{
		Key:      strings.TrimPrefix(msg.Subject(), r.store.prefix),
		Value:    msg.Data(),
		Revision: about.Sequence.Stream,
	}
	header := msg.Headers()
	operation := header.Get("KV-Operation")
	isMarker := operation == "" && header.Get(jetstream.MarkerReasonHeader) != ""
	m.deletion = operation == "DEL" || operation == "PURGE" || isMarker
	id := messageID{key: m.Key, revision: m.Revision, time: about.Timestamp}
	if operation != "PURGE" && !isMarker { // these have no older message
		id.expires = expiryOf(header.Get(jetstream.MsgTTLHeader), about.Timestamp)
	}
	if !r.store.keys.read(id, r.epoch) {
		return m, r.store.anotherBucket()
	}
	return m, nil
}

// expiryOf returns when a message with a TTL expires, zero for never.
func expiryOf(ttl string, written time.Time) time.Time {
	if seconds, err := strconv.ParseUint(ttl, 10, 32); err == nil {
		ttl = fmt.Sprint(seconds, "s")
	}
	age, err := time.ParseDuration(ttl)
	if err != nil || age <= 0 {
		return time.Time{}
	}
	return written.Add(age)
}

// stop ends the reader, waits for its goroutine and removes the consumer. If that fails, a later
// reader removes it, or the server after consumerLife.
func (r *reader) stop() {
	close(r.stopping)
	if r.messages != nil {
		r.messages.Stop()
	}
	<-r.done
	r.store.js.Conn().RemoveStatusListener(r.statuses)
	r.store.removeConsumers(context.Background(), r.name)
}
