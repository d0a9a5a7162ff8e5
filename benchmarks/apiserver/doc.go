// Package apiserver serves pods as a Kubernetes API server does: lists, whole or in
// pages, in JSON and protobuf, watches and streaming lists, in JSON, over HTTP/1.1. What it sends
// is made of encoded templates, so that it is not measured, and it lives in a
// process of its own, so that neither its memory nor its CPU time are counted.
//
// It does what the measurements need and no more: there are no selectors, writes or
// other resources, and a watch sends what its configuration says, at whatever version it
// begins.
package apiserver
