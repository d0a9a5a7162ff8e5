package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

// A resource of an API group is asked for by its name alone, as kubectl allows it.
func TestA404SuggestsHowAResourceOfAGroupIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		resource  schema.GroupVersionResource
		says      string
		namespace string
	}{
		"a well-known one": {resource: schema.GroupVersionResource{Version: "v1", Resource: "deployments"},
			says: "it has no deployments in v1 (404); try -resource apps/v1/deployments\n"},
		"any other": {resource: schema.GroupVersionResource{Version: "v1", Resource: "widgets"},
			says: "it has no widgets in v1 (404); name a resource of an API group as group/version/resource, such as apps/v1/deployments; " +
				"or the -server is not the address of an API\n"},
		"a well-known one in another group": {resource: schema.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "ingresses"},
			says: "it has no ingresses in extensions/v1beta1 (404); try -resource networking.k8s.io/v1/ingresses\n"},
		"one without namespaces": {resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, namespace: "shop",
			says: "such as apps/v1/deployments; or they belong to no namespace: leave out -namespace; or the -server"},
		"the right name": {resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			says: "it has no deployments in apps/v1 (404); the group, the version and the plural name must be its own, as in apps/v1/deployments; " +
				"or the -server is not the address of an API\n"},
		"another group": {resource: schema.GroupVersionResource{Group: "shop.example", Version: "v1", Resource: "orders"},
			says: "it has no orders in shop.example/v1 (404); the group, the version and the plural name must be its own, as in apps/v1/deployments; " +
				"or the -server is not the address of an API\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startElsewhere(t, "")
				defer e.close()
				_, took, err := e.mirrored(t.Context(), func(s *settings) { s.resource, s.namespace = test.resource, test.namespace })
				require.ErrorContains(t, err, test.says)
				require.Zero(t, took)
			})
		})
	}
}

func TestA405SaysWhatTheResourceCannotDo(t *testing.T) {
	for verb, says := range map[string]string{
		"list":  "the server does not let pods be listed (405), so they cannot be mirrored\n",
		"watch": "the server does not let pods be watched (405), so they cannot be mirrored\n",
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startElsewhere(t, "", simplePod("a", "one", "Running"))
				defer e.close()
				refusal := apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "pods"}, verb)
				if verb == "list" {
					e.source.FailLists(cachetest.Forever, refusal)
				} else {
					e.source.FailWatches(cachetest.Forever, refusal)
				}
				_, took, err := e.mirrored(t.Context(), nil)
				require.ErrorContains(t, err, says)
				require.Zero(t, took)
			})
		})
	}
}

// A namespace that does not exist is listed as an empty one.
func TestANamespaceOrSelectorThatMatchesNothingIsNamed(t *testing.T) {
	const nothing = "nothing to mirror so far: "
	for name, test := range map[string]struct {
		namespace, selector string
		says                string
	}{
		"namespace":        {"shop", "", nothing + "no pods in namespace shop; one that does not exist looks the same"},
		"selector":         {"", "app=web", nothing + "no pods with app=web"},
		"both":             {"a", "app=web", nothing + "no pods in namespace a with app=web; one that does not exist looks the same"},
		"something":        {"a", "", ""},
		"neither, nothing": {"", "", nothing + "the server has no pods"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startElsewhere(t, "")
				defer e.close()
				if name != "neither, nothing" {
					require.NoError(t, e.source.Apply(simplePod("a", "one", "Running")))
				}
				printed, _, err := e.mirrored(t.Context(), func(s *settings) { s.namespace, s.selector = test.namespace, test.selector })
				require.NoError(t, err, printed)
				if test.says == "" {
					require.NotContains(t, flowed(printed), nothing)
				} else {
					require.Contains(t, flowed(printed), test.says)
				}
			})
		})
	}
}

// The list to compare with has one object, the mirror by then three.
func TestTheLastLineCountsWhatTheMirrorHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		listed := 0
		e.source.MangleList(func(list runtimeObject) runtimeObject {
			if listed++; listed == 2 {
				_, _ = e.source.Create(simplePod("a", "two", "Running"))
				_, _ = e.source.Create(simplePod("a", "three", "Running"))
				time.Sleep(time.Second) // the mirror has them before the list arrives
			}
			return list
		})
		printed, _, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Contains(t, printed, "mirror equals the source: 3 objects, version 1 (2 newer than it)")
	})
}
