package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compare returns, for each file that differs, its name and the lines that were removed or added.
func compare(old, current map[string]string) string {
	names := maps.Clone(old)
	maps.Copy(names, current)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differences := compareLines(old[name], current[name])
		if differences != "" {
			fmt.Fprintf(&text, "%s/%s:\n%s", recorded, name, differences)
		}
	}
	return text.String()
}

// compareLines merges two sorted texts.
func compareLines(old, current string) string {
	before := slices.Collect(strings.Lines(old))
	after := slices.Collect(strings.Lines(current))
	all := slices.Concat(before, after)
	slices.Sort(all)
	var text strings.Builder
	for _, line := range slices.Compact(all) {
		wasThere := slices.Contains(before, line)
		isThere := slices.Contains(after, line)
		if wasThere && !isThere {
			text.WriteString("  - " + line)
		}
		if isThere && !wasThere {
			text.WriteString("  + " + line)
		}
	}
	return text.String()
}
