// Package nodecounttest says what a controller that counts pods per node must do, as
// tests, and has the API server in memory that they run against. The same controller is
// written several times in the examples, on different packages; these expectations are
// one and the same for all of them.
//
// What it must do: for each node that has pods, keep a config map in Namespace, with the
// name and label that Name and Label say, whose data has the number of pods under Key.
package nodecounttest
