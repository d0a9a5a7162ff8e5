package simulation

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soakFlag is how long the soak continues; CI says 24h.
var soakFlag = flag.Duration("soak", 2*time.Hour, "virtual time of the soak")

func TestADayOfChurnLeavesHeapGoroutinesAndBuffersFlat(t *testing.T) {
	report := Soak(t, SoakConfig{Duration: *soakFlag, Out: t.Output()})
	require.Empty(t, report.Problems())
}
