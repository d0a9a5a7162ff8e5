package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchmirror/cache/sharding"
)

// Leases is a store of leases of package sharding. All leases are in the value of one key, because a bucket cannot read
// several keys at one point in time. NewLeases returns one. Its methods may be called concurrently.
type Leases struct {
	kv  jetstream.KeyValue
	key string
}

var _ sharding.Leases = (*Leases)(nil)

// NewLeases returns a store in a key of a bucket. No other program may write this key. Each call of a method writes,
// even List, since only a conditional write proves that the state read was the newest.
func NewLeases(kv jetstream.KeyValue, key string) *Leases { return &Leases{kv, key} }

// List implements sharding.Leases.
func (l *Leases) List(ctx context.Context) (all []sharding.Lease, err error) {
	err = l.change(ctx, func(stored *sharding.MemoryLeases) (err error) {
		all, err = stored.List(ctx)
		return err
	})
	return all, err
}

// Put implements sharding.Leases.
func (l *Leases) Put(ctx context.Context, lease sharding.Lease) (version string, err error) {
	err = l.change(ctx, func(stored *sharding.MemoryLeases) (err error) {
		version, err = stored.Put(ctx, lease)
		return err
	})
	return version, err
}

// Delete implements sharding.Leases.
func (l *Leases) Delete(ctx context.Context, lease sharding.Lease) error {
	return l.change(ctx, func(stored *sharding.MemoryLeases) error { return stored.Delete(ctx, lease) })
}

// change applies call to the stored leases and writes them. It retries if others have written meanwhile. If call
// conflicts, nothing is written: the state read may be old, but the caller lists after a conflict anyway.
func (l *Leases) change(ctx context.Context, call func(*sharding.MemoryLeases) error) error {
	for {
		stored, revision := &sharding.MemoryLeases{}, uint64(0)
		entry, err := l.kv.Get(ctx, l.key)
		switch {
		case err == nil:
			revision = entry.Revision()
			err = json.Unmarshal(entry.Value(), stored)
		case errors.Is(err, jetstream.ErrKeyNotFound):
			err = ctx.Err()
		}
		if err == nil {
			err = call(stored)
		}
		if err != nil {
			return fmt.Errorf("leases in key %q: %w", l.key, err)
		}
		text, err := json.Marshal(stored)
		switch {
		case err != nil:
		case revision == 0: // unlike Update, Create also replaces the mark of a deletion
			_, err = l.kv.Create(ctx, l.key, text)
		default:
			_, err = l.kv.Update(ctx, l.key, text, revision)
		}
		switch {
		case err == nil:
			return nil
		case !isConflict(err) || ctx.Err() != nil:
			return fmt.Errorf("leases in key %q: %w", l.key, err)
		}
	}
}

// isConflict reports whether a write was refused because others had written. Replicated buckets have a separate code
// for this.
func isConflict(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
