package main

import (
	"regexp"
	"strings"
)

// selection says which workloads are measured.
type selection struct {
	text string
	// simple selects the calls that programs make first.
	simple bool
	// names matches the titles of all others.
	names *regexp.Regexp
}

var everything = selection{names: regexp.MustCompile("")}

// simpleCalls is the text that selects the calls that programs make first.
const simpleCalls = "simple"

var listOfNumbers = regexp.MustCompile(`^[A-Z][0-9]*(,[A-Z][0-9]*)*$`)

func parseSelection(text string) (selection, error) {
	if text == simpleCalls {
		return selection{text: text, simple: true}, nil
	}
	pattern := text
	if listOfNumbers.MatchString(text) {
		pattern = patternOf(strings.Split(text, ","))
	}
	names, err := regexp.Compile(pattern)
	return selection{text: text, names: names}, err
}

// patternOf matches titles that begin with one of the numbers, which is whole: B1 is not B18. A
// letter alone stands for all its numbers.
func patternOf(numbers []string) string {
	for n, number := range numbers {
		if len(number) == 1 {
			numbers[n] += "[0-9]*"
		}
	}
	return `^(` + strings.Join(numbers, "|") + `)\b`
}

func (s selection) has(w workload) bool {
	if s.simple {
		return w.isSimple
	}
	return s.names.MatchString(w.title)
}
