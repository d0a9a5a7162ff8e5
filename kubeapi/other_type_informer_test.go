package kubeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// Node is a Go type with the name of its kind.
type Node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (n *Node) DeepCopyObject() runtime.Object {
	return &Node{TypeMeta: n.TypeMeta, ObjectMeta: *n.ObjectMeta.DeepCopy()}
}

// listOnly responds to each list with a body and to no watch.
type listOnly string

func (body listOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// A cache that is empty and synced because every object is of another type makes a controller
// delete what it does not find. Fails if such a list counts as one of no objects, wherever the
// response names the type.
func TestAnInformerDoesNotSyncWithAListOfAnotherType(t *testing.T) {
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Node"})
	examples := map[string]runtime.Object{
		"a Go type":      &Node{},
		"a type in full": &Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}},
		"unstructured":   untyped,
	}
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"%d"}}`
	items := fmt.Sprintf(`"metadata":{"resourceVersion":"5"},"items":[`+pod+`,`+pod+`]}`, 1, 2)
	bodies := map[string]string{
		"a list of any kind":            `{"apiVersion":"v1","kind":"List",` + items,
		"a list without a kind":         `{` + items,
		"an empty list of another kind": `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}`,
	}
	for exampleName, example := range examples {
		for bodyName, body := range bodies {
			t.Run(exampleName+", "+bodyName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, err := kubeapi.New(kubeapi.Options{
						BaseURL:    "http://api.test",
						Resource:   schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
						ObjectType: example,
						HTTPClient: &http.Client{Transport: listOnly(body)},
						Encodings:  []kubeapi.Encoding{kubeapi.JSON},
					})
					require.NoError(t, err)
					informer := cache.NewSharedIndexInformerWithOptions(
						source, example, cache.SharedIndexInformerOptions{
							ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListUnpaged},
						})
					ctx, end := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
					go informer.RunWithContext(ctx)
					time.Sleep(time.Minute)
					status := informer.(cache.StatusReporter).Status()
					require.False(t, status.Synced)
					require.Empty(t, status.Quarantined)
					require.NotNil(t, status.LastFailure)
					wanted := cache.Cause("wrong-type")
					if strings.Contains(body, "PodList") {
						wanted = cache.CauseInvalidResponse
					}
					require.Equal(t, wanted, status.LastFailure.Cause)
					require.ErrorContains(t, status.LastFailure.Err, "Pod")
					require.ErrorContains(t, status.LastFailure.Err, "Node")
					end()
					synctest.Wait()
				})
			})
		}
	}
}
