package cachetest_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// requestInput converts a recorded request of a reflector to a request of FuzzRequests, for the
// resource of its handler and at a version near its source's.
func requestInput(answer *recording.Body) recording.Input {
	path := strings.Replace(answer.Path, "/apis/simulation/v1/", "/api/v1/", 1)
	path = strings.Replace(path, "things", "pods", 1)
	query, err := url.ParseQuery(answer.Query)
	if err != nil {
		query = url.Values{}
	}
	var things []string
	for name := range query {
		thing := name
		switch value := query.Get(name); name {
		case "resourceVersion":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				query.Set(name, strconv.Itoa(1+n%6)) // the source is at version 4
			}
			thing += query.Get(name)
		case "resourceVersionMatch", "limit", "sendInitialEvents":
			thing += value
		case "timeoutSeconds":
			query.Set(name, "300")
		}
		things = append(things, thing)
	}
	slices.Sort(things)
	if strings.Contains(path, "/namespaces/") {
		things = append(things, "namespaced")
	}
	return recording.NewInput(things, answer.Method, path, query.Encode(), "Bearer secret")
}

func TestRequestInputsAreForTheResourceThatThereIs(t *testing.T) {
	input := requestInput(&recording.Body{
		Method: "GET", Path: "/apis/simulation/v1/namespaces/ab/things",
		Query: "limit=3&resourceVersion=700&timeoutSeconds=451",
	})
	require.Equal(
		t,
		[]any{
			"GET", "/api/v1/namespaces/ab/pods", "limit=3&resourceVersion=5&timeoutSeconds=300",
			"Bearer secret",
		},
		input.Values,
	)
	require.Contains(t, input.Features, "namespaced")
}
