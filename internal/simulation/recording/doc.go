// Package recording makes corpora for fuzz targets of what has happened in the simulation.
//
// A run of the simulation is recorded as lines of JSON, in the order in which things
// happened: what the script did, what each reflector asked, the lists, events, bookmarks
// and errors that it was sent, and, where there is a network, the bodies of the server's
// answers. A Line knows nothing of this module's types, so that tests of every package can
// read it. Beside a fuzz target stands an encoder, which makes an input of the target of
// such lines; Choose keeps a few inputs that differ, and WriteCorpus puts them where
// go test finds them. Corpora is what such a test begins and ends with.
//
// Both halves are tests that do nothing without their flag. From the root of the module:
//
//	dir=$(mktemp -d)
//	go test ./internal/simulation -run '^TestRecordRuns$' -record "$dir" -seeds 300
//	go test . ./cachetest ./internal/eventlog ./kubeapi ./kubeapi/internal/jsonwire -run '^TestWriteCorpora$' -corpora "$dir"
//
// The directory must be absolute, for go test runs each package in its own. The second
// command replaces all files named simulation-* under testdata/fuzz, and no others: those
// were found by fuzzing or made by hand. The schedule of a run is not fixed by its seed, and
// so neither are its lines: writing the corpora again gives others of the same kind.
package recording
