package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

func TestTheMirrorEqualsTheSourceAfterTheConnectionWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), nil, &out))
		for _, line := range []string{
			"synced: 300 objects at version 40300\n",
			`  failure, cause "connection-lost", retrying: `,
			`  failure, cause "connection-refused", retrying: `,
			" more changes\n",
			"try next:\n",
			"with client-go: ",
			"watching again from version 40",
			"the mirror equals the source: ",
		} {
			assert.Contains(t, out.String(), line)
		}
		single := strings.Count(out.String(), "  added ") + strings.Count(out.String(), "  updated ") +
			strings.Count(out.String(), "  deleted ")
		assert.Equal(t, printedChanges, single)
	})
}

func TestAServerThatDoesNotAnswerEndsTheProgramWithTheReason(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	untilItFails := writer(func(text []byte) {
		if bytes.Contains(text, []byte("failure, cause")) {
			cancel()
		}
	})
	require.ErrorContains(t, run(ctx, []string{"-server", "http://127.0.0.1:1"}, untilItFails), "connection refused")
}

// Fails if the program repeats a request that the server has refused for good.
func TestAResourceThatTheServerRefusesEndsTheProgramAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		text string
	}{
		"not found":   {http.StatusNotFound, "group/version/plural, for example apps/v1/deployments"},
		"not allowed": {http.StatusMethodNotAllowed, "deployments cannot be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(test.code)
			}))
			defer api.Close()
			err := run(t.Context(), []string{"-server", api.URL, "-resource", "deployments"}, io.Discard)
			require.ErrorContains(t, err, test.text)
			require.ErrorContains(t, err, "deployments")
			require.LessOrEqual(t, requests.Load(), int32(3))
		})
	}
}

func TestAnEmptyNamespaceIsReported(t *testing.T) {
	demo, err := startDemoServer()
	require.NoError(t, err)
	defer demo.stop()
	api := httptest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: demo.pods}},
	}))
	defer api.Close()
	var out bytes.Buffer
	args := []string{"-server", api.URL, "-namespace", "nowhere", "-for", "100ms"}
	require.NoError(t, run(t.Context(), args, &out))
	assert.Contains(t, out.String(), `there are no pods in namespace "nowhere"`)
}

type writer func(text []byte)

func (w writer) Write(text []byte) (int, error) {
	w(text)
	return len(text), nil
}

func TestTheStatusPageIsServedWhileTheMirrorRuns(t *testing.T) {
	demo, err := startDemoServer()
	require.NoError(t, err)
	defer demo.stop()
	api := httptest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: demo.pods}},
	}))
	defer api.Close()
	page, err := pageAt(t, "synced: ", "-server", api.URL, "-for", "500ms")
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, page, "<dd>300</dd>")
}

// Fails if the page is only served once there is a first list.
func TestTheStatusPageShowsWhyThereIsNoFirstList(t *testing.T) {
	page, err := pageAt(t, "  failure, cause ", "-server", "http://127.0.0.1:1")
	require.ErrorContains(t, err, "connection refused")
	assert.Contains(t, page, "connection-refused")
}

// pageAt runs the program with a status page, and returns the page at the first line that begins
// with a text. Then the program is interrupted.
func pageAt(t *testing.T, begin string, args ...string) (page string, err error) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reader, out := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		ran <- run(ctx, append(args, "-status", "127.0.0.1:0"), out)
		out.Close()
	}()
	address := ""
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		url, isAddress := strings.CutPrefix(lines.Text(), "status page: ")
		if isAddress {
			address = url
		}
		// The first failure may be printed before the address.
		if page == "" && address != "" && strings.HasPrefix(lines.Text(), begin) {
			page = get(t, address+"/?name=quickstart")
			interrupt()
		}
	}
	return page, <-ran
}

func get(t *testing.T, url string) string {
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func TestAStatusPageThatCannotBeServedEndsTheProgramWithTheReason(t *testing.T) {
	require.ErrorIs(t, run(t.Context(), []string{"-status", "0.0.0.0:0"}, io.Discard), statuspage.ErrNotLoopback)
}

func TestADifferenceIsNamedByItsKey(t *testing.T) {
	list := []runtime.Object{pod(0, "Running")}
	require.NoError(t, difference(list, map[string]Object{"shop/web-000": pod(0, "Running")}))
	for _, mirrored := range []map[string]Object{
		{},
		{"shop/web-000": pod(0, "Pending")},
		{"shop/web-000": pod(0, "Running"), "search/web-001": pod(1, "Running")},
	} {
		require.ErrorContains(t, difference(list, mirrored), "/web-00")
	}
}

func TestAResourceIsNamedInOneTwoOrThreeParts(t *testing.T) {
	for text, want := range map[string]schema.GroupVersionResource{
		"pods":                {Version: "v1", Resource: "pods"},
		"v1/nodes":            {Version: "v1", Resource: "nodes"},
		"apps/v1/deployments": {Group: "apps", Version: "v1", Resource: "deployments"},
	} {
		assert.Equal(t, want, parseResource(text))
	}
}
