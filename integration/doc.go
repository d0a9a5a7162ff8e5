// Package integration has tests against a real Kubernetes API server, which runs in the tests' process with its etcd (package
// apiserver). Each ends in the same check: the cache equals the server object by object, and so does what a handler was
// notified of. Informers of this library, over kubeapi and over client-go's client, run beside client-go's informer.
//
//	go test -parallel 8 -v ./...                              the short form, about a minute
//	go test -parallel 4 -v -run Fault . -all -objects 2000    all faults, with more objects
//
// Lines that begin with "T |" say how long each took to converge after a fault, and how many requests it sent.
package integration
