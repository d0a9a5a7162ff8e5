// Package kubernetes has tests against a whole kube-apiserver, v1.36, which runs as a process with
// an etcd of the tests': pods in protobuf, access rules that are withdrawn, tokens that are
// replaced, restarts, and the quickstart. kube-apiserver.mod has the versions of its modules.
//
//	go test -v ./kubernetes -kube-apiserver    (or ".ci/full kubernetes")
//
// The first build of kube-apiserver takes ten minutes, so without the flag the tests are skipped.
// Lines that begin with "K |" have the figures of each case.
package kubernetes
