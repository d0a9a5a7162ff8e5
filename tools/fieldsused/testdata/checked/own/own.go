// Package own declares and reads in one package.
package own

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache/kubeapi"
)

var options = kubeapi.Options{Fields: []string{"spec.nodeName"}}

func read(object *unstructured.Unstructured) {
	_, _, _ = unstructured.NestedString(object.Object, "spec", "nodeName")
	_, _, _ = unstructured.NestedString(object.Object, "spec", "hostname") // want "reads spec.hostname"
	_ = object.GetAnnotations()["x"]                                       // want "reads metadata.annotations.x"
}
