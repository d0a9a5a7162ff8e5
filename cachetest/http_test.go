package cachetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// cluster serves pods, typed widgets with an API group, and cluster-scoped nodes.
func cluster(t testing.TB) (h *cachetest.Handler, pods, widgets, nodes *cachetest.Source) {
	pods = filled(t, cachetest.Options{})
	widgets = cachetest.NewSource(cachetest.Options{NewList: newWidgetList})
	apply(t, widgets, newWidget("a", "1", 5))
	nodes = cachetest.NewSource(
		cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}})
	node := pod("", "n1")
	node.SetKind("Node")
	apply(t, nodes, node)
	h = cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{
		{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			Source:               pods,
		},
		{
			GroupVersionResource: schema.GroupVersionResource{
				Group:    "shop.example",
				Version:  "v2",
				Resource: "widgets",
			},
			Kind:   "Widget",
			Source: widgets,
		},
		{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
			ClusterScoped:        true,
			Source:               nodes,
		},
	}})
	return h, pods, widgets, nodes
}

// get calls the handler without a network.
func get(h http.Handler, path string) (*http.Response, string) {
	return do(h, httptest.NewRequest(http.MethodGet, path, nil))
}

func do(h http.Handler, r *http.Request) (*http.Response, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

func requireStatus(
	t testing.TB, code int, reason metav1.StatusReason, resp *http.Response, body string,
) metav1.Status {
	t.Helper()
	require.Equal(t, code, resp.StatusCode, body)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var status metav1.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	require.Equal(t, metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, status.TypeMeta)
	require.Equal(t, reason, status.Reason)
	require.Equal(t, int32(code), status.Code)
	require.Equal(t, metav1.StatusFailure, status.Status)
	return status
}

func names(t testing.TB, body string) string {
	t.Helper()
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(body), &list), body)
	var out []string
	for i := range list.Items {
		out = append(out, nameOf(t, &list.Items[i]))
	}
	return strings.Join(out, " ")
}

func TestListsAreServedUnderKubernetesPaths(t *testing.T) {
	h, _, _, _ := cluster(t)
	for path, want := range map[string]string{
		"/api/v1/pods":                                                 "a/1 a/2 a/3 b/1",
		"/api/v1/pods/":                                                "a/1 a/2 a/3 b/1",
		"/api/v1/namespaces/a/pods":                                    "a/1 a/2 a/3",
		"/api/v1/namespaces/none/pods":                                 "",
		"/api/v1/nodes":                                                "n1",
		"/apis/shop.example/v2/widgets":                                "a/1",
		"/api/v1/pods?limit=1":                                         "a/1",
		"/api/v1/pods?labelSelector=a%3Db":                             "",
		"/api/v1/pods?fieldSelector=metadata.name%3D1":                 "a/1 b/1",
		"/api/v1/pods?resourceVersion=2&resourceVersionMatch=Exact":    "a/1 a/2",
		"/api/v1/pods?resourceVersion=0&limit=500&watch=0":             "a/1 a/2 a/3 b/1",
		"/apis/shop.example/v2/namespaces/a/widgets?timeoutSeconds=10": "a/1",
	} {
		resp, body := get(h, path)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		require.Equal(t, want, names(t, body), path)
	}
	_, body := get(h, "/api/v1/pods?limit=3")
	var page unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.Equal(t, "PodList", page.GetKind())
	require.Equal(t, "v1", page.GetAPIVersion())
	require.Equal(t, "4", page.GetResourceVersion())
	require.Equal(t, int64(1), *page.GetRemainingItemCount())
	_, body = get(h, "/api/v1/pods?continue="+url.QueryEscape(page.GetContinue()))
	require.Equal(t, "b/1", names(t, body))
}

func TestTypedObjectsAreServedWithTheirKind(t *testing.T) {
	h, _, _, _ := cluster(t)
	_, body := get(h, "/apis/shop.example/v2/widgets")
	var got struct {
		metav1.TypeMeta
		Items []widget
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(
		t, metav1.TypeMeta{Kind: "WidgetList", APIVersion: "shop.example/v2"}, got.TypeMeta)
	require.Equal(
		t, metav1.TypeMeta{Kind: "Widget", APIVersion: "shop.example/v2"}, got.Items[0].TypeMeta)
	require.Equal(t, 5, got.Items[0].Size)
}

func TestOneObjectIsServedByName(t *testing.T) {
	h, _, _, _ := cluster(t)
	for path, version := range map[string]string{
		"/api/v1/namespaces/a/pods/2":                  "2",
		"/api/v1/nodes/n1":                             "1",
		"/apis/shop.example/v2/namespaces/a/widgets/1": "1",
	} {
		resp, body := get(h, path)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		var obj unstructured.Unstructured
		require.NoError(t, json.Unmarshal([]byte(body), &obj))
		require.Equal(t, version, obj.GetResourceVersion())
		require.NotEmpty(t, obj.GetKind())
	}
	resp, body := get(h, "/api/v1/namespaces/a/pods/9")
	status := requireStatus(t, http.StatusNotFound, metav1.StatusReasonNotFound, resp, body)
	require.Equal(t, "9", status.Details.Name)
}

func TestAMissingObjectIsAStatus(t *testing.T) {
	h, _, _, _ := cluster(t)
	for _, path := range []string{
		"/", "/healthz", "/api", "/api/v1", "/api/v2/pods", "/apis/shop.example/v2",
		"/apis/shop.example/v3/widgets",
		"/api/v1/secrets", "/api/v1/namespaces", "/api/v1/namespaces/a/nodes",
		"/api/v1/namespaces/a/pods/1/log", "/api/v1//pods",
		"/api/v1/namespaces//pods", "/api/v1/namespaces//pods/1", "/api/v1/namespaces/a//pods",
		"/api/v1/namespaces/a/pods//1",
		"/api/v1/pods//", "/api//v1/pods", "//api/v1/pods", "//", "/apis//v2/widgets",
		"/apis/shop.example//widgets",
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.URL.Path = path // a parser would read "//" as the beginning of a host
		resp, body := do(h, request)
		requireStatus(t, http.StatusNotFound, metav1.StatusReasonNotFound, resp, body)
	}
	resp, body := do(h, httptest.NewRequest(http.MethodPost, "/api/v1/pods", nil))
	requireStatus(t, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, resp, body)
	require.Equal(t, "GET", resp.Header.Get("Allow"))
	resp, body = get(h, "/api/v1/pods?limit=many")
	requireStatus(t, http.StatusBadRequest, metav1.StatusReasonBadRequest, resp, body)
	resp, body = get(h, "/api/v1/pods?resourceVersion=99")
	status := requireStatus(t, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, resp, body)
	require.Equal(t, metav1.CauseTypeResourceVersionTooLarge, status.Details.Causes[0].Type)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	resp, body = get(h, "/api/v1/pods?watch=true&sendInitialEvents=true")
	requireStatus(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, resp, body)
}

func TestScriptedErrorsTravelAsStatusOrAsABrokenConnection(t *testing.T) {
	h, pods, _, _ := cluster(t)
	pods.FailLists(1, cachetest.ErrTooManyRequests(17))
	resp, body := get(h, "/api/v1/pods")
	requireStatus(t, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, resp, body)
	require.Equal(t, "17", resp.Header.Get("Retry-After"))
	pods.FailLists(1, errTest)
	resp, body = get(h, "/api/v1/pods")
	requireStatus(t, http.StatusInternalServerError, metav1.StatusReasonInternalError, resp, body)
	require.Empty(t, resp.Header.Get("Retry-After"))
	for _, cut := range []error{cachetest.ErrConnectionRefused(), io.ErrUnexpectedEOF, io.EOF} {
		pods.FailWatches(1, cut)
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { get(h, "/api/v1/pods?watch=1") })
	}
	odd := &oddStatus{}
	pods.FailLists(1, odd)
	resp, _ = get(h, "/api/v1/pods")
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode, "a Status without a code")
}

type oddStatus struct{}

func (*oddStatus) Error() string         { return "odd" }
func (*oddStatus) Status() metav1.Status { return metav1.Status{} }

func TestAnswersThatAreNoListsAreServedAsTheyAre(t *testing.T) {
	h, pods, widgets, _ := cluster(t)
	for want, answer := range map[string]runtime.Object{
		"null": nil,
		`"columnDefinitions"`: &metav1.Table{
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}},
		},
		`"size":0`:               &widget{},
		`"items":[null]`:         &metav1.List{Items: []runtime.RawExtension{{}}},
		`"kind":"List"`:          &unstructured.UnstructuredList{},
		`"reason":"InternalErro`: &widgetWithChannel{},
		`encoding the answer: it`: &metav1.List{
			Items: []runtime.RawExtension{{Object: &widgetWithChannel{}}},
		},
	} {
		pods.MangleList(func(runtime.Object) runtime.Object { return answer })
		_, body := get(h, "/api/v1/pods")
		require.Contains(t, body, want)
	}
	widgets.MangleList(func(runtime.Object) runtime.Object { return &widgetList{} })
	_, body := get(h, "/apis/shop.example/v2/widgets")
	require.Contains(t, body, `"items":[]`)
}

// widgetWithChannel cannot be encoded in JSON.
type widgetWithChannel struct {
	widget
	C chan int
}

func (w *widgetWithChannel) DeepCopyObject() runtime.Object { return w }

func TestATokenIsAskedForIfOneIsSet(t *testing.T) {
	h := cachetest.NewHandler(
		cachetest.HandlerOptions{Token: "secret", Resources: []cachetest.Resource{{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
			Source:               filled(t, cachetest.Options{}),
		}}},
	)
	for _, given := range []string{"", "Bearer wrong", "secret", "Basic secret"} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		r.Header.Set("Authorization", given)
		resp, body := do(h, r)
		requireStatus(t, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, resp, body)
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	r.Header.Set("Authorization", "Bearer secret")
	resp, _ := do(h, r)
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestNewHandlerPanicsOnAProgrammersError(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	src := cachetest.NewSource(cachetest.Options{})
	for name, resources := range map[string][]cachetest.Resource{
		"no source": {{GroupVersionResource: pods}},
		"no version": {
			{GroupVersionResource: schema.GroupVersionResource{Resource: "pods"}, Source: src},
		},
		"twice": {
			{GroupVersionResource: pods, Source: src}, {GroupVersionResource: pods, Source: src},
		},
	} {
		require.Panics(
			t, func() { cachetest.NewHandler(cachetest.HandlerOptions{Resources: resources}) },
			name,
		)
	}
}

// frames reads a watch stream.
type frames struct {
	t    testing.TB
	body io.ReadCloser
	in   *bufio.Reader
}

func (f *frames) next() string {
	f.t.Helper()
	line, err := f.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return "EOF"
	}
	if err != nil {
		return err.Error()
	}
	var frame struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	require.NoError(f.t, json.Unmarshal(line, &frame))
	if frame.Type == watch.Error {
		status := &metav1.Status{}
		require.NoError(f.t, json.Unmarshal(frame.Object, status))
		require.Equal(f.t, "Status", status.Kind)
		return describe(f.t, watch.Event{Type: watch.Error, Object: status})
	}
	obj := &unstructured.Unstructured{}
	require.NoError(f.t, json.Unmarshal(frame.Object, obj))
	require.NotEmpty(f.t, obj.GetKind())
	return describe(f.t, watch.Event{Type: frame.Type, Object: obj})
}

func watchOver(t testing.TB, ctx context.Context, srv *cachetest.Server, path string) *frames {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	require.NoError(t, err)
	resp, err := srv.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return &frames{t: t, body: resp.Body, in: bufio.NewReader(resp.Body)}
}

func TestListAndWatchOverHTTPInVirtualTimeLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, widgets, _ := cluster(t)
		srv := cachetest.NewServer(h)
		start := time.Now()
		resp, err := srv.Client().Get(srv.URL + "/api/v1/pods?resourceVersion=0")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "a/1 a/2 a/3 b/1", names(t, string(body)))

		in := watchOver(
			t, t.Context(), srv,
			"/api/v1/namespaces/a/pods?watch=1&resourceVersion=4&allowWatchBookmarks=true&timeoutSeconds=90",
		)
		require.Equal(t, 1, pods.ActiveWatches(), "the answer begins before there is an event")
		apply(t, pods, pod("b", "2"), pod("a", "1"))
		require.Equal(t, "MODIFIED a/1 @6", in.next())
		remove(t, pods, "a", "2")
		require.Equal(t, "DELETED a/2 @7", in.next())
		require.Equal(t, "BOOKMARK @7", in.next())
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, "BOOKMARK @7", in.next())
		require.Equal(t, 88*time.Second, time.Since(start), "two seconds before its end")
		require.Equal(t, "EOF", in.next())
		require.Equal(t, 90*time.Second, time.Since(start))

		in = watchOver(
			t, t.Context(), srv,
			"/apis/shop.example/v2/widgets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		)
		require.Equal(t, "ADDED a/1 @1", in.next())
		require.Equal(t, "BOOKMARK end @1", in.next())
		widgets.Inject(watch.Event{Type: watch.Added, Object: &widgetWithChannel{}})
		require.Equal(t, "ERROR InternalError", in.next())
		require.Equal(t, "EOF", in.next())

		in = watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1&resourceVersion=7")
		pods.Inject(
			watch.Event{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonGone}})
		require.Equal(t, "ERROR Gone", in.next())
		pods.BreakWatches(cachetest.ErrExpired())
		require.Equal(t, "ERROR Expired", in.next())
		require.Equal(t, "EOF", in.next())

		open := watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1&resourceVersion=7")
		srv.Close()
		require.NotEqual(t, "EOF", open.next(), "an end that is no clean one")
		synctest.Wait()
		require.Zero(t, pods.ActiveWatches())
		require.Zero(t, srv.Listener.Connections())
		srv.Close()
		_, err = srv.Client().Get(srv.URL)
		require.ErrorContains(t, err, "connection refused")
	})
}

func TestAWatchOverHTTPEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, _, _ := cluster(t)
		srv := cachetest.NewServer(h)
		defer srv.Close()
		ctx, cancel := context.WithCancel(t.Context())
		_ = watchOver(t, ctx, srv, "/api/v1/pods?watch=1&resourceVersion=4")
		unread := watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1")
		require.Equal(t, 2, pods.ActiveWatches())
		cancel()
		require.NoError(t, unread.body.Close())
		synctest.Wait()
		require.Zero(t, pods.ActiveWatches())
	})
}

func TestAWatchThatCannotBeServedIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, _, _ := cluster(t)
		pods.OnWatch(func(metav1.ListOptions) error {
			time.AfterFunc(
				time.Second,
				func() { pods.Inject(watch.Event{Type: watch.Added, Object: &widgetWithChannel{}}) },
			)
			return nil
		})
		_, body := get(h, "/api/v1/pods?watch=1&resourceVersion=4")
		require.Contains(t, body, `"type":"ERROR"`)
		synctest.Wait()
		require.Zero(t, pods.ActiveWatches())
	})
}

func TestManyEventsAndALargeListPassOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, _, _ := cluster(t)
		srv := cachetest.NewServer(h)
		defer srv.Close()
		in := watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1&resourceVersion=4")
		for i := range 3000 {
			u := pod("c", "x")
			u.SetName(strings.Repeat("x", 50) + string(rune('a'+i%26)))
			apply(t, pods, u)
		}
		for range 3000 {
			require.Contains(t, in.next(), "c/xxx")
		}
		for i := range 2000 {
			u := pod("d", strings.Repeat("y", 100))
			u.SetGenerateName(u.GetName())
			u.SetName("")
			_ = i
			apply(t, pods, u)
		}
		resp, err := srv.Client().Get(srv.URL + "/api/v1/namespaces/d/pods")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Greater(t, len(body), 1<<19)
		require.Equal(t, 2000, strings.Count(names(t, string(body)), "d/"))
	})
}
