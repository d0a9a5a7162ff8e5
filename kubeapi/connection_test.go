package kubeapi

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fails if the silence is measured from a time of day: where that is set back, as by NTP, a dead
// connection would seem alive for as long.
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
