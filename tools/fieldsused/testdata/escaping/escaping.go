// Package escaping passes objects to code that is not analyzed.
package escaping

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/kubeapi"
)

// Policies keeps the types of policies.
func Policies() kubeapi.Options {
	return kubeapi.Options{
		ObjectType: &corev1.ConfigMap{},
		Fields:     []string{"metadata.annotations[example.com/policy]", "immutable"},
	}
}

// Others have fields that are not known.
func Others(fields []string) kubeapi.Options {
	return kubeapi.Options{ObjectType: &corev1.Pod{}, Fields: fields}
}

// Evaluate encodes an object for a policy.
func Evaluate(object *corev1.ConfigMap) ([]byte, error) {
	fmt.Println(object.Name, *object.Immutable)
	fmt.Println(object.Data)    // want "reads data of k8s.io/api/core/v1.ConfigMap"
	return json.Marshal(object) // want "a whole k8s.io/api/core/v1.ConfigMap is passed to encoding/json.Marshal, which kubeapi.Options.Fields at escaping/escaping.go:15 does not keep"
}
