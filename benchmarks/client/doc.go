// Package client does one workload as one side, in a process that does nothing else, and
// says what it cost: CPU time (user and system, from getrusage), bytes and objects
// allocated, and for the filling of a cache the largest live heap that a collection
// found, and the live heap afterwards. Of informers it says what idle ones have, what a
// handler that hangs holds on to, and how often a list calls one in vain. Of small objects it says what
// lists and updates cost by the piece, and how long single events take. It needs a Unix.
package client
