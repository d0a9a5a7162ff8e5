// Package world has what the mirrors of a simulation live in: a source with its servers, its
// network and its faults, and the truth about all of it.
//
//	Steps ──▶ World ──writes──▶ Truth (recorded first)
//	            │
//	            ▼
//	     cachetest.Source ── directly, or through a network with damage ──▶ tap ──▶ a reflector
//
// # What it holds
//
//	world.go          World: the source, the truth, failures and trace of one run
//	object.go         the objects, and the marks that they carry
//	truth.go          the model: the states of each key over time, and moments
//	steps.go          the steps of a script that change the world, and the end of their faults
//	writes.go         writes, and restoring a backup
//	functions.go      the faults of the user's functions
//	network.go        the network, whose connections may die (B30)
//	damage.go         damage in the network (B24)
//	proxy.go          load balancers, and servers with habits of their own (B27, B28, B31, B32)
//	client.go         a mirror as its source sees it: its taps, and the numbers that they give out
//	tap.go, tap_watch.go, wrong_type.go
//	                  what is between a reflector and its source: it carries out faults, and
//	                  numbers and records what passes
//	history.go        what a tap has recorded: requests, failures, pauses
//	record.go, record_http.go
//	                  recordings of a run for corpora of fuzz targets
//	trace.go          the last events, printed with a failure
//
// # What holds
//
// The truth has a state before the source has it, so that no mirror can show an unrecorded one. So
// writes are Write, Remove and Restore. Moments count the changes of the source and, unlike
// versions, never regress.
//
// Each object that passes a tap has a receipt, which no other has, and each failure has a number,
// which its error text contains. With these the checks match what a mirror does with what it was
// sent.
//
// A fault may be noticed by any mirror at any time, or by none. What a client cannot notice by any
// means must not happen, since no check could expect anything: versions are never issued twice, a
// damaged response is never valid, and a list behind its items does not replay deletions.
//
// # What it must not know
//
// The library's informers, stores and reflectors, and the checks. It sees a mirror only as a Client
// and, in the other direction, as the Owner of that: the name of a call into the source, and
// whether the mirror has synced. Of the library it uses only what a source consists of.
//
// # To add a fault
//
// Name its step in steps, and add an element to choices (script/generate.go), with a weight: 1 is
// rare, 8 frequent. A new choice changes the scripts of all seeds, so scripts worth keeping are
// files. A step that lasts is made by lasting there, with the step that ends it, and Heal must end
// it, or World must say for how long mirrors may not notice it, as IsBehindNewest does. If it
// changes what a mirror may rightly show, record in World or in the proxy that it has happened, so
// that checks can say when they are lenient.
package world
