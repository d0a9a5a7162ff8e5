// Command fieldsused says which fields of a type a program may read, and where:
//
//	go run github.com/watchmirror/cache/tools/fieldsused@latest -type k8s.io/api/core/v1.Pod ./...
//
// Its answer ends with the list for kubeapi.Options.Fields. With -footprint and the JSON of a
// footprint.Report it also says how much memory the other fields take.
//
// It follows objects through the program's own packages: fields, ranges, methods of API objects,
// helper functions, generics, closures, type assertions, containers, and the constant paths of
// unstructured objects. Where an object leaves them (encoding, reflection, a call into another
// module), the place is printed and everything below counts as read. -follow adds packages of other
// modules; -harmless names places that are known to read nothing more.
//
// Each value of the type counts, whether it comes from a cache or not. Files of tests are not read.
//
// The command fieldscheck, beside it, reports reads of fields that a program does not keep.
package main
