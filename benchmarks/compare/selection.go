package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selection says which workloads are measured.
type selection struct {
	text string
	// simple selects the calls that programs make first.
	simple bool
	// numbers are those of the table, nil if the text is a regular expression over names.
	numbers []string
	names   *regexp.Regexp
}

var everything = selection{names: regexp.MustCompile("")}

// simpleCalls is the text that selects the calls that programs make first.
const simpleCalls = "simple"

var listOfNumbers = regexp.MustCompile(`^[A-Z][0-9]*(,[A-Z][0-9]*)*$`)

func parseSelection(text string) (selection, error) {
	if text == simpleCalls {
		return selection{text: text, simple: true}, nil
	}
	if listOfNumbers.MatchString(text) {
		return selection{text: text, numbers: strings.Split(text, ",")}, nil
	}
	names, err := regexp.Compile(text)
	return selection{text: text, names: names}, err
}

// has compares whole numbers: B1 is a line of B1-B3 and not of B18. A letter alone stands for all its numbers.
func (s selection) has(w workload) bool {
	if s.simple {
		return w.simple()
	}
	if s.numbers == nil {
		return s.names.MatchString(w.title())
	}
	return slices.ContainsFunc(numbers(w), func(number string) bool {
		return slices.Contains(s.numbers, number) || slices.Contains(s.numbers, number[:1])
	})
}

// numbers are those that a workload's title begins with.
func numbers(w workload) []string {
	first, last, many := strings.Cut(order(w), "-")
	var letter rune
	var from, to int
	if _, err := fmt.Sscanf(first, "%c%d", &letter, &from); err != nil || !many {
		return []string{first}
	}
	if _, err := fmt.Sscanf(last, "%c%d", &letter, &to); err != nil {
		return []string{first}
	}
	var all []string
	for number := from; number <= to; number++ {
		all = append(all, fmt.Sprintf("%c%d", letter, number))
	}
	return all
}
