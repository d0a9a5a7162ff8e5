package kubeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/kubeapi"
)

// A controller that needs only the nodes and images of pods need not hold the rest of them. Its
// objects have the mark, and cannot be written back.
func ExampleProjectedFields() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[{
			"metadata":{"name":"web-0","labels":{"app":"web"},"managedFields":[{"manager":"kubelet"}]},
			"spec":{"nodeName":"node-7","containers":[{"name":"main","image":"web:1","env":[{"name":"A","value":"B"}]}]}}]}`)
	}))
	defer server.Close()

	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:  server.URL,
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Fields:   []string{"spec.nodeName", "spec.containers.image"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = source.ListItems(context.Background(), metav1.ListOptions{}, func(_ metav1.ListMeta, item runtime.Object) error {
		pod := item.(*unstructured.Unstructured)
		fmt.Println(pod.GetName(), pod.GetLabels(), pod.Object["spec"])
		fields, projected := kubeapi.ProjectedFields(pod)
		fmt.Println(projected, fields)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// web-0 map[app:web] map[containers:[map[image:web:1]] nodeName:node-7]
	// true [spec.nodeName spec.containers.image]
}
