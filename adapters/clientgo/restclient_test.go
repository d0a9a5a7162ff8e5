package clientgo_test

import (
	"go/build"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"

	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
)

func TestAResourceIsCompletedByTheClientsVersion(t *testing.T) {
	for _, test := range []struct {
		client   schema.GroupVersion
		resource schema.GroupVersionResource
		path     string
	}{
		{
			schema.GroupVersion{Version: "v1"}, schema.GroupVersionResource{Resource: "pods"},
			"/api/v1/pods",
		},
		{
			schema.GroupVersion{Group: "apps", Version: "v1"},
			schema.GroupVersionResource{Resource: "deployments"}, "/apis/apps/v1/deployments",
		},
		{
			schema.GroupVersion{Group: "apps", Version: "v1"},
			schema.GroupVersionResource{Group: "apps", Resource: "deployments"},
			"/apis/apps/v1/deployments",
		},
		{
			schema.GroupVersion{Group: "apps", Version: "v1"},
			schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "/api/v1/pods",
		},
		{
			schema.GroupVersion{Group: "apps", Version: "v1"},
			schema.GroupVersionResource{Group: "batch", Version: "v2", Resource: "jobs"},
			"/apis/batch/v2/jobs",
		},
	} {
		api := &api{}
		client, err := rest.RESTClientFor(
			&rest.Config{Host: "http://api.test", Transport: api, ContentConfig: rest.ContentConfig{
				GroupVersion: &test.client, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			}},
		)
		require.NoError(t, err)
		list(t, sourceOfClient(t, client, func(o *kubeapi.Options) { o.Resource = test.resource }))
		assert.Equal(t, test.path, api.last(t).URL.Path)
	}

	_, err := clientgo.NewSourceForClient(
		clientOf(t, rest.Config{}),
		kubeapi.Options{
			Resource: schema.GroupVersionResource{Group: "apps", Resource: "deployments"},
		},
	)
	require.ErrorIs(
		t, err, kubeapi.ErrInvalidOptions, "of another group the client knows no version")
	assert.ErrorContains(t, err, "Resource.Version")
}

// A test that sets the responses needs no fake client, and the program no code for tests.
func TestATestAnswersAsTheTransportOfAConfig(t *testing.T) {
	api := &api{}
	list(t, sourceOf(t, &rest.Config{Host: "https://localhost", Transport: api}))
	assert.Equal(t, "https://localhost/api/v1/pods", api.last(t).URL.String())

	adapter, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	require.Contains(t, adapter.Imports, "k8s.io/client-go/rest")
	assert.NotContains(t, adapter.Imports, "k8s.io/client-go/rest/fake")
}

// wrapped is a REST client with behaviour of its own, as in some programs.
type wrapped struct{ rest.Interface }

func TestAClientThatCannotBeUsedIsAClearError(t *testing.T) {
	withPassword := rest.Config{Host: "http://me:hunter2@api.test"}
	for text, client := range map[string]rest.Interface{
		"fake clientsets":  (*rest.RESTClient)(nil),
		"it has no server": &rest.RESTClient{},
		"use NewSource": &fake.RESTClient{
			GroupVersion: corev1.SchemeGroupVersion,
			Client:       &http.Client{Transport: &api{}},
		},
		"*fake.RESTClient is no": (*fake.RESTClient)(nil),
		"clientgo_test.wrapped":  wrapped{clientOf(t, rest.Config{})},
		"<nil> is no *rest":      nil,
		"contain a user or pass": clientOf(t, withPassword),
	} {
		_, err := clientgo.NewSourceForClient(client, optionsOf())
		require.ErrorIs(t, err, clientgo.ErrUnsupportedClient, text)
		assert.ErrorContains(t, err, text)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestAClientWithoutAnHTTPClientUsesTheDefaultTransport(t *testing.T) {
	api := &api{}
	server := serve(t, api)
	client := clientOf(t, rest.Config{Host: server.URL})
	client.Client = nil
	list(t, sourceOfClient(t, client))
	assert.Equal(t, 1, api.count())
}

func TestTheClientItselfIsNotChanged(t *testing.T) {
	client := clientOf(t, rest.Config{Host: "http://api.test", Transport: &api{}})
	checked := false
	own := &http.Client{
		Transport:     &api{},
		Timeout:       1,
		CheckRedirect: func(*http.Request, []*http.Request) error { checked = true; return nil },
	}
	client.Client = own
	before := *own
	list(t, sourceOfClient(t, client))
	assert.Same(t, own, client.Client)
	assert.Equal(t, before.Timeout, own.Timeout)
	require.NoError(t, own.CheckRedirect(nil, nil))
	assert.True(t, checked)
}
