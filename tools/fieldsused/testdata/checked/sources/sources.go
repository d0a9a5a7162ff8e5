// Package sources declares which fields are kept.
package sources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi"
)

var serviceFields = []string{"spec.clusterIP", "metadata.annotations[example.com/owner]"}

// Pods keeps two fields.
func Pods() kubeapi.Options {
	return kubeapi.Options{
		ObjectType: &corev1.Pod{},
		Fields:     []string{"spec.nodeName", "spec.containers.image"},
	}
}

// Services names its fields in a variable.
func Services() kubeapi.Options {
	return kubeapi.Options{ObjectType: &corev1.Service{}, Fields: serviceFields}
}

// Nodes keeps everything.
func Nodes() kubeapi.Options { return kubeapi.Options{ObjectType: &corev1.Node{}} }

// Any is of a type that is not known.
func Any(of runtime.Object) kubeapi.Options {
	return kubeapi.Options{ObjectType: of, Fields: serviceFields} // want "the ObjectType is of no fixed type"
}
