// Package client has the signatures of controller-runtime that matter here.
package client

// Object is any object.
type Object interface{ GetName() string }

// Client reads and writes objects.
type Client interface {
	Get(name string, object Object) error
	Create(object Object) error
	Delete(object Object) error
}
