// Package client does one workload as one side, in a process that does nothing else, and says what
// it cost: CPU time (user and system, from getrusage), bytes and objects allocated, the live heap
// and its peak, goroutines, and how long single events take. It needs a Unix.
package client
