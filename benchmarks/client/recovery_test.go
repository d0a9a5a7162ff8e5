package client

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/sides"
)

func TestBothSidesRecoverFromARefusedConnection(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		synctest.Test(t, func(t *testing.T) {
			seconds, err := Task{Side: side, Work: Recovery, Items: 5, Fault: Refused1s}.recoverOnce(0)
			require.NoError(t, err)
			require.Less(t, seconds, 60.0, side)
		})
	}
}

func TestOnlyOursNoticesThatASourceWasRestored(t *testing.T) {
	for side, recovers := range map[sides.Side]bool{sides.ClientGo: false, sides.Ours: true} {
		synctest.Test(t, func(t *testing.T) {
			seconds, err := Task{Side: side, Work: Recovery, Items: 5, Fault: RestoredOlder}.recoverOnce(0)
			require.NoError(t, err)
			require.Equal(t, recovers, seconds < NeverRecovered, side)
		})
	}
}
