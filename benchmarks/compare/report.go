package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report has the rows of the tables.
type report struct {
	rows []row
	// record judges stable figures, if not nil; otherwise goals do.
	record record
	failed bool
}

// row is a figure of a workload.
type row struct {
	workload workload
	finding  finding
	verdict  string
}

var columns = []string{
	"workload", "figure", "goal", "client-go", "ours", "ratio", "spread", "verdict",
}

func (r row) cells() []string {
	figure := r.finding.figure
	verdict := r.verdict
	if r.finding.isMissed() {
		verdict = "**" + verdict + "**" // in bold
	}
	return []string{
		r.workload.title,
		figure.name,
		figure.goal.String(),
		digits(r.finding.theirs),
		digits(r.finding.ours),
		r.finding.ratioText(),
		r.finding.spread,
		verdict,
	}
}

// measure adds the figures of a workload. Where the record fails them they are measured once more,
// and only that counts: there is one pass, in which what the runtime does beside can put a figure
// off, and what is wrong is so again.
func (r *report) measure(ctx context.Context, w workload, progress io.Writer) error {
	findings, err := w.measure(ctx, progress)
	if err == nil && r.record != nil && r.isFailedBy(w, findings) {
		fmt.Fprintf(progress, "%s: this fails, so it is measured once more\n", w.title)
		findings, err = w.measure(ctx, progress)
	}
	if err != nil {
		return err
	}
	r.failed = r.failed || r.isFailedBy(w, findings)
	for _, n := range findings {
		verdict, _ := r.judge(w, n)
		r.rows = append(r.rows, row{workload: w, finding: n, verdict: verdict})
	}
	return nil
}

// judge says what the table says of a figure, and whether the run fails by it.
func (r *report) judge(w workload, n finding) (verdict string, failed bool) {
	if r.record == nil {
		return n.verdict()
	}
	return r.record.verdict(w.title, n)
}

func (r *report) isFailedBy(w workload, findings []finding) bool {
	return slices.ContainsFunc(findings, func(n finding) bool {
		_, failed := r.judge(w, n)
		return failed
	})
}

// keep writes all stable figures into a record.
func (r *report) keep(to record) {
	for _, row := range r.rows {
		if row.finding.figure.kind == stable {
			to.set(row.workload.title, row.finding)
		}
	}
}

// conclusion says how many goals are reached and which are not.
func (r *report) conclusion() string {
	goals := 0
	var missed []string
	for _, row := range r.rows {
		goal := row.finding.figure.goal
		if goal.kind != noGoal {
			goals++
		}
		if row.finding.isMissed() {
			missed = append(missed, fmt.Sprintf("\n- %s, %s: %s instead of %s",
				row.workload.title, row.finding.figure.name, row.finding.achieved(), goal))
		}
	}
	text := fmt.Sprintf("%d of %d goals are reached.", goals-len(missed), goals)
	if len(missed) > 0 {
		text += " Missed are:\n" + strings.Join(missed, "")
	}
	return text + "\n"
}

// achieved is the number that a goal is compared with.
func (n finding) achieved() string {
	if n.figure.goal.kind == timesLess {
		return n.ratioText() + "x"
	}
	return digits(n.ours)
}

// tables are one of the calls that programs make first and one of all other workloads, in Markdown.
func (r *report) tables() string {
	var simple, others []row
	for _, row := range r.rows {
		if row.workload.isSimple {
			simple = append(simple, row)
		} else {
			others = append(others, row)
		}
	}
	return table("Calls that programs make first", simple) + table("All other workloads", others)
}

// table is a table below a heading, or nothing if there are no rows.
func table(heading string, rows []row) string {
	if len(rows) == 0 {
		return ""
	}
	lines := [][]string{columns, slices.Repeat([]string{"---"}, len(columns))}
	for _, row := range rows {
		lines = append(lines, row.cells())
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n## %s\n\n", heading)
	aligned := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintf(aligned, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	_ = aligned.Flush() // a strings.Builder takes everything
	return text.String()
}
