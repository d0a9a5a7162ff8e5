// Package operator uses controller-runtime.
package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Thing is an object.
type Thing struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// GetName implements client.Object.
func (t *Thing) GetName() string { return t.Name }

// Reconcile reads a thing.
func Reconcile(c client.Client, b *builder.Builder, object client.Object) error {
	b.For(&Thing{Name: object.GetName()})
	thing := &Thing{}
	if err := c.Get("name", thing); err != nil {
		return err
	}
	if apiutil.GVKForObject(thing) == "" || thing.Size == 0 {
		return c.Delete(thing)
	}
	return c.Create(thing)
}
