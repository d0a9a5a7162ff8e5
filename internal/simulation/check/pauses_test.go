package check

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Fails if returns from pauses that began at different moments count, or requests that were made
// for another reason, or if returns in the same instant do not.
func TestG13NoTwoReflectorsReturnInTheSameInstant(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		since, until time.Duration
		holds        bool
	}{
		"in the same instant":       {0, 61 * s, false},
		"a second later":            {0, 62 * s, true},
		"after another pause":       {s, 61 * s, true},
		"not after its Retry-After": {0, 59 * s, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world.New(script.Script{}, nil)
				defer w.Close()
				began := time.Now()
				wait := func(since, until time.Duration) world.Wait {
					return world.Wait{
						Since:    began.Add(since),
						Duration: time.Minute,
						Until:    began.Add(until),
					}
				}
				seen := returns{}
				seen.check(&Mirror{Name: "other", World: w}, wait(0, 59*s))
				seen.check(&Mirror{Name: "first", World: w}, wait(0, 61*s))
				seen.check(&Mirror{Name: "second", World: w}, wait(c.since, c.until))
				require.Equal(t, c.holds, len(w.Failures()) == 0, w.Failures())
			})
		})
	}
}
