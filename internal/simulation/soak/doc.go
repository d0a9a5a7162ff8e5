// Package soak runs mirrors through a day of churn in virtual time, and measures each hour
// whether anything has grown.
//
// The scripts of internal/simulation are short: twenty minutes, some hundred steps. They find
// wrong states, and cannot find what a cache keeps of an object that was removed, of a handler
// that has left or of a watch that has ended: a few bytes each, which end a process after weeks.
// A soak repeats the same hour, so that each measurement of an hour can be compared with that of
// another. It is independent of the scripts: it shares neither code nor seeds with them.
//
//	go test ./internal/simulation/soak -run TestADayOfChurn -v -soak 24h
//
// # What it holds
//
// Run builds a world in a bubble of testing/synctest, runs it for the hours of a Config and
// returns a Report, whose Problems are the findings.
//
//	Run ──hours──▶ world ──churn──▶ cachetest.Source ──▶ 7 mirrors with handlers
//	                 │                    ▲                       │
//	                 ├──faults────────────┘ and the network       ▼
//	                 └──measure──▶ Hour ──▶ Report      views, compared with the source
//
//	soak.go          Config and Run; what happens in which minute of an hour; settling
//	world.go         the source, its server and network, the mirrors, visitors and guests
//	churn.go         writes: about thirty a minute, a burst each hour, and always new names
//	faults.go        eight faults of the source and of the network, six an hour
//	mirror.go        the kinds of mirrors, with their handlers
//	handler_view.go  the state that a handler derives from its calls; the gate of stalling ones
//	measure.go       heap, goroutines, backlogs, index values, watches and connections
//	report.go        the lines of a report, the limits of growth, and the findings
//
// # An hour
//
// Sixty minutes of writes, faults, handlers that join and leave, and an informer that lives for
// five minutes. Then the faults end, churn rewrites every object, and the world must equal the
// source within three minutes. Only then is it measured: numbers that can be counted must equal
// those of the rest before the first hour; heaps are compared by their medians over four hours,
// since a single one differs by about a hundred objects. A world is built and stopped before the
// first measurement, so that what a process makes once is not counted as growth.
//
// # What it must not know
//
// Only the exported API of the library and cachetest. It has no model: it compares with the
// source itself, at rest, when that is exact. A fault that needs a coincidence of events belongs
// to a script, one of a single growing structure to a test of that structure, where it takes
// milliseconds.
//
// # To change it
//
// Begin with hour and minute in soak.go. Everything that is written or made must have the same
// size in each hour: names and versions have fixed numbers of digits. What is added to an hour
// must have ended when it is measured (tidy, dismissVisitors, forget). Each limit in report.go
// states where its number comes from; see a leak that was added on purpose exceed it.
package soak
