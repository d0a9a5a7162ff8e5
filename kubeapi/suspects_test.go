package kubeapi

import (
	"hash/maphash"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBytesThatArriveTwiceAreNotSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := suspects{seed: maphash.MakeSeed()}
		require.True(t, d.suspect([]byte("a"), false))
		require.True(t, d.suspect([]byte("b"), false), "as often as bytes are broken")
		require.False(t, d.suspect([]byte("a"), false))
		require.False(t, d.suspect([]byte("a"), false))
	})
}

// Fails if more bytes are remembered, or forgotten too soon: a stream that has all of them could
// not be read.
func TestSuspectsAreBoundedPerHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := suspects{seed: maphash.MakeSeed()}
		for hour := range 3 {
			for i := range 3 * maxSuspects {
				require.Equal(
					t, i < maxSuspects, d.suspect([]byte(strconv.Itoa(1000*hour+i)), false),
					"in hour %d: %d", hour, i)
				require.LessOrEqual(t, len(d.seen), maxSuspects)
			}
			require.False(t, d.suspect([]byte(strconv.Itoa(1000*hour)), false), "it was seen")
			require.False(t, d.suspect([]byte("well-formed"), true))
			time.Sleep(time.Hour - time.Nanosecond)
			require.False(t, d.suspect([]byte("another"), false))
			time.Sleep(time.Nanosecond)
		}
	})
}

func TestWellFormedBytesAreRarelySuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := suspects{seed: maphash.MakeSeed()}
		require.True(t, d.suspect([]byte("damaged"), true))
		require.False(t, d.suspect([]byte("another"), true), "one a minute")
		time.Sleep(time.Minute)
		require.True(t, d.suspect([]byte("another"), true))
		require.False(t, d.suspect([]byte("another"), true), "it was meant")
		time.Sleep(time.Hour - time.Nanosecond)
		require.False(t, d.suspect([]byte("a third"), true))
		require.True(t, d.suspect([]byte("a third"), false), "broken bytes always")
		time.Sleep(time.Nanosecond)
		require.True(t, d.suspect([]byte("a fourth"), true))
	})
}
