// Package local has objects and sources for workloads without a server: both sides list and watch
// a source in the client's own process.
package local
