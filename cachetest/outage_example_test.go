package cachetest_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

type Pod = metav1.PartialObjectMetadata

func newPod(name string) *Pod {
	return &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// Controller is the controller in the documentation's test. It handles each pod once.
type Controller struct {
	pods *cache.Informer[*Pod]

	mu      sync.Mutex
	handled []string
}

func NewController(source cache.Source) *Controller {
	return &Controller{pods: cache.NewTypedInformer(source, cache.InformerConfig[*Pod]{})}
}

func (c *Controller) Run(ctx context.Context) {
	_, err := c.pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*Pod]{AddFunc: func(pod *Pod) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.handled = append(c.handled, pod.Name)
	}})
	if err == nil {
		_ = c.pods.Run(ctx)
	}
}

func (c *Controller) Handled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.handled)
}

func TestAControllerSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewTestSourceOf[*Pod](t, cachetest.Options{})
		src.MustApply(t, newPod("web-1"))
		controller := NewController(src)
		// klog.Logger{} keeps the failures of the scripted outage out of the test's output.
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		go controller.Run(ctx)
		synctest.Wait()
		require.Equal(t, []string{"web-1"}, controller.Handled())

		// An outage of ten minutes, after which the server's history of that time is compacted.
		src.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		src.CloseWatches()
		src.MustApply(t, newPod("web-2"))
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, len(src.Requests()), 50, "the server was not hammered")
		src.CompactAll()
		src.Heal()

		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"web-1", "web-2"}, controller.Handled())
	})
}

// The package documentation shows the body of the test above, line by line.
func TestTheDocumentationShowsATestThatPasses(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	code, err := os.ReadFile("outage_example_test.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(code), "func TestAControllerSurvivesAnOutage(t *testing.T) {\n")
	require.True(t, found)
	body, _, _ = strings.Cut(body, "\n}\n")
	var lines []string
	for line := range strings.Lines(body) {
		lines = append(lines, "//"+line)
	}
	require.Contains(t, string(doc), strings.Join(lines, ""))
}

func TestASourceOfOneTypeSendsBookmarksOfItBeforeItHasAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := cachetest.NewTestSourceOf[*Pod](t, cachetest.Options{})
		events, err := src.Watch(metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true})
		require.NoError(t, err)
		defer events.Stop()
		require.IsType(t, &Pod{}, (<-events.ResultChan()).Object)
	})
}
