// Package kubernetes has tests against a whole kube-apiserver, v1.36, which is built from its module and runs as a process with an
// etcd of the tests': pods in protobuf, access rules that are withdrawn, tokens that are replaced, restarts, and the
// quickstart.
//
//	go test -v ./...    (or "make full"; the first build of kube-apiserver takes ten minutes)
//
// Lines that begin with "K |" have the figures of each case.
package kubernetes
