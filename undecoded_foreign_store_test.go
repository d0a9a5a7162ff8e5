package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What a store that is not ours is given for a deletion that could not be decoded.

// The error of a store that is not ours counts, also if another call would have
// succeeded. Fails if any error makes the reflector try again.
func TestAForeignStoresRefusalOfAnUndecodedDeletionIsNotSwallowed(t *testing.T) {
	store := &refusesOnce{errs: []error{errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 1, store.calls)
	store = &refusesOnce{errs: []error{KeyError{Err: errors.New("no tombstones")}, errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 2, store.calls)
}

type refusesOnce struct {
	foreign
	errs  []error
	calls int
}

func (r *refusesOnce) Delete(any) error {
	if r.calls++; r.calls > len(r.errs) {
		return nil
	}
	return r.errs[r.calls-1]
}
