package cachetest_test

import (
	"bufio"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

func ExampleSource() {
	src := cachetest.NewSource(cachetest.Options{})
	defer src.Close()

	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "default", "name": "web-1"},
	}}
	if err := src.Apply(pod); err != nil {
		fmt.Println(err)
		return
	}
	list, err := src.List(metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	version := list.(*unstructured.UnstructuredList).GetResourceVersion()
	fmt.Println("listed at version", version)

	events, err := src.Watch(metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := src.Delete("default", "web-1"); err != nil {
		fmt.Println(err)
		return
	}
	event := <-events.ResultChan()
	deleted := event.Object.(*unstructured.Unstructured)
	fmt.Println(event.Type, deleted.GetName(), "at version", deleted.GetResourceVersion())

	// Output:
	// listed at version 1
	// DELETED web-1 at version 2
}

func ExampleSource_FailLists() {
	src := cachetest.NewSource(cachetest.Options{})
	src.FailLists(1, cachetest.ErrTooManyRequests(5))

	_, err := src.List(metav1.ListOptions{})
	seconds, _ := apierrors.SuggestsClientDelay(err)
	fmt.Println(apierrors.IsTooManyRequests(err), seconds)
	_, err = src.List(metav1.ListOptions{})
	fmt.Println(err)

	// Output:
	// true 5
	// <nil>
}

// FailRequests applies to the next request, whatever it is: a reflector may begin with a streaming
// list, which is a watch.
func ExampleSource_FailRequests() {
	src := cachetest.NewSource(cachetest.Options{})
	defer src.Close()
	src.FailRequests(2, cachetest.ErrConnectionRefused())

	_, err := src.Watch(metav1.ListOptions{})
	fmt.Println(err)
	_, err = src.List(metav1.ListOptions{})
	fmt.Println(err)
	_, err = src.List(metav1.ListOptions{})
	fmt.Println(err)

	// Output:
	// Get "http://cachetest.invalid/": dial tcp: connect: connection refused
	// Get "http://cachetest.invalid/": dial tcp: connect: connection refused
	// <nil>
}

func ExampleNewHandler() {
	src := cachetest.NewSource(cachetest.Options{})
	defer src.Close()
	handler := cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Kind:                 "Pod",
		Source:               src,
	}}})
	srv := cachetest.NewServer(handler)
	defer srv.Close()

	resp, err := srv.Client().Get(srv.URL + "/api/v1/pods?watch=1&resourceVersion=0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	pod := &unstructured.Unstructured{}
	pod.SetNamespace("default")
	pod.SetName("web-1")
	if err := src.Apply(pod); err != nil {
		fmt.Println(err)
		return
	}
	line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
	if err != nil {
		fmt.Println(err)
		return
	}
	var frame struct {
		Type   string
		Object unstructured.Unstructured
	}
	if err := json.Unmarshal(line, &frame); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(frame.Type, frame.Object.GetKind(), frame.Object.GetName())

	// Output:
	// ADDED Pod web-1
}
