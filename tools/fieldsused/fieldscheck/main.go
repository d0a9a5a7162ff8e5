// Command fieldscheck reports reads of fields that kubeapi.Options.Fields does not keep:
//
//	go build -o fieldscheck github.com/watchmirror/cache/tools/fieldsused/fieldscheck
//	go vet -vettool=./fieldscheck ./...
//
// It knows options that are written as a literal, with constants as Fields and an example as
// ObjectType. If a program has several for a type, a field is kept if any of them keeps it.
//
// It also reports paths that the type does not have, and, except in tests, Fields that it cannot
// know (-fieldscheck.nounknown turns this off). With -fieldscheck.escapes it also reports where
// objects reach code that is not analyzed, such as an encoder.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/watchmirror/cache/tools/fieldsused/internal/check"
)

func main() { unitchecker.Main(check.New()) }
