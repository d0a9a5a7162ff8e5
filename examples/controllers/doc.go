// Package controllers is the module of those examples that need client-go, which the library does not: a controller with a typed
// informer and a work queue (controller), a generated factory (factory) and a controller-runtime manager (controllerruntime) with
// informers of this library.
//
// Its own test builds and tests the controller in nodecount twice: as it stands, on github.com/watchmirror/cache, and with that one
// import changed back to k8s.io/client-go/tools/cache.
package controllers
