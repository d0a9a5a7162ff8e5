// Command layers checks the layers of the root package, which layers.txt lists from the lowest to
// the highest, with the files of each:
//
//	go run ./internal/layers
//
// A file may use declarations of its own layer and of lower ones. The command prints each use of a
// declaration of a higher layer, each source file without a layer and each listed file that does
// not exist, and then exits with 1. Tests are not checked.
//
// The files are listed in the order in which they are best read. docs/architecture.md has the
// layers in the same order, which a test compares.
package main
