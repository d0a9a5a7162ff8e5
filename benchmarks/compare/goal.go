package main

import "fmt"

// goal is what the number of ours should be. The zero value is none.
type goal struct {
	kind   goalKind
	number float64
}

type goalKind int

const (
	noGoal goalKind = iota
	// atMost is a number that must not be larger.
	atMost
	// timesLess is a number that must be so many times less than client-go's.
	timesLess
)

func upTo(number float64) goal { return goal{kind: atMost, number: number} }

func less(times float64) goal { return goal{kind: timesLess, number: times} }

// String is the goal in the table.
func (g goal) String() string {
	switch g.kind {
	case atMost:
		return fmt.Sprintf("<= %.4g", g.number)
	case timesLess:
		return fmt.Sprintf("%.3gx", g.number)
	}
	return "-"
}
