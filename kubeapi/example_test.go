package kubeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/watchmirror/cache/kubeapi"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// api is a cluster with one pod, which is deleted soon after.
func api(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/shop/"):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden"}`)
	case r.URL.Query().Get("watch") == "true":
		_, _ = io.WriteString(w, `{"type":"DELETED","object":{"metadata":{"name":"web-0","resourceVersion":"12"}}}`+"\n")
	default:
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},
			"items":[{"metadata":{"name":"web-0","resourceVersion":"9"}}]}`)
	}
}

// A source lists, returns the version, and watches from it. Usually a reflector does this.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(api))
	defer server.Close()

	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:   server.URL,
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: "shop",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	list, err := source.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	version, _ := meta.NewAccessor().ResourceVersion(list)
	fmt.Println(meta.LenList(list), "pod at version", version)

	stream, err := source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		name, _ := meta.NewAccessor().Name(event.Object)
		fmt.Println(event.Type, name)
	}
	// Output:
	// 1 pod at version 10
	// DELETED web-0
}

// A refusal of the server is an error of apimachinery.
func ExampleListerWatcher_List() {
	server := httptest.NewServer(http.HandlerFunc(api))
	defer server.Close()

	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:  server.URL,
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = source.List(metav1.ListOptions{})
	fmt.Println(errors.IsForbidden(err), errors.ReasonForError(err))
	// Output: true Forbidden
}

// The usual access to a cluster from one of its pods.
func ExampleBearerTokenFile() {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	client, err := kubeapi.ClientWithCA(account + "ca.crt")
	if err != nil {
		fmt.Println("not in a pod")
		return
	}
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    "https://kubernetes.default.svc",
		Resource:   schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		HTTPClient: client,
		Authorize:  kubeapi.BearerTokenFile(account + "token"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = source.List(metav1.ListOptions{Limit: 1})
	fmt.Println("may list deployments:", err == nil)
}

// With an example of the type, objects have that type: here metadata only, and the server sends
// only that. The items are received one by one, as a reflector does.
func ExampleListerWatcher_ListItems() {
	server := httptest.NewServer(http.HandlerFunc(api))
	defer server.Close()

	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    server.URL,
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace:  "shop",
		ObjectType: &metav1.PartialObjectMetadata{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := source.ListItems(context.Background(), metav1.ListOptions{},
		func(_ metav1.ListMeta, item runtime.Object) error {
			switch item := item.(type) {
			case *metav1.PartialObjectMetadata:
				fmt.Println(item.Name, "at version", item.ResourceVersion)
			case *kubeapi.UndecodableObject:
				fmt.Println(item.Name, "could not be decoded:", item.DecodeError())
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the list is at version", list.ResourceVersion)
	// Output:
	// web-0 at version 9
	// the list is at version 10
}
