// Package migration tests docs/migrating.md: its command, its table of names, and its promise that a controller runs on both
// packages by its import alone. For the promise, the controller in nodecount is built and tested twice: as it stands, on
// github.com/watchmirror/cache, and with that one import changed back to k8s.io/client-go/tools/cache. Nodecounttest has the
// expectations, the same for both.
package migration
