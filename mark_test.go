package cache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// An object that was changed where it stands is told from what was received by its mark,
// wherever in its UID or version the change is. Fails if some of either is left out, or if
// one could stand for the other.
func TestAMarkTellsStatesApart(t *testing.T) {
	m := newThreadSafeMap(nil)
	seen := map[uint32]Received{}
	note := func(received Received) {
		mark := m.mark(received)
		other, twice := seen[mark]
		assert.False(t, twice && other != received, "%v and %v", received, other)
		seen[mark] = received
	}
	for length := range 40 {
		text := strings.Repeat("0", length)
		note(Received{"", text})
		note(Received{types.UID(text), ""})
		for at := range length {
			changed := text[:at] + "1" + text[at+1:]
			note(Received{types.UID(changed), text})
			note(Received{types.UID(text), changed})
		}
	}
}
