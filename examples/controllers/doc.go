// Package controllers is the module of those examples that need client-go, which the
// library does not. Its test builds and tests the controller in nodecount twice: as it
// stands, on github.com/watchmirror/cache, and with that one import changed back to
// k8s.io/client-go/tools/cache.
package controllers
