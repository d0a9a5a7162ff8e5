package cachetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

// patience is the number of responses that a watch's client waits for. It disconnects after as
// many, or a moment after the watch was opened. It does not disconnect earlier, because the
// response to a cancelled request would depend on how busy the machine is.
type patience struct {
	*httptest.ResponseRecorder
	left   int
	goAway context.CancelFunc
	moment *time.Timer
}

func (p *patience) Flush() {
	if p.moment == nil {
		p.moment = time.AfterFunc(20*time.Millisecond, p.goAway)
	}
	if p.left--; p.left == 0 {
		p.goAway()
	}
}

func (p *patience) FlushError() error {
	p.Flush()
	return nil
}

// FuzzRequests sends arbitrary requests to a handler. A client without a token receives only a
// refusal. An unsuccessful response is a Status with its code. A list or a watch has the objects
// that the request's selectors select, in order, and the pages of a list have each of them once.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/api/v1/pods", "labelSelector=app%3Dweb&limit=1", "Bearer secret")
	f.Add(
		"GET", "/api/v1/namespaces/a/pods/",
		"fieldSelector=metadata.name!%3Dx&resourceVersion=3&resourceVersionMatch=Exact",
		"Bearer secret")
	f.Add("GET", "/api/v1/pods", "watch=1&resourceVersion=2&timeoutSeconds=1", "Bearer secret")
	f.Add(
		"GET", "/api/v1/pods",
		"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
		"Bearer secret")
	f.Add("GET", "/api/v1/namespaces/b/pods", "watch=1", "Bearer secret")
	f.Add("GET", "/api/v1/namespaces/a/pods/x", "", "Bearer secret")
	f.Add(
		"GET", "/api/v1/pods", "continue=eyJ2IjoxLCJlIjowLCJwIjoyLCJrIjp7Im4iOiJ4In19&limit=2",
		"Bearer secret")
	f.Add("GET", "/api/v1/pods", "resourceVersion=00&resourceVersionMatch=Exact", "Bearer secret")
	f.Add(
		"GET", "/api/v1/pods", "continue=eyJtIjoxLCJlIjowLCJwIjoyLCJrIjp7Im4iOiJ4In19&limit=2",
		"Bearer secret")
	f.Add("POST", "/api/v1/pods", "", "Bearer secret")
	f.Add("GET", "/apis//v1//pods/x/y", "watch=x&limit=-1", "bearer secret")
	f.Fuzz(func(t *testing.T, method, path, query, token string) {
		// Servers of net/http reject such a request.
		if method == "" ||
			strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' }) ||
			!strings.HasPrefix(path, "/") {
			return
		}
		source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
		apply(
			t, source, pod("a", "x", "app", "web"), pod("a", "y"),
			pod("b", "x", "app", "db", "tier", "1"), pod("b", "z", "app", "web"))
		defer source.Close()
		h := cachetest.NewHandler(
			cachetest.HandlerOptions{Token: "secret", Resources: []cachetest.Resource{
				{
					GroupVersionResource: schema.GroupVersionResource{
						Version:  "v1",
						Resource: "pods",
					},
					Source: source,
				},
			}},
		)
		m := &requestModel{T: t, handler: h, source: source, token: token, path: path}
		answer := m.send(method, query)
		switch {
		case answer.Code != http.StatusOK:
			m.failed(answer)
		case method != http.MethodGet || token != "Bearer secret":
			t.Fatalf("%s with %q was answered", method, token)
		default:
			m.succeeded(answer, query)
		}
	})
}

// requestModel is a handler and the requests to it.
type requestModel struct {
	*testing.T
	handler     *cachetest.Handler
	source      *cachetest.Source
	token, path string
}

func (m *requestModel) send(method, query string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	request := (&http.Request{Method: method, URL: &url.URL{Path: m.path, RawQuery: query}, Header: http.Header{"Authorization": {m.token}}}).WithContext(
		ctx)
	answer := &patience{ResponseRecorder: httptest.NewRecorder(), left: 3, goAway: cancel}
	m.handler.ServeHTTP(answer, request)
	require.Equal(m, "application/json", answer.Header().Get("Content-Type"))
	return answer.ResponseRecorder
}

// failed requires a Status with the response's code.
func (m *requestModel) failed(answer *httptest.ResponseRecorder) {
	var status metav1.Status
	require.NoError(m, json.Unmarshal(answer.Body.Bytes(), &status))
	require.Equal(m, "Status", status.Kind)
	require.Equal(m, metav1.StatusFailure, status.Status)
	require.Equal(m, int32(answer.Code), status.Code, "%s", answer.Body)
	ahead := status.Details != nil && len(status.Details.Causes) == 1 &&
		status.Details.Causes[0].Type == metav1.CauseTypeResourceVersionTooLarge
	require.True(
		m, answer.Code < 500 || ahead, "what is asked is no fault of the server's: %s", answer.Body)
	if m.token != "Bearer secret" {
		require.Equal(m, http.StatusUnauthorized, answer.Code)
	}
}

// found is the checked part of a response: a list, an object or an event.
type found struct {
	Kind     string
	Type     string
	Metadata metav1.ListMeta
	Items    []metav1.PartialObjectMetadata
	Object   metav1.PartialObjectMetadata
}

func (m *requestModel) succeeded(answer *httptest.ResponseRecorder, query string) {
	values, _ := url.ParseQuery(query)
	decoder := json.NewDecoder(answer.Body)
	for decoder.More() {
		var one found
		require.NoError(m, decoder.Decode(&one))
		switch {
		case one.Type == "ERROR", one.Type == "BOOKMARK", one.Kind == "Pod":
		case one.Type != "":
			require.True(m, m.selects(values, &one.Object), "%v", one.Object)
		default:
			require.Equal(m, "PodList", one.Kind)
			require.NotEqual(
				m, "0", one.Metadata.ResourceVersion, "a version that stands for any other")
			m.pages(one, values)
		}
	}
}

// selects reports whether a request selects an object.
func (m *requestModel) selects(query url.Values, obj *metav1.PartialObjectMetadata) bool {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	require.NoError(m, err)
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	require.NoError(m, err)
	if other(byField) {
		byField = fields.Everything()
	}
	_, in, one := strings.Cut(m.path, "/namespaces/")
	if one && !strings.HasPrefix(in, obj.Namespace+"/") {
		return false
	}
	return byLabel.Matches(labels.Set(obj.Labels)) &&
		byField.Matches(fields.Set{"metadata.name": obj.Name, "metadata.namespace": obj.Namespace})
}

// other reports whether a selector has fields other than the name, which are not compared.
func other(selector fields.Selector) bool {
	return slices.ContainsFunc(selector.Requirements(), func(r fields.Requirement) bool {
		return r.Field != "metadata.name" && r.Field != "metadata.namespace"
	})
}

// pages requests all pages of a list.
func (m *requestModel) pages(list found, query url.Values) {
	var keys []string
	from := query.Get("continue")
	all := from == "" && query.Get("resourceVersion") == ""
	for pages := 0; ; pages++ {
		require.Less(m, pages, 10)
		for _, item := range list.Items {
			require.True(m, m.selects(query, &item), "%v", item)
			keys = append(keys, item.Namespace+"/"+item.Name)
		}
		if list.Metadata.Continue == "" {
			break
		}
		query.Set("continue", list.Metadata.Continue)
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
		answer := m.send(http.MethodGet, query.Encode())
		require.Equal(m, http.StatusOK, answer.Code, "%s", answer.Body)
		list = found{}
		require.NoError(m, json.Unmarshal(answer.Body.Bytes(), &list))
	}
	require.True(m, slices.IsSorted(keys), "%v", keys)
	require.Len(m, slices.Compact(slices.Clone(keys)), len(keys))
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	require.NoError(m, err)
	if !all || other(byField) {
		return
	}
	want := 0
	for _, obj := range m.source.Objects() {
		o := &metav1.PartialObjectMetadata{}
		content, err := json.Marshal(obj)
		require.NoError(m, err)
		require.NoError(m, json.Unmarshal(content, o))
		if m.selects(query, o) {
			want++
		}
	}
	require.Len(m, keys, want)
}
