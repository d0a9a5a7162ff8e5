// Command route counts the functions and statements of the library that one event, a list, or
// a handler's join enters. It is a report for those who look for what to shorten.
//
//	go run ./internal/route
//
// prints, for each route, the number of distinct functions and statements, in the root package and
// the internal packages that it needs, that are entered at least once between the cause (a change at
// the source, a call of Run) and the moment at which all goroutines are blocked again.
//
//	go run ./internal/route -entered 'informer update'
//
// lists the functions of one route with the statements entered in each.
//
// The program in measured/ runs the routes. It is built with coverage counters and runs in
// virtual time on one processor. It runs each route several times; the pass with the fewest
// statements counts, because hash collisions in the store, which depend on a random seed, add a
// few.
package main
