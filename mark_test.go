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
	differ := func(one, other Received) {
		assert.NotEqual(t, m.mark(one), m.mark(other), "%v and %v", one, other)
	}
	for length := range 40 {
		text := strings.Repeat("0", length)
		differ(Received{types.UID(text), text}, Received{types.UID(text), text + "0"})
		differ(Received{types.UID(text), text}, Received{types.UID(text + "0"), text})
		for at := range length {
			changed := text[:at] + "1" + text[at+1:]
			differ(Received{types.UID(text), text}, Received{types.UID(changed), text})
			differ(Received{types.UID(text), text}, Received{types.UID(text), changed})
			differ(Received{types.UID(text), changed}, Received{types.UID(changed), text})
			differ(Received{types.UID(text), text}, Received{types.UID(changed), changed})
		}
	}
}
