// Package builder has the signatures of controller-runtime that matter here.
package builder

import "sigs.k8s.io/controller-runtime/pkg/client"

// Builder builds a controller.
type Builder struct{}

// For names the type of the objects.
func (b *Builder) For(client.Object) *Builder { return b }
