package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

const mebibyte = 1 << 20

// measured runs a trial in virtual time, in which the updates take none.
func measured(t *testing.T, delivery cache.Delivery, updates int) result {
	t.Helper()
	var outcome result
	synctest.Test(t, func(t *testing.T) {
		var err error
		outcome, err = trial{delivery, updates}.run(t.Context())
		require.NoError(t, err)
	})
	return outcome
}

func TestAnOrderedHandlerThatHangsCostsAtMost4MiB(t *testing.T) {
	outcome := measured(t, cache.Ordered, manyUpdates)
	assert.LessOrEqual(t, outcome.grown, int64(4*mebibyte))
	assert.True(t, outcome.stalled.Merging)
	assert.Equal(t, 1, outcome.stalled.Backlog, "one object has one entry once changes are merged")
	assert.Equal(t, 2, outcome.calls, "the Add that hung, and the merged Update")
}

func TestACoalescedHandlerThatHangsCostsAtMost1MiB(t *testing.T) {
	outcome := measured(t, cache.Coalesced, manyUpdates)
	assert.LessOrEqual(t, outcome.grown, int64(mebibyte))
	assert.Equal(t, 1, outcome.stalled.Backlog)
	assert.GreaterOrEqual(t, outcome.stalled.OldestAge, time.Second)
	assert.Equal(t, 2, outcome.calls)
}

func TestAnUnboundedHandlerKeepsEverything(t *testing.T) {
	outcome := measured(t, cache.OrderedUnbounded, 2_000)
	assert.Equal(t, 2_000, outcome.stalled.Backlog)
	assert.False(t, outcome.stalled.Merging)
	assert.Equal(t, 2_001, outcome.calls)
	assert.Greater(t, outcome.grown, int64(2_000*1024))
}

func TestEachDeliveryHasItsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, 5_000, 100))
		for _, line := range []string{
			"ordered: 5000 updates, heap ",
			"  while it hangs: backlog 1, merging true, the oldest waits for 1s\n  once it goes on: 2 calls",
			"coalesced: 5000 updates, heap ",
			"ordered, unbounded: 100 updates, heap ",
			"  while it hangs: backlog 100, merging false, the oldest waits for 1s\n  once it goes on: 101 calls",
		} {
			assert.Equal(t, 1, min(1, strings.Count(out.String(), line)), "%s\nlacks %q", out.String(), line)
		}
	})
}
