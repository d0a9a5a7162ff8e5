// Command rerun runs go test and, once more, each test that failed:
//
//	rerun REPORT [flags and packages of go test]
//
// It prints what go test prints. A failed test is run again, alone and with -count=1. If all pass,
// the command succeeds, and appends each of them with its first output to the file REPORT: such a
// test is a defect, which is fixed at its cause.
//
// Nothing is run again, and the command fails at once, if
//   - the race detector has reported anything,
//   - a package does not build, or ended before all of its tests: by a panic, an exit or a timeout,
//   - more than ten tests failed.
//
// A flag with a value must be one argument: -run=TestX, and not -run TestX.
package main
