package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// documentBegins is what the document says of itself.
const documentBegins = `# Results

` + "`make compare`" + ` writes this page as a whole. [README.md](README.md) says what each line measures and what a figure means.

`

// writeDocument writes the tables and what follows from it.
func (r *report) writeDocument(path string, where []string, command string) error {
	text := documentBegins + r.conclusion() + "\n" + r.markdown(where, command)
	return os.WriteFile(path, []byte(text), 0o644)
}

// conclusion says how many goals are reached and which are not.
func (r *report) conclusion() string {
	reached := 0
	var missed []string
	for _, row := range r.rows {
		if row.reached {
			reached++
		}
		if row.missed {
			missed = append(missed, fmt.Sprintf("%s, %s: %s instead of %s", row.line, row.figure, row.achieved(), row.goal))
		}
	}
	text := fmt.Sprintf("%d of %d goals are reached.", reached, reached+len(missed))
	if len(missed) == 0 {
		return text + "\n"
	}
	return text + " Missed are:\n\n- " + escaped.Replace(strings.Join(missed, "\n- ")) + "\n"
}

// achieved is the number that a goal is compared with.
func (r row) achieved() string {
	if strings.HasPrefix(r.goal, "<=") || r.ratio == noRatio {
		return r.ours
	}
	return r.ratio + "x"
}

// markdown is where and how it was measured, with a table of the calls that programs make
// first and one of all other workloads.
func (r *report) markdown(where []string, command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured with `%s`. %s.\n", command, strings.Join(where, "; "))
	var simple, others []row
	for _, row := range r.rows {
		if row.simple {
			simple = append(simple, row)
		} else {
			others = append(others, row)
		}
	}
	writeSection(&b, "Calls that programs make first", simple)
	writeSection(&b, "All other workloads", others)
	if r.unequal {
		b.WriteString("\n" + unequalNote + "\n")
	}
	return b.String()
}

// writeSection writes a table below its heading, or nothing if there are no rows.
func writeSection(b *strings.Builder, heading string, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", heading)
	writeCells(b, columns.cells())
	writeCells(b, slices.Repeat([]string{"---"}, len(columns.cells())))
	for _, row := range rows {
		if row.missed {
			row.verdict = "**" + row.verdict + "**"
		}
		writeCells(b, row.cells())
	}
}

func writeCells(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		b.WriteString("| " + escaped.Replace(cell) + " ")
	}
	b.WriteString("|\n")
}

// escaped keeps a cell's text from being markup.
var escaped = strings.NewReplacer("|", `\|`, "<", "&lt;", "[", `\[`)
