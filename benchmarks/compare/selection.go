package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selection says which lines are measured.
type selection struct {
	text string
	// numbers are those of the table, nil if the text is a regular expression over names.
	numbers []string
	names   *regexp.Regexp
}

var everything = selection{names: regexp.MustCompile("")}

var listOfNumbers = regexp.MustCompile(`^[A-Z][0-9]*(,[A-Z][0-9]*)*$`)

func parseSelection(text string) (selection, error) {
	if listOfNumbers.MatchString(text) {
		return selection{text: text, numbers: strings.Split(text, ",")}, nil
	}
	names, err := regexp.Compile(text)
	return selection{text: text, names: names}, err
}

// has compares whole numbers: B1 is a line of B1-B3 and not of B18. A letter alone stands for all its numbers.
func (s selection) has(l line) bool {
	if s.numbers == nil {
		return s.names.MatchString(l.name)
	}
	return slices.ContainsFunc(l.numbers(), func(number string) bool {
		return slices.Contains(s.numbers, number) || slices.Contains(s.numbers, number[:1])
	})
}

// numbers are those that a line's name begins with.
func (l line) numbers() []string {
	if l.order() == "~" {
		return nil
	}
	first, last, many := strings.Cut(l.order(), "-")
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
