package kubeapi

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fails if the silence is a difference of two times of day: after a laptop's sleep or a correction
// by NTP, a dead connection would seem alive for as long as the clock was set back.
func TestTheSilenceOfAConnectionIsIndependentOfTheTimeOfDay(t *testing.T) {
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	c := openConnections.acquire(one)
	defer openConnections.release(c)
	timeOfDay := c.acquired.Round(0) // without the monotonic reading
	require.NotEqual(t, timeOfDay, c.acquired)

	use := connectionUse{current: c}
	c.acquired = c.acquired.Add(-time.Hour)
	require.GreaterOrEqual(t, c.silence(), time.Hour)
	use.received(time.Now())
	require.Less(t, c.silence(), time.Hour)
}
