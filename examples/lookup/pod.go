package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod is what this program wants to know of a pod. Any struct with these two embedded
// and a DeepCopyObject can be mirrored; so can the types of k8s.io/api.
type Pod struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Node   string
	Images []string
}

// DeepCopyObject makes *Pod a runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Images = append([]string(nil), p.Images...)
	return &c
}

func pod(namespace, name, node string, images ...string) *Pod {
	return &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Node: node, Images: images}
}
