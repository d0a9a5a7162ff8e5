package kubeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

var listedPods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podWith returns an item of a list of pods, with the given metadata field for the namespace.
func podWith(namespace, name string) string {
	return fmt.Sprintf(
		`{"metadata":{%s,"name":%q,"uid":%[2]q,"resourceVersion":"5"}}`, namespace, name)
}

func listOf(items ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + strings.Join(
		items, ",") + `]}`
}

// relisted responds to each list with the next of some bodies, then always with the last, and
// expires the first watch after a second.
type relisted struct {
	bodies []string
	lists  atomic.Int64
}

func (a *relisted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.WriteString(w, a.bodies[min(int(a.lists.Add(1)), len(a.bodies))-1])
		return
	}
	w.(http.Flusher).Flush()
	if a.lists.Load() == 1 {
		select {
		case <-time.After(time.Second):
			_, _ = io.WriteString(
				w,
				`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`+"\n",
			)
		case <-r.Context().Done():
		}
		return
	}
	<-r.Context().Done()
}

// If a damaged byte makes an item's object unknown, the list is requested again. Fails if the item
// is quarantined at once: its object would count as absent, and handlers would be notified of a
// deletion.
func TestB24AnItemWithoutAReadableKeyDeletesNothing(t *testing.T) {
	for what, namespace := range map[string]string{
		"a namespace that cannot be read": `"namespace":"` + "\n" + `"`,
		"a field that is none":            `"namespace"?"n"`,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := listOf(podWith(`"namespace":"n"`, "a"), podWith(`"namespace":"n"`, "b"))
				api := &relisted{
					bodies: []string{
						good,
						listOf(podWith(`"namespace":"n"`, "a"), podWith(namespace, "b")),
						good,
					},
				}
				server := cachetest.NewServer(api)
				source, err := kubeapi.New(kubeapi.Options{
					BaseURL:    server.URL,
					Resource:   listedPods,
					HTTPClient: server.Client(),
				})
				require.NoError(t, err)
				var deletions atomic.Int64
				var causes []cache.Cause // used by the reflector's goroutine until it returns
				informer := cache.NewSharedIndexInformerWithOptions(
					source,
					&unstructured.Unstructured{},
					cache.SharedIndexInformerOptions{
						ReflectorOptions: cache.ReflectorOptions{
							Strategy:     cache.ListUnpaged,
							ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { causes = append(causes, cache.CauseOf(err)) },
						},
					},
				)
				_, err = informer.AddEventHandler(
					cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deletions.Add(1) }})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); informer.RunWithContext(ctx) }()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				require.ElementsMatch(t, []string{"n/a", "n/b"}, informer.GetIndexer().ListKeys())
				require.EqualValues(t, 3, api.lists.Load())
				cancel()
				<-done
				server.Close()
				require.Zero(t, deletions.Load())
				require.Equal(
					t, []cache.Cause{cache.CauseExpired, cache.CauseInvalidResponse}, causes)
			})
		})
	}
}

// If the same bytes arrive again, the server sends them. The same holds for more such items than a
// network damages. Fails if either is requested again forever.
func TestItemsWithoutAReadableKeyFailAListOnce(t *testing.T) {
	const most = 8
	bad := podWith(`"namespace"?"n"`, "b")
	for _, test := range []struct{ count, fails int }{{1, 1}, {most, 1}, {most + 1, 0}} {
		items := []string{podWith(`"namespace":"n"`, "a")}
		for i := range test.count {
			items = append(items, strings.Replace(bad, `"5"`, fmt.Sprintf(`"%d"`, i), 1))
		}
		server := cachetest.NewServer(&relisted{bodies: []string{listOf(items...)}})
		source, err := kubeapi.New(
			kubeapi.Options{BaseURL: server.URL, Resource: listedPods, HTTPClient: server.Client()})
		require.NoError(t, err)
		for range test.fails {
			_, err = source.List(metav1.ListOptions{})
			require.ErrorIs(t, err, kubeapi.ErrMalformed)
			require.ErrorContains(t, err, "item 2 of the list")
		}
		undecoded := 0
		_, err = source.ListItems(
			t.Context(),
			metav1.ListOptions{},
			func(_ metav1.ListMeta, item runtime.Object) error {
				if _, ok := item.(*kubeapi.UndecodableObject); ok {
					undecoded++
				}
				return nil
			},
		)
		require.NoError(t, err)
		require.Equal(t, test.count, undecoded)
		server.Close()
	}
}
