package main

import (
	"fmt"
	"os"
	"strings"
)

// documentBegins is what the document says of itself.
const documentBegins = `# Results

` + "`make compare`" + ` writes this page as a whole. [README.md](README.md) says what each line measures and what a figure means.

`

// writeDocument writes the table and what follows from it.
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

// markdown is the table, with where and how it was measured.
func (r *report) markdown(where []string, command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured with `%s`. %s.\n\n", command, strings.Join(where, "; "))
	write := func(cells []string) {
		for _, cell := range cells {
			b.WriteString("| " + escaped.Replace(cell) + " ")
		}
		b.WriteString("|\n")
	}
	write(columns.cells())
	write(strings.Split(strings.Repeat("--- ", len(columns.cells())-1)+"---", " "))
	for _, row := range r.rows {
		if row.missed {
			row.verdict = "**" + row.verdict + "**"
		}
		write(row.cells())
	}
	if r.unequal {
		b.WriteString("\n" + unequalNote + "\n")
	}
	return b.String()
}

// escaped keeps a cell's text from being markup.
var escaped = strings.NewReplacer("|", `\|`, "<", "&lt;", "[", `\[`)
