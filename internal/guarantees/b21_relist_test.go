package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// B21, kubernetes#83810: changes of a relist are never delivered as a resync, which some handlers
// ignore. Fails if a listed object is queued as Sync.
func TestB21ChangesOfARelistAreNotDeliveredAsAResync(t *testing.T) {
	f, _ := newListedQueue(t, podAt("a", "1", "1"), podAt("a", "2", "2"))
	must(t, f.Resync(), f.Replace(items("1", "3", "2", "2"), "3"), f.Resync())
	assert.ElementsMatch(t, []string{"Sync a/1@1, Replaced a/1@3", "Sync a/2@2"}, drainTexts(t, f))
}
