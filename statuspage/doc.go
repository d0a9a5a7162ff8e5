// Package statuspage serves the status of informers, reflectors and controllers as web pages and as JSON: all at a
// glance, and for each its history of states, plots of events, staleness and backlog, its handlers, its quarantined
// objects, its keys by prefix and single objects. It needs no JavaScript and no file from elsewhere.
//
//	var registry statuspage.Registry
//	remove, err := registry.Add("pods", pods)
//	...
//	err = statuspage.Serve(ctx, "127.0.0.1:8090", &registry)
//
// A program with an HTTP server of its own mounts Handler and calls Registry.Run in a goroutine; without Run the history
// has a sample for each request.
//
// # Security
//
// There is no authentication: everyone who can send a request sees the keys and objects of every cache that was added.
// Serve therefore listens on loopback addresses only and answers only requests for a loopback host, unless
// ServeOptions.AnyAddress is set. Handler does neither: a program that mounts it authenticates its callers.
//
// Objects are shown as JSON without the data of Secrets, without kubectl's copy of an object in its annotations, and
// without the fields of Registry.Redact. What a transform or a Convert makes of a Secret is not recognized: name its
// fields, or set Registry.HideObjects. Keys, error texts and the names of handlers are shown as they are.
//
// Only GET and HEAD are answered. Pages have a Content-Security-Policy that permits their own style and nothing else.
package statuspage
