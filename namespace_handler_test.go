package cache

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Fails if a turn is waited for without the context, or taken after its end.
func TestATurnIsWaitedForWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, shared := range map[string]turns{"shared": newTurns(), "alone": nil} {
			ctx, cancel := context.WithCancel(context.Background())
			require.True(t, shared.begin(ctx), name)
			if shared != nil {
				waited := make(chan bool)
				go func() { waited <- shared.begin(ctx) }()
				synctest.Wait()
				cancel()
				assert.False(t, <-waited, "while another has it")
			}
			cancel()
			shared.end()
			for range 20 {
				assert.False(t, shared.begin(ctx), "after the end, also where it is free: %s", name)
			}
			require.True(t, shared.begin(context.Background()), name)
			shared.end()
		}
	})
}
