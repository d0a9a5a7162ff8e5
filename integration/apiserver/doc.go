// Package apiserver runs a Kubernetes API server with its etcd in this process:
// k8s.io/apiextensions-apiserver, which serves custom resources. It has a store, watch caches,
// bookmarks, streaming lists and expired versions of its own.
//
// Feature gates and metrics are those of the process, so all servers of a process share them.
package apiserver
