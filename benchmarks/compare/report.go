package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report prints one line's figures as soon as they are there, and the table of all at
// the end.
type report struct {
	rows   []row
	failed bool
	// unequal says that a line has different numbers of items.
	unequal bool
}

// row is a figure of a line as text.
type row struct{ line, figure, goal, theirs, ours, ratio, spread, verdict string }

func (r *report) add(m measured) {
	for _, f := range m.figures {
		theirs, ours := f.sample(m.theirs), f.sample(m.ours)
		verdict, failed := f.verdict(theirs, ours)
		r.failed = r.failed || failed
		name, times := m.name, ratio(f.counted(theirs), f.counted(ours))
		if m.unequal() {
			name += fmt.Sprintf(" (client-go: %d of %d)", m.theirItems, m.task.Items)
			times, r.unequal = noRatio, true
		}
		r.rows = append(r.rows, row{
			line: name, figure: f.name, goal: f.goal.String(),
			theirs: f.text(theirs), ours: f.text(ours),
			ratio:  times,
			spread: theirs.spread() + " / " + ours.spread() + " %", verdict: verdict,
		})
	}
}

// noRatio is where there is no saying.
const noRatio = "-"

// ratio is how many times less ours is; of nothing there is no saying.
func ratio(theirs, ours float64) string {
	if ours == 0 {
		return noRatio
	}
	return fmt.Sprintf("%.2f", theirs/ours)
}

// text is what counts and, where there were several passes, the median.
func (f figure) text(s sample) string {
	counted := fmt.Sprintf(f.format, f.counted(s))
	if s.best == s.worst {
		return counted
	}
	return counted + " (" + fmt.Sprintf(f.format, s.median) + ")"
}

func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "workload\tfigure\tgoal\tclient-go\tours\tratio\tspread\tverdict")
	for _, row := range r.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			row.line, row.figure, row.goal, row.theirs, row.ours, row.ratio, row.spread, row.verdict)
	}
	if err := table.Flush(); err != nil || !r.unequal {
		return err
	}
	_, err := fmt.Fprintln(w, "No ratio where client-go got another number of items: it would compare the numbers.")
	return err
}
