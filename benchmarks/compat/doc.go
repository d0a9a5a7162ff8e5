// Package compat holds the promise of an import swap to account: a program that
// was written against k8s.io/client-go/tools/cache and builds its own informers, or
// its own reflectors, queues and stores, compiles and behaves the same after its import
// line is changed. The package has tests only.
//
// # What is compared
//
// testdata/api-surface.tsv is the list of promised names: one row for each
// identifier, field and method, with the signature that client-go gives it. The
// tier "core" is what reflectors, queues and stores need, "informer" what handlers,
// informers and listers add. The tests say
//
//   - that the table is true: client-go has each row, as written;
//   - that the library has each identifier of both tiers, and whatever their
//     signatures need, with the same kind, signature, fields, methods, type parameters
//     and value, the two package paths counting as the same; but for those that are named,
//     with the reason, as coming later;
//   - that whatever else the library has under a name that client-go uses too
//     agrees with it as well.
//
// Interfaces must have exactly the same methods: one more would shut out other
// people's implementations, one less other people's callers. Structs and concrete
// types may have more. Parameter names do not count.
//
// Interfaces whose methods mention only builtin types and apimachinery's are
// stricter still: a value of either package can be assigned to the other's. The
// compiler checks these, in assignable_test.go.
//
// # What behaves the same
//
// The other tests run one script against both packages, side by side, and compare
// what they see: names and keys, the queue's deltas, the indexer's answers, what a
// reflector does to a store, which calls the handlers of an informer receive and when they
// count as synced, what listers return. They run in virtual time, but for what client-go
// never comes back from. Where the library differs on purpose, the test names the fault
// that it avoids by its number in [docs/faults.md], and shows both.
//
// # When a test fails
//
// A missing identifier is listed by name. If client-go has dropped or changed
// something in a new version, change the table and the library together. What is
// not to be compared belongs in the table of exclusions in surface_test.go, with
// its reason; what the library is yet to have, into the one beside it.
//
// [docs/faults.md]: https://github.com/watchmirror/cache/blob/main/docs/faults.md
package compat
