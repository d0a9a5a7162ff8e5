package statuspage

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/watchmirror/cache/footprint"
)

// Rows of the tables on the page about memory.
const (
	memoryFields     = 25
	memoryNamespaces = 10
	memoryTypes      = 10
)

// memoryPage is a report of the memory of a cache's objects. Its JSON form is the report.
type memoryPage struct {
	Name        string
	Report      *footprint.Report
	HideObjects bool
}

// memory measures a sample of the objects for each request.
func (q request) memory(e *entry) {
	if e.objects == nil {
		q.failOn(http.StatusNotFound, errorPage{Text: noStore, Name: e.name})
		return
	}
	report, err := footprint.Measure(q.r.Context(), e.objects, footprint.Options{})
	if errors.Is(err, footprint.ErrNoObjects) {
		report = &footprint.Report{}
		err = nil
	}
	if err != nil {
		text := "The memory could not be measured: " + err.Error()
		q.failOn(http.StatusInternalServerError, errorPage{Text: text, Name: e.name})
		return
	}
	report.Name = e.name
	hideFields(report, q.registry.Redact)
	if q.wantsJSON() {
		q.json(http.StatusOK, report)
		return
	}
	page := memoryPage{Name: e.name, Report: report, HideObjects: q.registry.HideObjects}
	q.page(http.StatusOK, "memory", page)
}

// memoryRow is a row with a bar.
type memoryRow struct {
	Name string
	// Key is the name of an object's page, empty if there is none.
	Key     string
	Objects string
	Bytes   int64
	// Share is that of all objects' memory, in percent. Bar is the length of the bar.
	Share string
	Bar   string
}

func (p memoryPage) row(name string, bytes int64) memoryRow {
	share := percentOf(bytes, p.Report.Bytes)
	return memoryRow{Name: name, Bytes: bytes, Share: share, Bar: share}
}

func percentOf(part, whole int64) string {
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(max(whole, 1)))
}

// Fields returns the rows of the largest fields.
func (p memoryPage) Fields() []memoryRow {
	var rows []memoryRow
	for _, field := range firstOf(p.Report.Fields, memoryFields) {
		rows = append(rows, p.row(field.Path, field.Bytes))
	}
	return rows
}

// MoreFields is the number of fields without a row.
func (p memoryPage) MoreFields() int { return max(len(p.Report.Fields)-memoryFields, 0) }

// Namespaces returns the rows of the largest namespaces.
func (p memoryPage) Namespaces() []memoryRow {
	return p.shares(firstOf(p.Report.Namespaces, memoryNamespaces))
}

// MoreNamespaces is the number of namespaces without a row.
func (p memoryPage) MoreNamespaces() int {
	return max(len(p.Report.Namespaces)-memoryNamespaces, 0)
}

// Types returns the rows of the largest types.
func (p memoryPage) Types() []memoryRow { return p.shares(firstOf(p.Report.Types, memoryTypes)) }

func (p memoryPage) shares(shares []footprint.Share) []memoryRow {
	var rows []memoryRow
	for _, share := range shares {
		name := share.Name
		if name == "" {
			name = "(none)"
		}
		row := p.row(name, share.Bytes)
		row.Objects = strconv.Itoa(share.Objects)
		rows = append(rows, row)
	}
	return rows
}

// Largest returns the rows of the largest measured objects. The bars compare them with the first:
// each is a small share of all.
func (p memoryPage) Largest() []memoryRow {
	var rows []memoryRow
	for _, object := range p.Report.Largest {
		row := p.row(object.Key, object.Bytes)
		row.Bar = percentOf(object.Bytes, p.Report.Largest[0].Bytes)
		if !p.HideObjects {
			row.Key = object.Key
		}
		rows = append(rows, row)
	}
	return rows
}

// FactGroups returns the totals.
func (p memoryPage) FactGroups() []factGroup {
	r := p.Report
	measured := "all objects"
	margin := ""
	if !r.IsExact() {
		measured = fmt.Sprintf("%d of the objects", r.Sampled)
		margin = "±\u00a0" + formatBytes(r.MarginBytes)
	}
	return []factGroup{
		{"All objects", withoutEmpty([]fact{
			{Name: "Objects", Value: strconv.Itoa(r.Objects)},
			{Name: "Memory", Value: formatBytes(r.Bytes)},
			{Name: "Measured", Value: measured},
			{Name: "Margin of 95 % of samples", Value: margin},
		})},
		{"One object", []fact{
			{Name: "Mean", Value: formatBytes(r.PerObject.Mean)},
			{Name: "Median", Value: formatBytes(r.PerObject.P50)},
			{Name: "99 % are below", Value: formatBytes(r.PerObject.P99)},
			{Name: "Largest measured", Value: formatBytes(r.PerObject.Max)},
		}},
		{"Beside the objects", []fact{
			{Name: "Table and indexes", Value: formatBytes(r.TableBytes)},
			{Name: "Backlogs of handlers", Value: formatBytes(r.BacklogBytes)},
		}},
	}
}

func withoutEmpty(facts []fact) []fact {
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

func firstOf[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// formatBytes returns a number of bytes in binary units, which do not break from it.
func formatBytes(bytes int64) string {
	return strings.ReplaceAll(footprint.FormatBytes(bytes), " ", "\u00a0")
}

// hideFields removes the fields below those whose values are not shown: their names may be a part
// of the content.
func hideFields(report *footprint.Report, pointers []string) {
	var hidden [][]string
	for _, pointer := range pointers {
		hidden = append(hidden, parsePointer(pointer))
	}
	if hasSecrets(report) {
		hidden = append(hidden, redactedInSecrets...)
	}
	report.Fields = slices.DeleteFunc(report.Fields, func(field footprint.Field) bool {
		path := splitPath(field.Path)
		isHidden := func(pointer []string) bool { return isBelow(path, pointer) }
		return slices.ContainsFunc(hidden, isHidden)
	})
}

func hasSecrets(report *footprint.Report) bool {
	return slices.ContainsFunc(report.Types, func(t footprint.Share) bool {
		return strings.Contains(strings.ToLower(t.Name), "secret")
	})
}

// isBelow returns whether a field is below one that a pointer names. The elements of a list have
// one name.
func isBelow(path, pointer []string) bool {
	if len(path) <= len(pointer) {
		return false
	}
	for i, token := range pointer {
		if token != "*" && path[i] != anyElement && path[i] != token {
			return false
		}
	}
	return true
}

const anyElement = "*"

// splitPath returns the names in a path of a report.
func splitPath(path string) []string {
	var names []string
	for path != "" {
		switch {
		case strings.HasPrefix(path, `["`):
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return append(names, path)
			}
			name, _ := strconv.Unquote(quoted)
			names = append(names, name)
			path = path[len(quoted)+2:]
		case strings.HasPrefix(path, "[*]"):
			names = append(names, anyElement)
			path = path[len("[*]"):]
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			names = append(names, path[:end])
			path = path[end:]
		}
	}
	return names
}
