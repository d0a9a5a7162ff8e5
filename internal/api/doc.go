// Command api compares the exported API of the packages for users with the files of .ci/api, which
// are committed, so that each change of the API is seen in a review:
//
//	go run ./internal/api
//
// prints the lines that differ and exits with 1 if there are any.
//
//	go run ./internal/api -write
//
// writes the files, after an intended change.
//
// A line has the name and the type of a constant, variable, function, type, field or method, without
// values and comments. What a type has by embedding unexported types has its lines, too.
package main
