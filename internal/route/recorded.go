package main

import (
	"fmt"
	"slices"
	"strings"
)

// numbers are the counts of one route.
type numbers struct{ functions, statements int }

// format returns the content of recorded.txt: functions, statements and name of each route.
func format(routes []route) string {
	var text strings.Builder
	for _, r := range routes {
		fmt.Fprintf(&text, "%5d functions %5d statements  %s\n", r.functions(), r.statements, r.name)
	}
	return text.String()
}

func parse(text string) (map[string]numbers, error) {
	recorded := map[string]numbers{}
	for line := range strings.Lines(text) {
		head, name, found := strings.Cut(strings.TrimSpace(line), " statements  ")
		var n numbers
		if _, err := fmt.Sscanf(head, "%d functions %d", &n.functions, &n.statements); err != nil || !found {
			return nil, fmt.Errorf("line %q is not of the form: N functions N statements  route", strings.TrimSpace(line))
		}
		recorded[name] = n
	}
	return recorded, nil
}

// compare formats the routes beside their records, and returns as failures the numbers that are
// higher and the routes that are not in both.
func compare(routes []route, recorded map[string]numbers) (table string, failures []error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%-36s %9s %9s   %10s %9s\n", "route", "functions", "recorded", "statements", "recorded")
	lower := false
	for _, r := range routes {
		most, known := recorded[r.name]
		if !known {
			failures = append(failures, fmt.Errorf("%q is not recorded", r.name))
		}
		fmt.Fprintf(&text, "%-36s %9d %9d   %10d %9d\n", r.name, r.functions(), most.functions, r.statements, most.statements)
		if known && (r.functions() > most.functions || r.statements > most.statements) {
			failures = append(failures, fmt.Errorf(
				"%q enters %d functions and %d statements, recorded are %d and %d (-entered lists them)",
				r.name, r.functions(), r.statements, most.functions, most.statements))
		}
		lower = lower || r.functions() < most.functions || r.statements < most.statements
	}
	for name := range recorded {
		if !slices.ContainsFunc(routes, func(r route) bool { return r.name == name }) {
			failures = append(failures, fmt.Errorf("%q is recorded and was not measured", name))
		}
	}
	if lower {
		fmt.Fprintln(&text, "some are lower than recorded: go run ./internal/route -record")
	}
	return text.String(), failures
}
