package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report has the rows of the table.
type report struct {
	rows   []row
	failed bool
	// unequal says that a line has different numbers of items.
	unequal bool
	// short judges as the short form does: by the record as well.
	short  bool
	record record
	// found is what would be recorded.
	found record
}

// row is a figure of a line as text.
type row struct{ line, figure, goal, theirs, floor, ours, ratio, spread, verdict string }

// columns are the names of a row's parts.
var columns = row{"workload", "figure", "goal", "client-go", "floor", "ours", "ratio", "spread", "verdict"}

func (r row) cells() []string {
	return []string{r.line, r.figure, r.goal, r.theirs, r.floor, r.ours, r.ratio, r.spread, r.verdict}
}

// judge says of a figure of what was measured whether the run fails by it, and why.
func (r *report) judge(m measured, f figure) (s samples, verdict string, failed bool) {
	s = samples{f.sample(m.theirs), f.sample(m.ours), f.sample(m.floors)}
	if !r.short {
		verdict, failed = f.verdict(s)
		return s, verdict, failed
	}
	recorded, known := r.record[m.name][f.name]
	verdict, failed = f.gate(s, recorded, known)
	return s, verdict, failed
}

// take adds what measure finds. Where the gate fails by that it is measured once more, and
// only that counts: it has one pass, in which what the runtime does beside can put a figure
// off, and what is wrong is so again.
func (r *report) take(progress io.Writer, measure func() (measured, error)) error {
	m, err := measure()
	if err == nil && r.short && r.fails(m) {
		fmt.Fprintf(progress, "%s: this fails, so it is measured once more\n", m.name)
		m, err = measure()
	}
	if err == nil {
		r.add(m)
	}
	return err
}

// fails says whether the run fails if this is added.
func (r *report) fails(m measured) bool {
	return slices.ContainsFunc(m.figures, func(f figure) bool {
		_, _, failed := r.judge(m, f)
		return failed
	})
}

func (r *report) add(m measured) {
	for _, f := range m.figures {
		s, text, failed := r.judge(m, f)
		r.failed = r.failed || failed
		if f.recorded() {
			if r.found == nil {
				r.found = record{}
			}
			r.found.set(m.name, f.name, f.counted(s.ours))
		}
		name, times := m.name, f.ratio(s)
		if m.unequal() {
			name += fmt.Sprintf(" (client-go: %d of %d)", m.theirItems, m.task.Items)
			times, r.unequal = noRatio, true
		}
		r.rows = append(r.rows, row{
			line: name, figure: f.name, goal: f.goal.String(),
			theirs: f.text(s.theirs, m.theirs != nil), floor: f.text(s.floor, m.floors != nil), ours: f.text(s.ours, true),
			ratio:  times,
			spread: s.theirs.spread() + " / " + s.ours.spread() + " %", verdict: text,
		})
	}
}

// noRatio is where there is no saying, and noFigure what was not measured.
const (
	noRatio  = "-"
	noFigure = "-"
)

// ratio is how many times better ours is; of nothing there is no saying.
func (f figure) ratio(s samples) string {
	theirs, ours := f.counted(s.theirs), f.counted(s.ours)
	if f.more {
		theirs, ours = ours, theirs
	}
	if ours <= 0 || s.theirs == (sample{}) {
		return noRatio
	}
	return fmt.Sprintf("%.2f", theirs/ours)
}

// text is what counts and, where there were several passes, the median.
func (f figure) text(s sample, measured bool) string {
	if !measured {
		return noFigure
	}
	counted := fmt.Sprintf(f.format, f.counted(s))
	if s.best == s.worst {
		return counted
	}
	return counted + " (" + fmt.Sprintf(f.format, s.median) + ")"
}

// unequalNote explains a missing ratio.
const unequalNote = "No ratio where client-go got another number of items: it would compare the numbers."

func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([]row{columns}, r.rows...) {
		fmt.Fprintln(table, strings.Join(row.cells(), "\t"))
	}
	if err := table.Flush(); err != nil || !r.unequal {
		return err
	}
	_, err := fmt.Fprintln(w, unequalNote)
	return err
}
