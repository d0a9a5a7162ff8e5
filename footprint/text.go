package footprint

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Rows of the tables of String.
const (
	textFields     = 20
	textNamespaces = 5
	textTypes      = 5
	textLargest    = 5
)

// String returns the report as tables: the totals, the largest fields, namespaces, types and
// objects, and the hints.
func (r *Report) String() string {
	var text strings.Builder
	r.writeTotals(&text)
	fields := make([]Share, 0, len(r.Fields))
	for _, field := range r.Fields {
		fields = append(fields, Share{Name: field.Path, Bytes: field.Bytes})
	}
	largest := make([]Share, 0, len(r.Largest))
	for _, object := range r.Largest {
		largest = append(largest, Share{Name: object.Key, Bytes: object.Bytes})
	}
	r.writeTable(&text, "field", fields, textFields)
	r.writeTable(&text, "namespace", r.Namespaces, textNamespaces)
	r.writeTable(&text, "type", r.Types, textTypes)
	r.writeTable(&text, "object", largest, textLargest)
	for _, hint := range r.Hints {
		text.WriteString("\n- " + hint)
	}
	return text.String()
}

func (r *Report) writeTotals(text *strings.Builder) {
	name := cmp.Or(r.Name, "objects")
	fmt.Fprintf(text, "%s: %d objects, %s\n", name, r.Objects, FormatBytes(r.Bytes))
	fmt.Fprintf(text, "each: mean %s, p50 %s, p99 %s, largest %s\n",
		FormatBytes(r.PerObject.Mean), FormatBytes(r.PerObject.P50),
		FormatBytes(r.PerObject.P99), FormatBytes(r.PerObject.Max))
	fmt.Fprintf(text, "beside them: table and indexes %s, backlogs of handlers %s\n",
		FormatBytes(r.TableBytes), FormatBytes(r.BacklogBytes))
	if !r.IsExact() {
		fmt.Fprintf(text, "estimated from a sample of %d: within %s in 95 of 100 samples, less if objects share memory\n",
			r.Sampled, FormatBytes(r.MarginBytes))
	}
	if r.Incomplete {
		text.WriteString("NOT SYNCED: these are the objects that have arrived so far\n")
	}
}

// writeTable writes at most most rows, and how many there are in addition.
func (r *Report) writeTable(text *strings.Builder, title string, rows []Share, most int) {
	if len(rows) == 0 {
		return
	}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nbytes\tshare\t  %s\n", title)
	for _, row := range rows[:min(len(rows), most)] {
		name := row.Name
		if name == "" {
			name = "(none)"
		}
		fmt.Fprintf(table, "%s\t%.1f %%\t  %s\n",
			FormatBytes(row.Bytes), 100*r.share(row.Bytes), name)
	}
	_ = table.Flush() // a strings.Builder accepts all writes
	if more := len(rows) - most; more > 0 {
		fmt.Fprintf(text, "... and %d more\n", more)
	}
}

// FormatBytes returns a number of bytes with three digits or more, in binary units.
func FormatBytes(bytes int64) string {
	value := float64(bytes)
	unit := "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value /= 1024
		unit = larger
	}
	switch {
	case unit == "B" || value >= 100:
		return fmt.Sprintf("%.0f %s", value, unit)
	case value >= 10:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}
