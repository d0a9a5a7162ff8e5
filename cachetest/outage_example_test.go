package cachetest_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func TestAnInformerPausesBetweenRequestsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewTestSource(t, cachetest.Options{})
		src.FailRequests(3, cachetest.ErrConnectionRefused())
		pods := cache.NewInformerFor(src, cache.InformerConfig[*unstructured.Unstructured]{})
		go pods.Run(t.Context())
		if err := pods.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		requests := src.Requests()
		if len(requests) < 4 {
			t.Fatalf("%d requests, want 3 that fail and one more", len(requests))
		}
		for i, request := range requests[:3] {
			pause := requests[i+1].Time.Sub(request.Answered)
			if request.Err == nil || pause < 50*time.Millisecond {
				t.Errorf("request %d: %s answered %v, next after %v", i, request.Verb, request.Err, pause)
			}
		}
		if err := requests[3].Err; err != nil {
			t.Errorf("request 3: %v", err)
		}
	})
}

// The package's documentation shows the body of the test above, line by line.
func TestTheDocumentationShowsATestThatPasses(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	code, err := os.ReadFile("outage_example_test.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(code), "func TestAnInformerPausesBetweenRequestsThatFail(t *testing.T) {\n")
	require.True(t, found)
	body, _, _ = strings.Cut(body, "\n}\n")
	var lines []string
	for line := range strings.Lines(body) {
		lines = append(lines, "//"+line)
	}
	require.Contains(t, string(doc), strings.Join(lines, ""))
}
