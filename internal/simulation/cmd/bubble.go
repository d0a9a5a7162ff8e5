package main

import (
	"errors"
	"io"
	"os"
	"reflect"
	"testing"
	"time"
)

// inTest calls f with a *testing.T and returns the code to exit with. A bubble of virtual
// time is made from nothing else, and only the testing package makes one. Its RunTests
// runs nothing unless M.Run has prepared it, so this is M.Run itself. MainStart, which
// makes an M, is outside of Go's promise of compatibility: should a release of Go change
// what it takes, that shows when this is compiled.
func inTest(f func(t *testing.T)) int {
	os.Args = os.Args[:1] // M.Run reads flags, and ours are not its
	return testing.MainStart(deps{}, []testing.InternalTest{{Name: "Worker", F: f}}, nil, nil, nil).Run()
}

// deps is what "go test" would give to the testing package: as good as nothing, for
// there are neither fuzz targets nor profiles nor coverage here.
type deps struct{}

// corpusEntry is an unnamed type in the testing package as well.
type corpusEntry = struct {
	Parent     string
	Path       string
	Data       []byte
	Values     []any
	Generation int
	IsSeed     bool
}

var errNotHere = errors.New("there is no fuzzing here")

func (deps) ImportPath() string                          { return "" }
func (deps) ModulePath() string                          { return "" }
func (deps) MatchString(string, string) (bool, error)    { return true, nil }
func (deps) SetPanicOnExit0(bool)                        {}
func (deps) StartCPUProfile(io.Writer) error             { return nil }
func (deps) StopCPUProfile()                             {}
func (deps) StartTestLog(io.Writer)                      {}
func (deps) StopTestLog() error                          { return nil }
func (deps) WriteProfileTo(string, io.Writer, int) error { return nil }
func (deps) CoordinateFuzzing(time.Duration, int64, time.Duration, int64, int, []corpusEntry, []reflect.Type, string, string) error {
	return errNotHere
}
func (deps) RunFuzzWorker(func(corpusEntry) error) error { return errNotHere }
func (deps) ReadCorpus(string, []reflect.Type) ([]corpusEntry, error) {
	return nil, errNotHere
}
func (deps) CheckCorpus([]any, []reflect.Type) error { return nil }
func (deps) ResetCoverage()                          {}
func (deps) SnapshotCoverage()                       {}
func (deps) InitRuntimeCoverage() (mode string, tearDown func(string, string) (string, error), snapcov func() float64) {
	return "", nil, nil
}
