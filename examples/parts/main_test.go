package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheMirrorFollowsAListAWatchAndAListAfterAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		assert.Equal(t, `the first list:
  Replaced shop/orders (of the first list)
  Replaced shop/prices (of the first list)
  Replaced shop/stock (of the first list)
  now: shop/orders shop/prices shop/stock
the watch:
  Updated shop/prices (later)
  Deleted shop/stock (later)
  now: shop/orders shop/prices
a list after a gap:
  Replaced shop/returns (later)
  Deleted shop/orders (later)
  now: shop/prices shop/returns
`, out.String())
	})
}
