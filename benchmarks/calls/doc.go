// Package calls measures single calls of stores and queues, of this library and of client-go.
//
// Both sides are in one process and take turns in short rounds. What counts is CPU time and the
// median of the ratios of all rounds: other programs on the machine then slow down both sides
// alike. Calls that work in their own goroutine have it locked to a thread, whose CPU time is
// read. The garbage collector runs between the rounds.
//
// Calls beside another goroutine are measured by the clock on the wall, each by itself.
//
// Lines returns the lines, Line.Measure measures one.
package calls
