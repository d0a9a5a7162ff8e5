// Package statuspage serves the status of informers, reflectors and controllers as web pages and as
// JSON. One page shows all caches. The page of a cache shows its history of states, plots of
// events, staleness and backlog, its handlers, its quarantined objects, its keys by prefix and
// single objects. It needs no JavaScript and no external files.
//
//	var registry statuspage.Registry
//	remove, err := registry.Add("pods", pods)
//	...
//	err = statuspage.Serve(ctx, "127.0.0.1:8090", &registry)
//
// A program with its own HTTP server mounts Handler and calls Registry.Run in a goroutine. Without
// Run the history has one sample for each request.
//
// # Security
//
// There is no authentication: every client that can send a request sees the keys and objects of
// every added cache. Serve therefore listens only on loopback addresses and responds only to
// requests for a loopback host, unless ServeOptions.AnyAddress is set. Handler does neither: a
// program that mounts it must authenticate its clients.
//
// Objects are shown as JSON without the data of Secrets, without kubectl's copy of an object in its
// annotations, and without the fields of Registry.Redact. If a transform or a Convert turns a
// Secret into another type, it is not recognized: name its fields, or set Registry.HideObjects.
// Keys, error texts and the names of handlers are not redacted.
//
// Only GET and HEAD are allowed. Pages have a Content-Security-Policy that permits only their own
// style.
package statuspage
