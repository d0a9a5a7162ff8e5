package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

// maxRows is how many namespaces a table has at most.
const maxRows = 12

// row is one line of the table.
type row struct {
	name                            string
	objects, running, pending, rest int
	newest                          string
}

// rowOf counts the objects of one namespace.
func rowOf(name string, objects iter.Seq[*unstructured.Unstructured]) row {
	r := row{name: name}
	for object := range objects {
		r.objects++
		switch text(object, "status", "phase") {
		case "Running":
			r.running++
		case "Pending":
			r.pending++
		default:
			r.rest++
		}
		if version := object.GetResourceVersion(); older(r.newest, version) {
			r.newest = version
		}
	}
	return r
}

func (r *row) add(other row) {
	r.objects += other.objects
	r.running += other.running
	r.pending += other.pending
	r.rest += other.rest
	if older(r.newest, other.newest) {
		r.newest = other.newest
	}
}

// table prints the mirror by namespace, out of its index, and its status. The rows
// are of successive moments: the mirror goes on while they are read.
func (m *mirror) table(show *display, what string) {
	namespaces, _ := m.informer.IndexValues(cache.NamespaceIndex) // every informer has that index
	slices.Sort(namespaces)
	var rows []row
	total := row{name: "all"}
	for _, namespace := range namespaces {
		// The lister of no namespace is that of all objects, which is right here: either
		// every object of a resource has a namespace, or none has.
		r := rowOf(orNone(namespace), m.informer.ByNamespace(namespace).Values())
		rows = append(rows, r)
		total.add(r)
	}
	left := ""
	if len(rows) > maxRows {
		slices.SortStableFunc(rows, func(a, b row) int { return b.objects - a.objects })
		left = fmt.Sprintf("          … and %d namespaces with fewer", len(rows)-maxRows)
		rows = rows[:maxRows]
	}
	print := printer{what: what, phases: total.running+total.pending > 0}
	lines := []string{"", show.paint(bold, print.head())}
	for _, r := range rows {
		lines = append(lines, print.line(r))
	}
	if left != "" {
		lines = append(lines, show.paint(dim, left))
	}
	lines = append(lines, show.paint(bold, print.line(total)), show.paint(dim, "          "+m.statusLine()), "")
	show.text(lines...)
}

// statusLine is what the mirror knows of itself.
func (m *mirror) statusLine() string {
	status := m.status()
	line := fmt.Sprintf("%s · applied version %s · accepted %s", status.Phase, status.AppliedVersion, status.AcceptedVersion)
	if status.ConsecutiveFailures > 0 {
		line += fmt.Sprintf(" · %d failures in a row", status.ConsecutiveFailures)
	}
	if held := len(status.Quarantined); held > 0 {
		line += fmt.Sprintf(" · %d quarantined", held)
	}
	if waiting := backlog(status); waiting > 0 {
		line += fmt.Sprintf(" · %d not told yet", waiting)
	}
	return line
}

// printer formats rows: phases are for what has them.
type printer struct {
	what   string
	phases bool
}

func (p printer) head() string {
	if p.phases {
		return p.format("by namespace", p.what, "running", "pending", "other", "newest version")
	}
	return p.format("by namespace", p.what, "newest version")
}

func (p printer) line(r row) string {
	if p.phases {
		return p.format(r.name, r.objects, r.running, r.pending, r.rest, r.newest)
	}
	return p.format(r.name, r.objects, r.newest)
}

func (p printer) format(name string, columns ...any) string {
	var line strings.Builder
	line.WriteString("          " + fit(name, 18))
	for i, column := range columns {
		width := 9
		if i == len(columns)-1 {
			width = 16
		}
		fmt.Fprintf(&line, "%*v", width, column)
	}
	return line.String()
}
