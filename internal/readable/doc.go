// Command readable reports how dense the code of packages is:
//
//	go run ./internal/readable                 # the root package and the packages that it needs
//	go run ./internal/readable . kubeapi       # other directories
//
// The table has, for each directory, without tests:
//
//	code    lines with code
//	cmt%    lines of comments in 100 lines of code and comments
//	tok/l   tokens in a line of code
//	med w   width of a line of code, a tab counting as four columns: half of the lines are narrower
//	p90 w   the same for 90 % of the lines
//	>100%   lines of code in 100 that are wider than 100 columns
//	funcs   functions; and the length in lines of half of them, of 90 %, and of the longest
//	ifinit  if headers in 1,000 lines that assign, other than x := f()
//	sw{}    switches without a tag in 1,000 lines
//	tuple   assignments of several values to several variables in 1,000 lines
//
// client-go's cache, etcd's cache, statedb, krt, bbolt and net/http have 5.9 to 7.1 tokens in a line, a
// p90 width of 56 to 66, ifinit of 0 to 3.4, sw{} of 0 to 4.4 and tuple of 0 to 3.4.
//
// Below the table are the functions with a cognitive complexity above 20, as SonarSource defines it,
// and the lines, comments too, that are wider than 100 columns.
package main
