package kubeapi

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// requested returns the URL that a call with these options requests.
func requested(t *testing.T, o Options, v verb, call metav1.ListOptions) *url.URL {
	t.Helper()
	var seen *url.URL
	o.HTTPClient = &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
		seen = r.URL
		return respondWith(http.StatusForbidden, "")(r)
	})}
	source := newSourceFor(t, o)
	var err error
	if v == verbWatch {
		_, err = source.Watch(call)
	} else {
		_, err = source.List(call)
	}
	require.Error(t, err)
	require.NotNil(t, seen)
	return seen
}

func TestPathFollowsGroupVersionNamespaceAndResource(t *testing.T) {
	deployments := schema.GroupVersionResource{
		Group:    "apps",
		Version:  "v1",
		Resource: "deployments",
	}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"core group": {
			Options{BaseURL: "http://h", Resource: pods}, "http://h/api/v1/pods",
		},
		"core, namespaced": {
			Options{BaseURL: "http://h/", Resource: pods, Namespace: "kube-system"},
			"http://h/api/v1/namespaces/kube-system/pods",
		},
		"named group": {
			Options{BaseURL: "https://h:6443", Resource: deployments},
			"https://h:6443/apis/apps/v1/deployments",
		},
		"group, namespaced": {
			Options{BaseURL: "http://h", Resource: deployments, Namespace: "a"},
			"http://h/apis/apps/v1/namespaces/a/deployments",
		},
		"prefix": {
			Options{BaseURL: "http://h/k8s/clusters/c1/", Resource: pods},
			"http://h/k8s/clusters/c1/api/v1/pods",
		},
		"prefix with escape": {
			Options{BaseURL: "http://h/a%2Fb", Resource: pods}, "http://h/a%2Fb/api/v1/pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(
				t, test.want, requested(t, test.options, verbList, metav1.ListOptions{}).String())
		})
	}
}

func TestEveryListOptionReachesTheQuery(t *testing.T) {
	got := requested(t, Options{BaseURL: "http://h", Resource: pods}, verbWatch, metav1.ListOptions{
		TypeMeta:             metav1.TypeMeta{Kind: "ListOptions", APIVersion: "v1"},
		LabelSelector:        "app in (a,b)",
		FieldSelector:        "spec.nodeName=n1",
		AllowWatchBookmarks:  true,
		ResourceVersion:      "42",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds:       ptr.To[int64](300),
		Limit:                500,
		Continue:             "a+b/c=",
		SendInitialEvents:    ptr.To(true),
	}).Query()
	require.Equal(t, url.Values{
		"labelSelector":        {"app in (a,b)"},
		"fieldSelector":        {"spec.nodeName=n1"},
		"allowWatchBookmarks":  {"true"},
		"resourceVersion":      {"42"},
		"resourceVersionMatch": {"NotOlderThan"},
		"timeoutSeconds":       {"300"},
		"limit":                {"500"},
		"continue":             {"a+b/c="},
		"sendInitialEvents":    {"true"},
		"watch":                {"true"},
	}, got)
}

func TestUnsetOptionsAreNotSentAndPointersToZeroAre(t *testing.T) {
	o := Options{BaseURL: "http://h", Resource: pods}
	require.Empty(t, requested(t, o, verbList, metav1.ListOptions{}).RawQuery)
	require.Equal(
		t,
		"sendInitialEvents=false&timeoutSeconds=0",
		requested(t, o, verbList, metav1.ListOptions{
			SendInitialEvents: ptr.To(false), TimeoutSeconds: ptr.To[int64](0),
		}).RawQuery,
	)
	require.Equal(
		t, "resourceVersion=0",
		requested(t, o, verbList, metav1.ListOptions{ResourceVersion: "0"}).RawQuery)
}

func TestTheVerbDecidesTheWatchParameter(t *testing.T) {
	o := Options{BaseURL: "http://h", Resource: pods}
	require.Empty(t, requested(t, o, verbList, metav1.ListOptions{Watch: true}).RawQuery)
	require.Equal(t, "watch=true", requested(t, o, verbWatch, metav1.ListOptions{}).RawQuery)
}

func TestSelectorsOfSourceAndCallAreBothRequired(t *testing.T) {
	for name, test := range map[string]struct{ source, call, want string }{
		"neither":     {"", "", ""},
		"source only": {" a=b ", "", "a=b"},
		"call only":   {"", "c=d", "c=d"},
		"both":        {"a=b", " c=d", "a=b,c=d"},
		"call blank":  {"a=b", "  ", "a=b"},
	} {
		t.Run(name, func(t *testing.T) {
			query := requested(
				t,
				Options{
					BaseURL:       "http://h",
					Resource:      pods,
					LabelSelector: test.source,
					FieldSelector: test.source,
				},
				verbList,
				metav1.ListOptions{LabelSelector: test.call, FieldSelector: test.call},
			).Query()
			require.Equal(t, test.want, query.Get("labelSelector"))
			require.Equal(t, test.want, query.Get("fieldSelector"))
		})
	}
}
