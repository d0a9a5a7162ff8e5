// Package client does one workload as one side, in a process that does nothing else, and
// says what it cost: CPU time (user and system, from getrusage), bytes and objects
// allocated, and for the filling of a cache the largest live heap that a collection
// found, and the live heap afterwards. It needs a Unix.
package client
