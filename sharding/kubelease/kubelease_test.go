package kubelease_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sharding/kubelease"
	"github.com/watchmirror/cache/sharding/leasetest"
)

// stores returns the stores for which the same tests are run.
func stores(t *testing.T) map[string]sharding.Leases {
	server := httptest.NewServer(&kubelease.Handler{})
	t.Cleanup(server.Close)
	remote, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop"}, "orders")
	require.NoError(t, err)
	other, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop"}, "other")
	require.NoError(t, err)
	_, err = other.Put(t.Context(), sharding.Lease{Name: "range-0", Holder: "x"})
	require.NoError(t, err)
	return map[string]sharding.Leases{"memory": &sharding.MemoryLeases{}, "kubernetes": remote}
}

func TestEachStoreKeepsTheContract(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) { leasetest.Test(t, store) })
	}
}

func TestARefusalIsNoConflict(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Error(w, `{"kind":"Status","message":"no role allows it"}`, http.StatusForbidden)
	}))
	defer server.Close()
	store, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop", Authorize: func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer secret")
		return nil
	}}, "orders")
	require.NoError(t, err)
	for _, err := range []error{
		func() error { _, err := store.List(t.Context()); return err }(),
		func() error { _, err := store.Put(t.Context(), sharding.Lease{Name: "a"}); return err }(),
		store.Delete(t.Context(), sharding.Lease{Name: "a", Version: "1"}),
	} {
		require.ErrorContains(t, err, "no role allows it")
		require.False(t, errors.Is(err, sharding.ErrLeaseConflict))
		require.NotContains(t, err.Error(), "secret")
	}
	for _, wrong := range []kubeapi.Options{{BaseURL: "nowhere", Namespace: "shop"}, {BaseURL: server.URL}} {
		_, err := kubelease.New(wrong, "orders")
		require.Error(t, err)
	}
}
