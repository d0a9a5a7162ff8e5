// Package bubble runs programs that are no tests in the virtual time of testing/synctest.
package bubble

import (
	"errors"
	"io"
	"os"
	"reflect"
	"testing"
	"time"
)

// InTest calls f with a *testing.T, which synctest.Test needs, and returns the code to exit with. It may be called once in a process. It
// overwrites os.Args, because testing.M.Run parses flags. MainStart is outside of Go's promise of compatibility: a release that changes
// its parameters fails to compile this.
func InTest(f func(t *testing.T)) int {
	os.Args = os.Args[:1]
	return testing.MainStart(deps{}, []testing.InternalTest{{Name: "InTest", F: f}}, nil, nil, nil).Run()
}

// deps is what "go test" passes to the testing package: nothing works, since there are no fuzz targets, profiles or coverage.
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
