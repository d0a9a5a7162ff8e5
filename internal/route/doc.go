// Command route counts the functions and statements that one event enters on its way
// through the library, and what a list and a handler's join enter. Cold code costs time
// and a reader's patience even where nothing else does, so these numbers only go down:
//
//	go run ./internal/route
//
// prints them beside the recorded ones and exits with 1 if any is higher. Each is the
// number of distinct functions or statements, in the root package and the internal ones
// that it runs on, that are entered at least once between the cause (a change at the
// source, a call of Run) and the instant at which every goroutine waits again.
//
//	go run ./internal/route -entered 'informer update'
//
// lists the functions of one route with the statements entered in each: what to remove,
// or to pass by. Once a number is lower,
//
//	go run ./internal/route -record
//
// writes all of them to recorded.txt, which is committed with the change. A change that
// needs more than before records that too, and its commit says what for.
//
// The program in measured/ takes the routes. It is built with coverage counters, runs in
// virtual time on one processor, and takes each route several times; the pass with the
// fewest statements counts, because hashes that collide in a store, by their random seed,
// cost a few more.
package main
