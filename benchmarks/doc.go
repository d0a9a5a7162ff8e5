// Package benchmarks measures the library beside client-go: the same pods, the same
// server, one run, the two in turn. README.md says how to run it and how to read what it prints.
//
// Its module has everything that compares the library with client-go or shows the two
// together. It is a module of its own because it needs client-go and k8s.io/api, which the
// library must never need. Package compat compares names and behaviour, and examples has
// programs. The rest of this page is about measuring.
//
// # Packages
//
//	compare    the program: workloads, goals, passes, the table
//	client     one workload in a process of its own: CPU, allocations, live heap
//	sides      the two that are compared, behind a few interfaces
//	calls      single calls of stores and queues, both sides in one process, by turns
//	local      objects and sources in the client's own process, where no server is needed
//	apiserver  the server, in a process of its own as well
//	pods       the objects, and how they get encoded at little cost
//
// compare starts a client for each pass, and a server if the workload needs one, which
// are itself in another role:
//
//	compare ──starts──▶ apiserver ──HTTP/1.1 on loopback──▶ client (one side)
//	   ▲                                                        │
//	   └────────────────────── result ──────────────────────────┘
//
// A workload that needs no server is another Work of a client's task, which withoutServer
// names, and some more lines, as those of compare/informer_lines.go are. A call of a store or a
// queue is another line of package calls.
package benchmarks
