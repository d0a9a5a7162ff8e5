package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachWayToLookUpFindsWhatItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		assert.Equal(t, `shop/web-0 runs on node-a
pods "web-9" not found
on node-a: lab/web-0 shop/web-0
with a backup, in lab: lab/web-0
with a backup: 2
images: backup nginx postgres
keys: lab/job-0 lab/web-0 shop/db-0 shop/web-0 shop/web-1
waits for a node: job-0
by zone: an error
`, out.String())
	})
}
