// Package option reads the options that end a parameter list. An API of this module whose options
// may be left out takes them as the last, variadic argument.
package option

import "fmt"

// AtMostOne returns the only element of options, or the zero value if there is none. It panics if
// there are more: a caller would expect them to be merged. function names the caller.
func AtMostOne[Options any](function string, options []Options) Options {
	var chosen Options
	switch len(options) {
	case 0:
	case 1:
		chosen = options[0]
	default:
		panic(
			fmt.Sprintf("%s: there are %d %T, at most one is used", function, len(options), chosen))
	}
	return chosen
}
