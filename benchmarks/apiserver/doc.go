// Package apiserver serves pods as a Kubernetes API server does: lists, whole or in pages, in JSON
// and protobuf, watches and streaming lists, in JSON. What it sends is made of encoded templates at
// little cost. It must not run in the process that is measured.
//
// It does what the measurements need and no more: there are no selectors, writes or other
// resources, and a watch sends what the configuration says, at whatever version it begins.
package apiserver
