// Package check has what mirrors of a simulation must do, whatever happens to them.
//
// Package world has the truth, and taps record what is sent to a mirror and what it requests. A
// Mirror here is how it is read, and what it has reported and called. The checks compare the two:
//
//	     world.World                     Mirror
//	truth, history of each tap ──▶ checks ◀── content, calls, reports
//	                                  │
//	                                  ▼
//	                     World.Fail("G7: %s shows ...")
//
// # What it holds
//
// At each call of a user's function:
//
//	handler.go        a handler receives a change that follows the last one, in order, and the store
//	                  is not behind it
//	filter.go         the same behind a filter; objects that are filed by a field (B29)
//	functions.go      transforms, key and index functions; one transform for each object (G14)
//	calls.go          no call after the run, and none that Run does not wait for (G9)
//	observer.go       no key and no version regresses without a report (G2, G11)
//
// After each step, whatever the mirrors are doing (Now):
//
//	content.go        readers see the source at one moment, not before the applied version;
//	                  backlogs are bounded
//	snapshots.go      snapshots are consistent, and still the same at the end (G10)
//
// While the source is quiet (Compare), and at the end (Calm, History, Stopped):
//
//	compare.go        content, index, handlers and quarantine equal the source
//	freshness.go      what Fresh and Verify promise when they return
//	end.go            no calls while nothing changes; nothing is left after the end
//	rates.go          requests in a minute (G13)
//	pauses.go         pauses, beside client-go's (B27), and returns from a Retry-After
//	reports.go        each failure is reported once (G12), and damage is noticed (B24)
//
// mirror.go has Mirror, which the checks share.
//
// # What it must not know
//
// How a mirror is built, started or stopped, and when a check is due: that is package simulation's.
// It changes neither the world nor a script, and reads requests and failures only as a
// world.History, which is a copy.
//
// # To add a check
//
// Check as early as possible: in a call, then after a step, then at the end. Report with World.Fail
// and the number of the guarantee, which script.FailureKind reads: "G7: %s shows ...". What happens
// on several goroutines has a lock of its own; World.Fail needs none. A check may be lenient only
// where the library promises nothing, and a comment gives the reason: World says what has happened.
// Break the library on purpose and see the check fail. Name the check in docs/testing.md.
package check
