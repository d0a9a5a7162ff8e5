// Package benchmarks measures the library beside client-go: the same objects, the same server, one
// run, the two in turn. README.md says how to run it and how to read what it prints.
//
// It is a module of its own because it needs client-go, which the library must never need. Package
// compat compares names and behaviour, and examples has programs. The rest is about measuring:
//
//	compare    the program: workloads, goals, passes, tables; it also serves the pods
//	client     one workload in a process of its own, which compare starts for each pass of a side
//	sides      the two that are compared, behind a few methods
//	calls      single calls of stores and queues, both sides in one process, by turns
//	local      objects and sources in the client's own process, where no server is needed
//	apiserver  the server
//	pods       the objects, and how they get encoded at little cost
package benchmarks
