package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod is what the controller wants to know of a pod. A field that is not here is read
// over, and takes no memory.
type Pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

// DeepCopyObject makes *Pod a runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// ConfigMap is what the controller writes.
type ConfigMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

// DeepCopyObject makes *ConfigMap a runtime.Object.
func (m *ConfigMap) DeepCopyObject() runtime.Object {
	c := *m
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Data = make(map[string]string, len(m.Data))
	for key, value := range m.Data {
		c.Data[key] = value
	}
	return &c
}
