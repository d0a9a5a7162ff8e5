// Package nats makes a source of a key-value bucket of NATS JetStream.
//
// The source lists the last value of each key, and watches the bucket's stream from there, so a
// cache converges to the bucket's content. The program's function decodes the values:
//
//	source := nats.NewSource(js, "machines", sources.Values(decodeMachine), nats.Options{})
//	machines := cache.NewTypedInformer(source, cache.InformerConfig[*sources.Entry[Machine]]{})
//
// Resource versions are sequences of the bucket's stream. WaitForResourceVersion with the revision
// that a Put returned waits until the cache has the write. Deletions are delivered with the last
// value; the source keeps one value for each key. Objects have no UID, since a bucket does not know
// when a key was created. Therefore a list after the first one delivers an update of every object,
// and a key that was deleted and created again is an update if only such a list shows it.
//
// A bucket removes old deletion markers. So before a watch is resumed, and at intervals while the
// bucket changes, the source compares the keys that it knows with those of the bucket. If a key has
// disappeared without a deletion marker, the version is expired, and a cache lists. So it is in a
// bucket that was created again or restored from an older copy.
// [docs/sources.md] has the guarantees, [docs/scaling.md] when to use it.
//
// [docs/scaling.md]: https://github.com/watchmirror/cache/blob/main/docs/scaling.md
// [docs/sources.md]: https://github.com/watchmirror/cache/blob/main/docs/sources.md
package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/option"
	"github.com/watchmirror/cache/sources"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultProgress = 30 * time.Second
	// consumerLife is the time after which the server removes an unused consumer, in case its
	// removal failed.
	consumerLife = time.Minute
	// quickRounds is how often a list checks for writes since its last message before it requests
	// the names of all keys.
	quickRounds = 3
)

// Options configures a source. All fields are optional.
type Options struct {
	// Filter limits the source to some keys, as in Watch of a bucket: "racks.*.machines" or
	// "racks.>". Default: all.
	Filter string
	// Timeout bounds the wait for a response, and the silence of a server that has more messages to
	// send for a list or a watch. Default: 10 seconds; at least 1 second.
	Timeout time.Duration
	// ProgressInterval is how long a watch may be silent before it compares its version with the
	// bucket's. The result is a bookmark. A watch also compares its keys so often, if the bucket has
	// changed. Default: 30 seconds.
	ProgressInterval time.Duration
}

// NewSource returns a source of the keys of a bucket. The text of a key before its first slash, if
// there is one, is the object's namespace, the rest its name. decode makes an object from a value;
// sources.Values returns such a function for types without metadata. NewSource starts no goroutine,
// and does not close the connection, which should have MaxReconnects(-1).
//
// A mirror is refused, and a bucket whose keys may disappear without a message: one with a TTL, or
// whose stream allows one for each message, without LimitMarkerTTL, and one whose stream has limits
// and discards old messages. An error of decode quarantines the object. NewSource panics if js or
// decode is nil, if the bucket has no name, if an option is negative, or if more than one Options
// are given.
func NewSource[T sources.Object](
	js jetstream.JetStream,
	bucket string,
	decode func(kv sources.KeyValue) (T, error),
	optional ...Options,
) *sources.KeyValueSource[T] {
	options := option.AtMostOne("nats: NewSource", optional)
	if js == nil || bucket == "" || options.Timeout < 0 || options.ProgressInterval < 0 {
		panic("nats: NewSource: js is nil, bucket is empty, or Options has a negative duration")
	}
	s := &store{
		js: js, bucket: bucket, stream: "KV_" + bucket, prefix: "$KV." + bucket + ".",
		timeout:  max(cmp.Or(options.Timeout, defaultTimeout), time.Second),
		progress: cmp.Or(options.ProgressInterval, defaultProgress),
		keys:     newKeyTable(),
	}
	s.subject = s.prefix + cmp.Or(options.Filter, ">")
	return sources.NewKeyValueSource(s, decode)
}

// store presents a bucket as a sources.KeyValueStore.
type store struct {
	js jetstream.JetStream
	// prefix is the prefix of the keys' subjects, subject matches the subjects of the source's
	// keys.
	bucket, stream, prefix, subject string
	timeout, progress               time.Duration
	keys                            *keyTable
	left                            leftConsumers
}

// TypeDescription names the objects in a log and on a status page.
func (s *store) TypeDescription() string { return "NATS bucket " + s.bucket + ", " + s.filter() }

// SourceStatus distinguishes the sources of a program.
func (s *store) SourceStatus() map[string]string {
	return map[string]string{"NATS bucket": s.bucket, "keys": s.filter()}
}

func (s *store) filter() string { return strings.TrimPrefix(s.subject, s.prefix) }

// List implements sources.KeyValueStore. It ignores the limit: a bucket has no old states for a
// second page.
func (s *store) List(
	ctx context.Context,
	keys sources.KeyRange,
	take func(revision uint64, kv sources.KeyValue) error,
) (revision uint64, more bool, err error) {
	if keys.After != "" {
		return 0, false, apierrors.NewBadRequest("continue: this source sends no such tokens")
	}
	state, revision, err := s.state(ctx)
	switch {
	case err != nil:
		return 0, false, err
	case keys.Revision > revision:
		return 0, false, sources.TooLarge(keys.Revision, revision)
	case keys.Revision > 0 && keys.Revision < revision:
		return 0, false, sources.Expired(keys.Revision, revision)
	}
	for _, kv := range state {
		if err := take(revision, kv); err != nil {
			return revision, false, err
		}
	}
	return revision, false, nil
}

// state reads the last value of each key.
func (s *store) state(
	ctx context.Context,
) (state map[string]sources.KeyValue, revision uint64, err error) {
	end, err := s.end(ctx)
	if err != nil {
		return nil, 0, err
	}
	state = map[string]sources.KeyValue{}
	revision = end.version
	if end.newest > 0 {
		last, err := s.readState(ctx, end.newest, state)
		if err != nil {
			return nil, 0, err
		}
		revision = max(revision, last)
	}
	if !s.keys.listed(revision, state, end.epoch) {
		return nil, 0, s.anotherBucket()
	}
	return state, revision, nil
}

// readState reads the last messages of all keys, and later messages until none is missing: the
// server removes a value that is overwritten before it was read, and its successor may come after
// the newest requested message.
func (s *store) readState(
	ctx context.Context, newest uint64, state map[string]sources.KeyValue,
) (last uint64, err error) {
	r, err := s.read(
		ctx, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
	if err != nil {
		return 0, err
	}
	defer r.stop()
	keys := map[string]bool{} // keys that were read, including deleted ones
	for round := 1; ; round++ {
		for last < newest {
			m, err := r.next(ctx, s.timeout)
			if errors.Is(err, errSilent) {
				err = s.asStatus(err)
			}
			if err != nil {
				return 0, err
			}
			last = m.Revision
			keys[m.Key] = true
			state[m.Key] = m.KeyValue
			if m.deletion {
				delete(state, m.Key)
			}
		}
		limited, cancel := context.WithTimeout(ctx, s.timeout)
		newest, err = s.newest(limited)
		whole := newest <= last
		if err == nil && !whole && round >= quickRounds {
			var names map[string]bool
			names, err = s.names(limited)
			whole = isSubset(names, keys)
		}
		cancel()
		if whole || err != nil {
			return last, err
		}
	}
}

// names returns the keys of which the bucket has a message, including deleted ones.
func (s *store) names(ctx context.Context) (map[string]bool, error) {
	stream, err := s.js.Stream(ctx, s.stream)
	if err != nil {
		return nil, s.asStatus(err)
	}
	about, err := stream.Info(ctx, jetstream.WithSubjectFilter(s.subject))
	if err != nil {
		return nil, s.asStatus(err)
	}
	names := make(map[string]bool, len(about.State.Subjects))
	for subject := range about.State.Subjects {
		names[strings.TrimPrefix(subject, s.prefix)] = true
	}
	return names, nil
}

func isSubset(keys, of map[string]bool) bool {
	for key := range keys {
		if !of[key] {
			return false
		}
	}
	return true
}

// end is the state of a bucket's stream.
type end struct {
	*jetstream.StreamInfo
	// version is the stream's last sequence. newest is that of the last message of the source's
	// keys, 0 if there is none; messages after it were removed or are of other keys.
	version, newest uint64
	// epoch is the bucket's.
	epoch int
}

// end asks the leader of the stream, since other members may lag behind.
func (s *store) end(ctx context.Context) (end, error) {
	if err := s.connected(); err != nil {
		return end{}, err
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	before := s.keys.newestSeen()
	stream, err := s.js.Stream(limited, s.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s.keys.forget() // it may be created again, or restored
	}
	if err != nil {
		return end{}, s.asStatus(err)
	}
	e := end{StreamInfo: stream.CachedInfo()}
	if err := s.check(e.Config); err != nil {
		return end{}, err
	}
	e.version = e.State.LastSeq
	e.epoch = s.keys.sawBucket(e.Created, e.version, before)
	e.newest, err = s.newest(limited)
	return e, err
}

// newest returns the sequence of the last message of the source's keys.
func (s *store) newest(ctx context.Context) (uint64, error) {
	last, err := s.lastMessage(ctx, s.subject)
	return last.Sequence, err
}

// storedMessage has fields of a message in the bucket's stream. Sequence is 0 if there is none.
type storedMessage struct {
	Sequence uint64    `json:"seq"`
	Time     time.Time `json:"time"`
}

// lastMessage returns the last message whose subject matches. A member that lags behind may respond
// to the client library's own request.
func (s *store) lastMessage(ctx context.Context, subject string) (storedMessage, error) {
	prefix := jetstream.DefaultAPIPrefix
	switch options := s.js.Options(); {
	case options.APIPrefix != "":
		prefix = strings.TrimSuffix(options.APIPrefix, ".") + "."
	case options.Domain != "":
		prefix = "$JS." + options.Domain + ".API."
	}
	request, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return storedMessage{}, err
	}
	answer, err := s.js.Conn().RequestWithContext(ctx, prefix+"STREAM.MSG.GET."+s.stream, request)
	if err != nil {
		return storedMessage{}, s.asStatus(err)
	}
	var last struct {
		Error   *jetstream.APIError `json:"error"`
		Message storedMessage       `json:"message"`
	}
	switch err := json.Unmarshal(answer.Data, &last); {
	case err != nil:
		return storedMessage{}, s.asStatus(err)
	case last.Error != nil && last.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return storedMessage{}, nil
	case last.Error != nil:
		return storedMessage{}, s.asStatus(last.Error)
	}
	return last.Message, nil
}

// check refuses a bucket from which the server removes keys without a message. It refuses a mirror,
// whose messages have the subjects of the mirrored bucket.
func (s *store) check(config jetstream.StreamConfig) error {
	switch {
	case config.Mirror != nil:
		return apierrors.NewBadRequest(fmt.Sprintf(
			"nats: bucket %q is a mirror of %s: use that bucket", s.bucket, config.Mirror.Name))
	case config.MaxAge > 0 && config.SubjectDeleteMarkerTTL == 0:
		return apierrors.NewBadRequest(fmt.Sprintf(
			"nats: bucket %q has a TTL without LimitMarkerTTL: keys end without a message",
			s.bucket))
	case config.AllowMsgTTL && config.SubjectDeleteMarkerTTL == 0:
		return apierrors.NewBadRequest(
			fmt.Sprintf("nats: bucket %q allows keys with a TTL without LimitMarkerTTL: "+
				"they end without a message", s.bucket),
		)
	case config.Discard == jetstream.DiscardOld && (config.MaxBytes > 0 || config.MaxMsgs > 0):
		return apierrors.NewBadRequest(
			fmt.Sprintf("nats: bucket %q discards old keys without a message", s.bucket))
	}
	return nil
}

// errNoConnection fails requests that the client would delay until it has reconnected.
var errNoConnection = errors.New("no connection")

// connected returns an error while there is no connection.
func (s *store) connected() error {
	if s.js.Conn().Status() != natsgo.CONNECTED {
		return s.asStatus(errNoConnection)
	}
	return nil
}

// asStatus translates a failed request into a Status for a reflector. ServiceUnavailable, for all
// other failures, makes it watch again.
func (s *store) asStatus(err error) error {
	switch status := s.js.Conn().Status(); {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "buckets"}, s.bucket)
	case status != natsgo.CONNECTED:
		return sources.Disconnected(
			fmt.Errorf("nats: bucket %q: %w, the client is %s", s.bucket, err, status))
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("nats: bucket %q: %v", s.bucket, err))
}
