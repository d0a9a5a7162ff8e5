// Package report says in text and JSON what the analysis found.
package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
)

// Report is the answer of the command.
type Report struct {
	// Type is the object's type.
	Type string `json:"type"`
	// Reads are the fields that may be read, sorted by path.
	Reads []Field `json:"reads"`
	// Escapes are the places at which an object or a part leaves the analyzed code. Everything below
	// the path counts as read. The whole object has an empty path.
	Escapes []Place `json:"escapes"`
	// Compared are the places at which whole objects are compared.
	Compared []Place `json:"compared"`
	// Fields is the list for kubeapi.Options.Fields. It is empty if everything may be read.
	Fields []string `json:"fields"`
	// Memory is nil without a report of package footprint.
	Memory *Memory `json:"memory,omitempty"`
}

// Field is a field and where it is read.
type Field struct {
	Path string `json:"path"`
	// PresenceOnly: only whether there is a value, or how many elements it has.
	PresenceOnly bool     `json:"presenceOnly,omitempty"`
	Places       []string `json:"places"`
}

// Place is where an object or a part is used.
type Place struct {
	Path  string `json:"path"`
	Place string `json:"place"`
	How   string `json:"how,omitempty"`
}

// New makes a report of what was found. Places in harmless, as file:line, are no escapes. Names of
// files are relative to dir if they are below it.
func New(typeName string, result *flow.Result, dir string, harmless []string) (*Report, error) {
	r := &Report{
		Type:     typeName,
		Reads:    []Field{},
		Escapes:  []Place{},
		Compared: []Place{},
		Fields:   []string{},
	}
	unused := slices.Clone(harmless)
	var uses []flow.Use
	fields := map[string]*Field{}
	for _, u := range result.Uses {
		place := placeOf(u.Site, dir)
		if u.Kind == flow.Escaped && slices.Contains(harmless, place) {
			unused = slices.DeleteFunc(unused, func(known string) bool { return known == place })
			continue
		}
		uses = append(uses, u)
		r.add(u, place, fields)
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("nothing escapes at %s", strings.Join(unused, ", "))
	}
	for _, field := range fields {
		r.Reads = append(r.Reads, *field)
	}
	slices.SortFunc(r.Reads, func(a, b Field) int { return cmp.Compare(a.Path, b.Path) })
	if len(result.Uses) > 0 {
		r.Fields = append(r.Fields, flow.Fields(result.Uses[0].Object, uses)...)
	}
	return r, nil
}

func (r *Report) add(u flow.Use, place string, fields map[string]*Field) {
	switch u.Kind {
	case flow.Escaped:
		r.Escapes = append(r.Escapes, Place{Path: u.Path, Place: place, How: u.How})
		return
	case flow.Compared:
		r.Compared = append(r.Compared, Place{Path: u.Path, Place: place})
		return
	}
	field := fields[u.Path]
	if field == nil {
		field = &Field{Path: u.Path, PresenceOnly: true}
		fields[u.Path] = field
	}
	field.PresenceOnly = field.PresenceOnly && u.Kind == flow.Presence
	if !slices.Contains(field.Places, place) {
		field.Places = append(field.Places, place)
	}
}

func placeOf(site flow.Site, dir string) string {
	file := site.File
	relative, err := filepath.Rel(dir, file)
	if err == nil && !strings.HasPrefix(relative, "..") {
		file = relative
	}
	return fmt.Sprintf("%s:%d", file, site.Line)
}

// String is the report as text.
func (r *Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d fields may be read\n", r.Type, len(r.Reads))
	for _, field := range r.Reads {
		path := pathText(field.Path)
		if field.PresenceOnly {
			path += " (presence)"
		}
		fmt.Fprintf(&text, "  %-44s %s\n", path, placesText(field.Places))
	}
	writePlaces(&text, "escapes, which keep everything below their path", r.Escapes)
	writePlaces(&text, "comparisons of whole objects, in which only kept fields take part", r.Compared)
	r.writeFields(&text)
	if r.Memory != nil {
		text.WriteString(r.Memory.String())
	}
	return text.String()
}

// maxPlaces bounds the places of a field in the text. JSON has all.
const maxPlaces = 4

func placesText(places []string) string {
	if len(places) <= maxPlaces {
		return strings.Join(places, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(places[:maxPlaces], " "), len(places)-maxPlaces)
}

func writePlaces(text *strings.Builder, title string, places []Place) {
	if len(places) == 0 {
		return
	}
	fmt.Fprintf(text, "%s:\n", title)
	for _, place := range places {
		fmt.Fprintf(text, "  %-44s %s %s\n", pathText(place.Path), place.Place, place.How)
	}
}

func pathText(path string) string { return cmp.Or(path, "(whole object)") }

func (r *Report) writeFields(text *strings.Builder) {
	switch {
	case len(r.Fields) > 0:
		text.WriteString("Fields: []string{\n")
		for _, field := range r.Fields {
			fmt.Fprintf(text, "\t%q,\n", field)
		}
		text.WriteString("}\n")
	case r.keepsEverything():
		text.WriteString("Fields: nil // the whole object may be read\n")
	default:
		text.WriteString("Fields: nil // the program does not use the type\n")
	}
}

func (r *Report) keepsEverything() bool { return len(r.Reads)+len(r.Escapes) > 0 }
