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
type row struct {
	line, figure, goal, theirs, ours, ratio, spread, verdict string
	// reached and missed say whether there is a goal, and whether it is missed.
	reached, missed bool
	// simple says that the line is one of the calls that programs make first.
	simple bool
}

// columns are the names of a row's parts.
var columns = row{
	line: "workload", figure: "figure", goal: "goal", theirs: "client-go", ours: "ours",
	ratio: "ratio", spread: "spread", verdict: "verdict",
}

func (r row) cells() []string {
	return []string{r.line, r.figure, r.goal, r.theirs, r.ours, r.ratio, r.spread, r.verdict}
}

// judge says of a figure that was measured whether the run fails by it, and why.
func (r *report) judge(title string, f finding) (verdict string, failed bool) {
	if !r.short {
		return f.figure.verdict(f.samples)
	}
	recorded, known := r.record[title][f.figure.name]
	return f.figure.gate(f.samples, recorded, known)
}

// take adds what measure finds. Where the gate fails by that it is measured once more, and
// only that counts: it has one pass, in which what the runtime does beside can put a figure
// off, and what is wrong is so again.
func (r *report) take(progress io.Writer, title string, measure func() (measured, error)) error {
	m, err := measure()
	if err != nil {
		return err
	}
	if r.short && r.fails(title, m) {
		fmt.Fprintf(progress, "%s: this fails, so it is measured once more\n", title)
		m, err = measure()
		if err != nil {
			return err
		}
	}
	r.add(title, m)
	return nil
}

// fails says whether the run fails if this is added.
func (r *report) fails(title string, m measured) bool {
	return slices.ContainsFunc(m.figures, func(f finding) bool {
		_, failed := r.judge(title, f)
		return failed
	})
}

func (r *report) add(title string, m measured) {
	r.unequal = r.unequal || m.unequal
	for _, f := range m.figures {
		verdict, failed := r.judge(title, f)
		r.failed = r.failed || failed
		if f.figure.recorded() {
			if r.found == nil {
				r.found = record{}
			}
			r.found.set(title, f.figure.name, f.figure.counted(f.samples.ours))
		}
		r.rows = append(r.rows, newRow(m, f, verdict))
	}
}

func newRow(m measured, f finding, verdict string) row {
	ratio := f.figure.ratio(f.samples)
	if m.unequal {
		ratio = noRatio
	}
	hasGoal := f.figure.goal.kind != noGoal
	missed := hasGoal && f.figure.missing(f.figure.counted(f.samples.ours), f.samples) > nothing
	return row{
		line:    m.title,
		figure:  f.figure.name,
		goal:    f.figure.goal.String(),
		theirs:  f.figure.text(f.samples.theirs),
		ours:    f.figure.text(f.samples.ours),
		ratio:   ratio,
		spread:  f.samples.spread(),
		verdict: verdict,
		reached: hasGoal && !missed,
		missed:  missed,
		simple:  m.simple,
	}
}

// noRatio stands where there is no ratio.
const noRatio = "-"

// ratio is how many times better ours is; of nothing there is no saying.
func (f figure) ratio(s samples) string {
	if s.byTurns() {
		return fmt.Sprintf("%.2f", s.ratios.median)
	}
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
func (f figure) text(s sample) string {
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
