package tasks

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// B17: fails if a later panic, which the first may have caused, takes its place, or if it comes out
// before all functions have returned.
func TestTheFirstOfSeveralPanicsComesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var canceled atomic.Bool
		g := &Group{
			Cancel: func() { canceled.Store(true) },
			Wrap:   func(value any) any { return fmt.Sprint("wrapped ", value) },
		}
		began := time.Now()
		for after, what := range []string{"first", "second", "third"} {
			g.Go(func() {
				time.Sleep(time.Duration(after) * time.Second)
				panic(what)
			})
		}
		g.Lead(func() {
			time.Sleep(time.Second / 2)
			panic("leader")
		})
		assert.True(t, canceled.Load())
		assert.PanicsWithValue(t, "wrapped first", g.Wait)
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}
