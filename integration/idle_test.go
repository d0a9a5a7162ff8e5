package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Nothing is written, of this type or of another. Fails if Fresh or Verify waits for a bookmark of
// the open watch, of which such a server sends one a minute at most, or finds a difference.
func TestFreshAndVerifyOnAnIdleServer(t *testing.T) {
	r := ownRig(t)
	r.create(t, 0, 20)
	m := overKubeapi(t, r.source(t, nil), nil).start(t)
	require.NoError(t, m.informer.WaitSynced(within(t, patience)))
	var fresh, verify time.Duration
	for range 5 {
		time.Sleep(time.Second)
		begin := time.Now()
		require.NoError(t, m.informer.Fresh(within(t, patience)))
		fresh = max(fresh, time.Since(begin))
		begin = time.Now()
		require.NoError(t, m.informer.Verify(within(t, patience)))
		verify = max(verify, time.Since(begin))
	}
	t.Logf("on an idle server Fresh took at most %s, Verify %s", fresh, verify)
	require.Less(t, max(fresh, verify), 30*time.Second)
	require.Equal(t, "no failure", m.lastFailure())
}
