// Package apiutil has the signatures of controller-runtime that matter here.
package apiutil

import "sigs.k8s.io/controller-runtime/pkg/client"

// GVKForObject returns the kind of an object.
func GVKForObject(object client.Object) string { return object.GetName() }
