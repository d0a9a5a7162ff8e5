package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache/sources"
)

// comparisonPause is how many times as long as a comparison of all keys the time until the next one
// is at least. With a million keys one takes some seconds.
const comparisonPause = 20

// behindLimit is how often in a row a watch may be silent although the bucket has newer messages.
const behindLimit = 2

// keyWatch is one watch.
type keyWatch struct {
	*reader
	// revision is the one up to which all changes have been read.
	revision uint64
	// behind counts consecutive silences in which the bucket had newer messages.
	behind int
	// compared is the content of the bucket's stream when its keys were last compared.
	compared content
	// nextComparison is when they are compared if the watch is not silent.
	nextComparison time.Time
}

// content identifies what a stream contains: a written message increases the last sequence, a
// removed one decreases the number of messages.
type content struct{ last, messages uint64 }

func contentOf(e end) content { return content{e.State.LastSeq, e.State.Msgs} }

// Watch implements sources.KeyValueStore.
func (s *store) Watch(ctx context.Context, after uint64) (sources.KeyWatch, error) {
	r, err := s.read(
		ctx,
		jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:   after + 1,
		},
	)
	if err != nil {
		return nil, err
	}
	// After the consumer was created: a message removed before is noticed here; of a key removed
	// later the consumer has this or a later message.
	end, err := s.end(ctx)
	if err == nil {
		err = s.continues(ctx, after, end)
	}
	if err == nil {
		err = s.isComplete(ctx, after)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return &keyWatch{
		reader:         r,
		revision:       after,
		compared:       contentOf(end),
		nextComparison: time.Now().Add(s.progress),
	}, nil
}

// continues checks that a revision is of the same bucket, which has reached it.
func (s *store) continues(ctx context.Context, after uint64, end end) error {
	switch {
	case !s.keys.isShown(after):
		return s.anotherBucket()
	case after > end.version:
		return sources.TooLarge(after, end.version)
	}
	return s.hasMessages(ctx, after)
}

func (s *store) anotherBucket() error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("nats: bucket %q was created again or restored", s.bucket))
}

// hasMessages checks that the bucket has the last messages up to a revision or later ones of their
// keys. Otherwise it was restored from an older copy, or a message has expired before an older one
// of its key.
func (s *store) hasMessages(ctx context.Context, after uint64) error {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for _, message := range s.keys.messagesUpTo(after) {
		last, err := s.lastOf(limited, message)
		if err != nil {
			return err
		}
		if last.Sequence == message.revision {
			break
		}
	}
	for _, message := range s.keys.expired(after) {
		last, err := s.lastOf(limited, message)
		if err != nil {
			return err
		}
		if last.Sequence != message.revision {
			s.keys.removed(message)
		}
	}
	return nil
}

// lastOf returns the last message of a known message's key. It fails if that is an older one.
func (s *store) lastOf(ctx context.Context, known messageID) (storedMessage, error) {
	last, err := s.lastMessage(ctx, s.prefix+known.key)
	if err == nil && isOlder(last, known) {
		s.keys.forget()
		err = s.anotherBucket()
	}
	return last, err
}

// isOlder returns whether the last message of a key is older than a known one, or another in its
// place.
func isOlder(last storedMessage, known messageID) bool {
	if last.Sequence == known.revision {
		return !last.Time.Equal(known.time)
	}
	return last.Sequence > 0 && last.Sequence < known.revision
}

// isComplete checks that the messages after a revision lead from its keys to the bucket's: each key
// of the revision still has a message, if only the mark of its deletion.
func (s *store) isComplete(ctx context.Context, after uint64) error {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names, err := s.names(limited)
	if err != nil {
		return err
	}
	keys, known := s.keys.at(after)
	switch {
	case !known:
		return apierrors.NewResourceExpired(fmt.Sprintf(
			"nats: bucket %q: the keys at revision %d are not known any more", s.bucket, after))
	case !isSubset(keys, names):
		return s.vanished()
	}
	return nil
}

func (s *store) vanished() error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("nats: bucket %q: keys were removed without a message", s.bucket))
}

// Next implements sources.KeyWatch.
func (w *keyWatch) Next(ctx context.Context) (uint64, []sources.KeyChange, error) {
	revision, changes, err := w.read(ctx)
	if err == nil && !w.store.keys.show(revision, w.epoch) {
		err = w.store.anotherBucket()
	}
	return revision, changes, err
}

func (w *keyWatch) read(ctx context.Context) (uint64, []sources.KeyChange, error) {
	for {
		if err := w.compareIfBusy(ctx); err != nil {
			return 0, nil, err
		}
		m, err := w.next(ctx, w.store.progress)
		if errors.Is(err, errSilent) {
			if reached, err := w.compare(ctx); reached || err != nil {
				return w.revision, nil, err
			}
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		w.behind = 0
		w.revision = m.Revision
		change, redundant := w.store.keys.change(m)
		if redundant {
			return w.revision, nil, nil
		}
		return w.revision, []sources.KeyChange{change}, nil
	}
}

// compareIfBusy compares the keys of a watch that has not been silent for so long.
func (w *keyWatch) compareIfBusy(ctx context.Context) error {
	if time.Now().Before(w.nextComparison) {
		return nil
	}
	end, err := w.end(ctx)
	if err != nil {
		return err
	}
	return w.compareKeys(ctx, end)
}

// end returns the state of the watch's bucket.
func (w *keyWatch) end(ctx context.Context) (end, error) {
	end, err := w.store.end(ctx)
	switch {
	case err != nil:
	case end.epoch != w.epoch:
		err = w.store.anotherBucket()
	case w.revision > end.version:
		err = sources.TooLarge(w.revision, end.version)
	}
	return end, err
}

// compare compares the watch with the bucket after a silence. It returns true if the watch has
// everything.
func (w *keyWatch) compare(ctx context.Context) (reached bool, err error) {
	end, err := w.end(ctx)
	if err != nil {
		return false, err
	}
	if w.revision < end.newest {
		w.behind++
		if w.behind > behindLimit {
			err = apierrors.NewServiceUnavailable(fmt.Sprintf(
				"nats: bucket %q: revision %d does not come, the watch has %d",
				w.store.bucket,
				end.newest,
				w.revision,
			))
		}
		return false, err
	}
	w.behind = 0
	w.revision = max(w.revision, end.version)
	return true, w.compareKeys(ctx, end)
}

// compareKeys compares the keys with the bucket's, unless its content has not changed since they
// were last compared. Numbers of keys prove nothing: the stream also counts deleted keys and those
// of other filters.
func (w *keyWatch) compareKeys(ctx context.Context, end end) error {
	began := time.Now()
	if contentOf(end) != w.compared {
		if err := w.store.hasMessages(ctx, w.revision); err != nil {
			return err
		}
		if err := w.store.isComplete(ctx, w.revision); err != nil {
			return err
		}
	}
	w.compared = contentOf(end)
	pause := max(w.store.progress, comparisonPause*time.Since(began))
	w.nextComparison = time.Now().Add(pause)
	return nil
}

// Stop implements sources.KeyWatch.
func (w *keyWatch) Stop() { w.stop() }
