package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B17: of several panics the first comes out, since the others may be what it led to;
// and not before all have ended. Fails if the last one takes its place.
func TestOfSeveralPanicsTheFirstComesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		for after, what := range []string{"first", "second", "third"} {
			g.start(func() {}, func() {
				time.Sleep(time.Duration(after) * time.Second)
				panic(what)
			})
		}
		began := time.Now()
		defer func() {
			panicked, ok := recover().(*PanicError)
			require.True(t, ok)
			assert.Equal(t, "first", panicked.Value)
			assert.Equal(t, 2*time.Second, time.Since(began))
		}()
		g.wait()
	})
}
