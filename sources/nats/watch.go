package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache/sources"
)

// behindLimit is how often in a row a watch may be silent although the bucket has newer messages.
const behindLimit = 2

// keyWatch is one watch.
type keyWatch struct {
	*reader
	// revision is the one up to which all changes have been read.
	revision uint64
	// behind counts consecutive silences in which the bucket had newer messages.
	behind int
}

// Watch implements sources.KeyValueStore.
func (s *store) Watch(ctx context.Context, after uint64) (sources.KeyWatch, error) {
	r, err := s.read(ctx, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1})
	if err != nil {
		return nil, err
	}
	// After the consumer was created: a message removed before is noticed here; of a key removed later the consumer has
	// this or a later message.
	end, err := s.end(ctx)
	if err == nil {
		err = s.continues(after, end)
	}
	if err == nil {
		err = s.isComplete(ctx, after)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return &keyWatch{reader: r, revision: after}, nil
}

// continues checks that the bucket is the same and has reached a revision.
func (s *store) continues(after uint64, end end) error {
	switch {
	case end.another:
		return apierrors.NewResourceExpired(fmt.Sprintf("nats: bucket %q was created again", s.bucket))
	case after > end.version:
		return sources.TooLarge(after, end.version)
	}
	return nil
}

// isComplete checks that the messages after a revision lead from its keys to the bucket's: each key of the revision
// still has a message, if only the mark of its deletion.
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
		return apierrors.NewResourceExpired(fmt.Sprintf("nats: bucket %q: the keys at revision %d are not known any more", s.bucket, after))
	case !isSubset(keys, names):
		return s.vanished()
	}
	return nil
}

func (s *store) vanished() error {
	return apierrors.NewResourceExpired(fmt.Sprintf("nats: bucket %q: keys were removed without a message", s.bucket))
}

// Next implements sources.KeyWatch.
func (w *keyWatch) Next(ctx context.Context) (uint64, []sources.KeyChange, error) {
	for {
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
		w.behind, w.revision = 0, m.Revision
		change, redundant := w.store.keys.change(m)
		if redundant {
			return w.revision, nil, nil
		}
		return w.revision, []sources.KeyChange{change}, nil
	}
}

// compare compares the watch with the bucket after a silence. It returns true if the watch has everything.
func (w *keyWatch) compare(ctx context.Context) (reached bool, err error) {
	s := w.store
	known := s.keys.len()
	end, err := s.end(ctx)
	if err == nil {
		err = s.continues(w.revision, end)
	}
	switch {
	case err != nil:
		return false, err
	case w.revision >= end.newest && uint64(known) > end.State.NumSubjects:
		return false, s.vanished()
	case w.revision >= end.newest:
		w.revision, w.behind = max(w.revision, end.version), 0
		return true, nil
	}
	if w.behind++; w.behind > behindLimit {
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf(
			"nats: bucket %q: revision %d does not come, the watch has %d", s.bucket, end.newest, w.revision))
	}
	return false, nil
}

// Stop implements sources.KeyWatch.
func (w *keyWatch) Stop() { w.stop() }
