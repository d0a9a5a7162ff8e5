package guarantees

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// statusChangingSource is a source that changes while a status is made.
type statusChangingSource struct {
	*cachetest.Source
	change func()
}

// SourceStatus is called by Status, after it has read the reflector's versions and before it reads the
// store.
func (s *statusChangingSource) SourceStatus() map[string]string {
	s.change()
	return nil
}

// G11: in a status the checksum and the applied version belong together, and the received version is never
// behind, although a change is applied while the status is made. Fails if the applied version is read
// before the checksum, or if the received version is not read again.
func TestG11AStatusIsNotTorn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &statusChangingSource{cachetest.NewSourceOf[*object](), func() {}}
		informer := cache.NewTypedInformer[*object](source, cache.InformerConfig[*object]{})
		over := make(chan error, 1)
		go func() { over <- informer.Run(t.Context()) }()
		require.NoError(t, informer.WaitSynced(t.Context()))
		changes := 0
		apply := func() {
			changes++
			must(t, source.Apply(labelled(pod("a", "1"), strconv.Itoa(changes))))
			require.NoError(t, informer.WaitForResourceVersion(t.Context(), source.ResourceVersion()))
		}
		for range 10 {
			source.change = apply
			during := informer.Status()
			source.change = func() {}
			after := informer.Status()
			require.Equal(t, source.ResourceVersion(), after.AppliedVersion)
			assert.Equal(t, after.AppliedVersion, during.AppliedVersion)
			assert.Equal(t, after.Checksum, during.Checksum)
			assert.Equal(t, after.ReceivedVersion, during.ReceivedVersion)
		}
		informer.Stop()
		require.NoError(t, <-over)
		source.Close()
	})
}
