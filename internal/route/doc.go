// Command route counts the functions and statements of the library that one event, a list, or
// a handler's join enters. Long routes cost time and are hard to read, so the numbers may only
// decrease.
//
//	go run ./internal/route
//
// prints them beside the recorded ones and exits with 1 if any is higher. Each is the number of
// distinct functions or statements, in the root package and the internal packages that it needs,
// that are entered at least once between the cause (a change at the source, a call of Run) and
// the moment at which all goroutines are blocked again.
//
//	go run ./internal/route -entered 'informer update'
//
// lists the functions of one route with the statements entered in each.
//
//	go run ./internal/route -record
//
// writes all numbers to recorded.txt, which is committed with the change. If a change raises a
// number, its commit message gives the reason.
//
// The program in measured/ runs the routes. It is built with coverage counters and runs in
// virtual time on one processor. It runs each route several times; the pass with the fewest
// statements counts, because hash collisions in the store, which depend on a random seed, add a
// few.
package main
