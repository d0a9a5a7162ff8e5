// Package misspelt names fields that do not exist, and fields that are not known when it is checked.
package misspelt

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/kubeapi"
)

// Nodes names fields of nodes.
func Nodes() kubeapi.Options {
	return kubeapi.Options{
		ObjectType: &corev1.Node{},
		Fields: []string{
			"spec.podCIDR",
			"spec.podCidr",           // want "names "spec.podCidr": v1.NodeSpec has no field "podCidr", but "podCIDR""
			"status.adresses.type",   // want "v1.NodeStatus has no field "adresses""
			"status.addresses[*]",    // want "the form is spec.nodeName"
			"spec.podCIDR.x",         // want "string has no fields that can be selected"
			"status.capacity.cpu.x",  // want "resource.Quantity has no fields that can be selected"
			"metadata.annotations.x", // an own key
		},
	}
}

// Unstructured names fields of any type.
func Unstructured() kubeapi.Options {
	return kubeapi.Options{Fields: []string{
		"spec.anything",
		"spec..anything", // want "the form is spec.nodeName"
	}}
}

// Assigned sets fields later.
func Assigned() kubeapi.Options {
	options := kubeapi.Options{ObjectType: &corev1.Secret{}}
	options.Fields = []string{"data"} // want "reads are not checked against these Fields: they are set outside"
	return options
}

// Given has fields of its caller.
func Given(fields []string) *kubeapi.Options {
	options := &kubeapi.Options{ObjectType: &corev1.Secret{}, Fields: fields} // want "they are no constants"
	options.Fields = append(options.Fields, "type")                           // want "they are set outside"
	return options
}
