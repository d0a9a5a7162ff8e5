// Package handlers has callbacks that receive objects as interface values.
package handlers

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
)

func register() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			_, _ = json.Marshal(object) // want "escaped : passed to encoding/json.Marshal"
		},
		DeleteFunc: onDelete,
	}
}

func onDelete(object any) {
	pod, ok := object.(*corev1.Pod)
	if ok {
		_ = pod.Spec.NodeName // want "read spec.nodeName"
		return
	}
	tombstone, ok := object.(cache.DeletedFinalStateUnknown)
	if !ok {
		fmt.Println("unexpected", object) // no pod, since the assertion failed
		return
	}
	pod, ok = tombstone.Obj.(*corev1.Pod)
	if !ok {
		fmt.Printf("unexpected %v\n", tombstone.Obj) // nor this
		return
	}
	_ = pod.Status.Phase       // want "read status.phase"
	fmt.Println(tombstone.Obj) // want "escaped : passed to fmt.Println"
}

type printer struct{}

func (printer) OnAdd(object any, isInInitialList bool) {
	fmt.Println(object) // want "escaped : passed to fmt.Println"
}

func (printer) OnUpdate(old, object any) {}

func (printer) OnDelete(object any) {}

func handler() cache.ResourceEventHandler { return printer{} }

// logf receives what its callers pass.
func logf(format string, args ...any) { fmt.Printf(format, args...) }

func logs(pod *corev1.Pod) {
	logf("%s", pod.Status.PodIP) // want "read status.podIP"
}

type convert func(object any) error

var converters = []convert{toPod}

// toPod is called with objects, of which those that are no pods are printed.
func toPod(object any) error {
	if _, ok := object.(*corev1.Pod); !ok {
		return fmt.Errorf("unexpected %v", object)
	}
	return nil
}

func convertAll(pod *corev1.Pod) error { return converters[0](pod) }
