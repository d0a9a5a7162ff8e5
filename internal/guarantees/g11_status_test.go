package guarantees

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// One version has one checksum, and what was applied has been received. Fails if Status reads either
// pair in two steps.
func TestG11AStatusIsNotTorn(t *testing.T) {
	source := cachetest.NewSourceOf[*object]()
	must(t, source.Apply(pod("a", "1")))
	informer := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
	over := make(chan error, 1)
	go func() { over <- informer.Run(t.Context()) }()
	require.NoError(t, informer.WaitSynced(t.Context()))
	const changes = 3000
	written := make(chan error, 1)
	go func() {
		var err error
		for i := range changes {
			changed := pod("a", "1")
			changed.Labels = map[string]string{"n": strconv.Itoa(i)}
			if err = source.Apply(changed); err != nil {
				break
			}
		}
		written <- err
	}()
	checksums := map[string]uint64{}
	for last := ""; last != source.ResourceVersion() || len(written) == 0; {
		status := informer.Status()
		last = status.AppliedVersion
		known, again := checksums[last]
		if again {
			require.Equal(t, known, status.Checksum, "at version %s", last)
		}
		checksums[last] = status.Checksum
		applied, err := strconv.Atoi(last)
		require.NoError(t, err)
		received, err := strconv.Atoi(status.ReceivedVersion)
		require.NoError(t, err)
		require.LessOrEqual(t, applied, received)
	}
	require.NoError(t, <-written)
	informer.Stop()
	require.NoError(t, <-over)
	source.Close()
}
