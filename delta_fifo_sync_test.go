package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// Where batches are taken, synced never comes before the version that it stands
// for.
func TestAnEmptyFirstListIsSyncedWithItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newListedQueue(t)
		got := make(chan batch)
		go func() {
			assert.NoError(t, popPending(f, func(b batch) error {
				got <- b
				return nil
			}))
			close(got)
		}()
		synctest.Wait()
		must(t, f.Replace(nil, "1"))
		synctest.Wait()
		assert.False(t, f.HasSynced())
		assert.Equal(t, batch{changes: []queued{}, version: "1", initial: true}, <-got)
		<-got
		assert.True(t, f.HasSynced())
	})
}
