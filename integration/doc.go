// Package integration has tests against a real Kubernetes API server, which runs in the tests'
// process with its etcd (package apiserver). Each ends in the same check: the cache equals the
// server object by object, and so does what a handler was notified of. Informers of this library,
// over kubeapi and over client-go's client, run beside client-go's informer.
//
//	go test -parallel 8 -v .                                  the short form, about a minute
//	go test -parallel 4 -v -run Fault . -all -objects 2000    all faults, with more objects
//
// Lines that begin with "T |" say how long each took to converge after a fault, and how many
// requests it sent.
//
// # Packages
//
//	etcd, nats    the key-value sources against their servers, in process; examples
//	kubernetes    a whole kube-apiserver, as a process
//	rules         the alert rules of metrics/prometheus, in Prometheus' own engine
//
// They are in this module so that programs that use the library, its sources or its metrics do not
// depend on any of these servers.
package integration
