package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTheFactorysInformerIsOfThisLibrary(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, fake.NewClientset(configMap("prices"), configMap("stock"))))
	assert.Equal(t, "config maps in shop: 2\nthe informer of this library says that it is synced: true\n", out.String())
}
