package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The table of a document is between these two lines. The text around it is not touched.
const (
	tableBegins = "<!-- table: begin -->"
	tableEnds   = "<!-- table: end -->"
)

// emptyDocument is the document to begin with.
const emptyDocument = "# Results\n\n" + tableBegins + "\n" + tableEnds + "\n"

// errNoMarkers says that a document has no place for a table.
var errNoMarkers = fmt.Errorf("no %q with %q after it", tableBegins, tableEnds)

// writeTable puts a text between the marks of a document.
func writeTable(path, text string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte(emptyDocument), os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		return fmt.Errorf("%s: %w", path, errNoMarkers)
	}
	return os.WriteFile(path, []byte(before+tableBegins+"\n"+text+tableEnds+after), 0o644)
}

// markdown is the table as a document has it, with where and how it was measured.
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
		if strings.HasPrefix(row.verdict, "FAIL") || strings.HasPrefix(row.verdict, "short") {
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
