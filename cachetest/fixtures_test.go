package cachetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// pod returns an unstructured object; labels are given in pairs.
func pod(namespace, name string, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(podKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	if len(labels) > 0 {
		set := map[string]string{}
		for i := 0; i < len(labels); i += 2 {
			set[labels[i]] = labels[i+1]
		}
		u.SetLabels(set)
	}
	return u
}

// widget is a typed object like those of generated clients.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*widget))
	}
	return &c
}

func newWidgetList() runtime.Object { return &widgetList{} }

func newWidget(namespace, name string, size int) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Size: size}
}

// filled returns a source with a/1 to a/3 and b/1 at versions 1 to 4.
func filled(t testing.TB, options cachetest.Options) *cachetest.Source {
	t.Helper()
	src := cachetest.NewSource(options)
	require.NoError(t, src.Apply(pod("a", "1"), pod("a", "2"), pod("a", "3"), pod("b", "1")))
	return src
}

// apply creates or updates objects.
func apply(t testing.TB, src *cachetest.Source, objs ...runtime.Object) {
	t.Helper()
	require.NoError(t, src.Apply(objs...))
}

func remove(t testing.TB, src *cachetest.Source, namespace, name string) {
	t.Helper()
	_, err := src.Delete(namespace, name)
	require.NoError(t, err)
}

// list requires that a list succeeds, and returns it with the names of its items.
func list(t testing.TB, from interface {
	List(metav1.ListOptions) (runtime.Object, error)
}, opts metav1.ListOptions) ([]string, metav1.ListInterface) {
	t.Helper()
	obj, err := from.List(opts)
	require.NoError(t, err)
	accessor, err := meta.ListAccessor(obj)
	require.NoError(t, err)
	items, err := meta.ExtractListWithAlloc(obj)
	require.NoError(t, err)
	names := []string{}
	for _, item := range items {
		names = append(names, nameOf(t, item))
	}
	return names, accessor
}

func nameOf(t testing.TB, obj runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	require.NoError(t, err)
	if accessor.GetNamespace() == "" {
		return accessor.GetName()
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

func versionOf(t testing.TB, obj runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	require.NoError(t, err)
	return accessor.GetResourceVersion()
}

// open requires that a watch opens, and stops it at the end of the test.
func open(t testing.TB, from interface {
	Watch(metav1.ListOptions) (watch.Interface, error)
}, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := from.Watch(opts)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// received reads n events and writes each as "ADDED a/1 @3". It stops at a closed channel, written
// as "closed", and after a virtual day without an event, written as "silence".
func received(t testing.TB, w watch.Interface, n int) []string {
	t.Helper()
	var out []string
	for range n {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(out, "closed")
			}
			out = append(out, describe(t, event))
		case <-time.After(24 * time.Hour):
			return append(out, "silence")
		}
	}
	return out
}

func describe(t testing.TB, event watch.Event) string {
	t.Helper()
	if status, ok := event.Object.(*metav1.Status); ok {
		return string(event.Type) + " " + string(status.Reason)
	}
	if event.Object == nil {
		return string(event.Type) + " nil"
	}
	accessor, err := meta.Accessor(event.Object)
	require.NoError(t, err)
	if event.Type == watch.Bookmark {
		end := ""
		if accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			end = " end"
		}
		return "BOOKMARK" + end + " @" + accessor.GetResourceVersion()
	}
	return string(event.Type) + " " + nameOf(t, event.Object) + " @" + accessor.GetResourceVersion()
}

// ready returns the events that have arrived.
func ready(t testing.TB, w watch.Interface) []string {
	t.Helper()
	out := []string{}
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(out, "closed")
			}
			out = append(out, describe(t, event))
		case <-time.After(time.Nanosecond):
			return out
		}
	}
}

func requireReason(t testing.TB, reason metav1.StatusReason, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, reason, apierrors.ReasonForError(err), "%v", err)
}

func pointer[T any](v T) *T { return &v }
