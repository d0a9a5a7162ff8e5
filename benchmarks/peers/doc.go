// Package peers has what a program may use instead of this library's stores, beside client-go's.
//
// statedb is an in-memory database for many tables that are reconciled: its objects are immutable,
// queries have channels that close when the result changes, and transactions span tables. go-memdb
// is a database of the same kind, on immutable radix trees. Both are made for transactions of many
// writes; Update is a transaction of one, as an event of an informer is. controller-runtime's
// reader is an API client whose reads come from a cache, and copies what it returns.
package peers

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Object is stored.
type Object = metav1.PartialObjectMetadata

// Store has a primary key and an index by namespace.
type Store interface {
	// Add and Update insert or update an object.
	Add(obj any) error
	Update(obj any) error
	// Replace inserts or updates objects, in one transaction.
	Replace(list []any, resourceVersion string) error
	// GetByKey returns an object.
	GetByKey(key string) (item any, exists bool, err error)
	// CountNamespace returns the number of objects of a namespace, after a look at each.
	CountNamespace(namespace string) int
	// InSnapshot takes a snapshot and reports whether it has an object.
	InSnapshot(key string) bool
}

func keyOf(object *Object) string { return object.Namespace + "/" + object.Name }
