// Package simple measures the calls that everybody makes first, of a store of this library and of
// client-go's Indexer: Update, Add, Delete, Get and Replace.
//
// Both sides are in one process and take turns in short rounds on one locked thread. What counts is
// the CPU time of that thread, and the median of the ratios of all rounds: other programs on the
// machine then slow down both sides alike. The garbage collector runs between the rounds.
//
// Lines returns the lines, Line.Measure measures one. Command run prints them.
package simple
