// Package escapes lets objects reach code that is not analyzed.
package escapes

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func encoding(pod *corev1.Pod, to io.Writer) {
	_, _ = json.Marshal(pod)               // want "escaped : passed to encoding/json.Marshal"
	_ = json.NewEncoder(to).Encode(*pod)   // want "escaped : passed to (*encoding/json.Encoder).Encode"
	_, _ = json.Marshal(pod.Spec.Affinity) // want "escaped spec.affinity: passed to encoding/json.Marshal"
	_, _ = pod.Marshal()                   // want "escaped : passed to (*k8s.io/api/core/v1.Pod).Marshal"
}

func reflection(pod *corev1.Pod) {
	_ = reflect.ValueOf(pod) // want "escaped : passed to reflect.ValueOf"
}

func formatting(pod *corev1.Pod) {
	fmt.Println(pod.Name, pod)        // want "read metadata.name" "escaped : passed to fmt.Println"
	_ = fmt.Sprintf("%v", pod.Status) // want "escaped status: passed to fmt.Sprintf"
	_ = fmt.Sprintf("%T %p %%", pod, pod)
	_ = fmt.Sprintf("%T %v", pod, pod) // want "escaped : passed to fmt.Sprintf"
	_ = pod.String()                   // want "escaped : passed to (*k8s.io/api/core/v1.Pod).String"
	println(pod)                       // want "escaped : printed"
}

// leaves are read, not followed.
func leaves(pod *corev1.Pod) {
	_ = strings.Join(pod.Spec.Containers[0].Args, " ") // want "read spec.containers.args"
	fmt.Println(pod.Annotations, pod.Status.StartTime) // want "read metadata.annotations" "read status.startTime"
}

func converters(pod *corev1.Pod) {
	_, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(pod) // want "escaped : passed to (*k8s.io/apimachinery/pkg/runtime.unstructuredConverter).ToUnstructured"
}

func panics(pod *corev1.Pod) {
	panic(pod) // want "escaped : passed to panic"
}

func throughHelper(pod *corev1.Pod) { encode(pod) }

func encode(value any) {
	_, _ = json.Marshal(value) // want "escaped : passed to encoding/json.Marshal"
}

func lists(pods []*corev1.Pod, list *corev1.PodList, byName map[string]corev1.Pod) {
	_, _ = json.Marshal(pods)   // want "escaped : passed to encoding/json.Marshal"
	_, _ = json.Marshal(list)   // want "escaped : passed to encoding/json.Marshal"
	_, _ = json.Marshal(byName) // want "escaped : passed to encoding/json.Marshal"
}

func functionValue(pod *corev1.Pod, f func(*corev1.Pod, int, bool)) {
	f(pod, 1, true) // want "escaped : passed to a function value"
}

type writer interface {
	write(object *corev1.Pod) error
}

type encoder interface {
	Encode(object any) error
}

// ownInterface has no implementation outside.
func ownInterface(pod *corev1.Pod, w writer) {
	_ = w.write(pod)
}

// filledOutside has one.
func filledOutside(pod *corev1.Pod, to io.Writer) {
	var e encoder = json.NewEncoder(to)
	_ = e.Encode(pod) // want "escaped : passed to (github.com/watchmirror/cache/tools/fieldsused/testdata/program/escapes.encoder).Encode"
}

// deferred and concurrent calls are calls.
func deferred(pod *corev1.Pod) {
	defer fmt.Print(pod)    // want "escaped : passed to fmt.Print"
	go fmt.Print(&pod.Spec) // want "escaped spec: passed to fmt.Print"
}

// example is no object of a cache.
func example() {
	fmt.Println(&corev1.Pod{})
}
