package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache"
)

// G10: a snapshot has the quarantine of its point in time, as it has the objects. Fails if its Get
// reads the quarantine of the store.
func TestG10ASnapshotsGetReadsTheQuarantineOfTheSnapshot(t *testing.T) {
	s := newRepairable()
	before := s.snapshot()
	require.Error(t, s.Add(podAt("a", "x", "1")))
	quarantined := s.snapshot()
	s.repaired.Store(true)
	must(t, s.Update(podAt("a", "x", "2")))
	repaired := s.snapshot()
	must(t, s.Delete(podAt("a", "x", "2")))
	deleted := s.snapshot()

	for _, snapshot := range []cache.Reader[any]{before, deleted, before.Snapshot()} {
		_, err := snapshot.Get("a/x")
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}
	for _, snapshot := range []cache.Reader[any]{quarantined, quarantined.Snapshot(), quarantined.ByNamespace("")} {
		_, err := snapshot.Get("a/x")
		require.ErrorIs(t, err, cache.ErrQuarantined)
	}
	_, err := quarantined.ByNamespace("a").Get("x")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	obj, err := repaired.Get("a/x")
	require.NoError(t, err)
	assert.NotNil(t, obj)
}
