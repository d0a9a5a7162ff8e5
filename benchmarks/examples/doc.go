// Package examples has the examples that need client-go, which the library does not: a controller with
// a typed informer and a work queue (controller), a generated factory (factory), a controller-runtime
// manager (controllerruntime) with informers of this library, and replicas that elect a leader for
// each shard (elections).
package examples
