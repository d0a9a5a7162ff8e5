// Package informers tests, from outside, that the informers of this library do the work of
// client-go's in programs that are not written for them: in a generated informer factory
// of client-go, and in the manager of controller-runtime. Both are the real ones, of the
// versions in go.mod, and talk over HTTP to a server that lists and watches as an API server
// does. The package has tests only.
//
// The tests here show that nothing that these programs ask of an informer is missing or
// means something else: their handlers, indexes, listers, transforms and waits, and that a
// stop leaves nothing behind. What an informer does by itself is tested where it stands.
//
// The examples are how a program is switched.
package informers
