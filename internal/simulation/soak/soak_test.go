package soak

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// duration is how long the soak continues; CI says 24h.
var duration = flag.Duration("soak", 2*time.Hour, "virtual time of the soak")

func TestADayOfChurnLeavesHeapGoroutinesAndBuffersFlat(t *testing.T) {
	report := Run(t, Config{Duration: *duration, Out: t.Output()})
	require.Empty(t, report.Problems())
}
