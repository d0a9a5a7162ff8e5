package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAForbiddenNamespaceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		assert.Equal(t, `berlin has synced: [berlin/order-1 berlin/order-2]
paris has synced: [paris/order-1 paris/order-2]
secret has not: its content is unknown, not empty; cause "forbidden"
all have synced: 6 orders
paris has 1
berlin: watching at version 6
paris: watching at version 7
secret: watching at version 6
`, out.String())
	})
}
