package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/types"
	"os"
	"regexp"
	"strings"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
)

// Memory is what fields cost, by a report of package footprint.
type Memory struct {
	// Bytes is the memory of all objects, Kept that of the fields in the list and of what is always
	// kept.
	Bytes int64 `json:"bytes"`
	Kept  int64 `json:"kept"`
}

// String says it in three lines.
func (m Memory) String() string {
	percent := func(bytes int64) float64 { return 100 * float64(bytes) / float64(m.Bytes) }
	rest := m.Bytes - m.Kept
	return fmt.Sprintf("memory of all objects: %d bytes\n", m.Bytes) +
		fmt.Sprintf("  these fields, and those that are always kept: %d (%.0f %%)\n", m.Kept, percent(m.Kept)) +
		fmt.Sprintf("  the other fields: %d (%.0f %%)\n", rest, percent(rest))
}

// Footprint has the fields of footprint.Report that are needed.
type Footprint struct {
	Bytes      int64       `json:"bytes"`
	Incomplete bool        `json:"incomplete"`
	Types      []typeShare `json:"types"`
	Fields     []cost      `json:"fields"`

	file string
}

type typeShare struct {
	Name string `json:"name"`
}

type cost struct {
	Path       string `json:"path"`
	OwnBytes   int64  `json:"ownBytes"`
	EmptyBytes int64  `json:"emptyBytes"`
}

var (
	errEmptyReport = errors.New("it has no bytes, no fields or no types")
	errIncomplete  = errors.New("its informer had not synced")
)

// ReadFootprint reads a file with the JSON of a footprint.Report.
func ReadFootprint(file string) (*Footprint, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the report of footprint: %w", err)
	}
	measured := &Footprint{file: file}
	if err := json.Unmarshal(content, measured); err != nil {
		return nil, measured.failed(err)
	}
	if measured.Bytes <= 0 || len(measured.Fields) == 0 || len(measured.Types) == 0 {
		return nil, measured.failed(errEmptyReport)
	}
	if measured.Incomplete {
		return nil, measured.failed(errIncomplete)
	}
	return measured, nil
}

func (f *Footprint) failed(err error) error {
	return fmt.Errorf("read the report of footprint %s: %w", f.file, err)
}

// checkTypes fails if the report is about objects of another type.
func (f *Footprint) checkTypes(object *types.TypeName) error {
	for _, share := range f.Types {
		if !isReportedAs(object, share.Name) {
			typeName := object.Pkg().Path() + "." + object.Name()
			return f.failed(fmt.Errorf("it is of %s, not of %s", share.Name, typeName))
		}
	}
	return nil
}

// isReportedAs reports whether a report names a type so: *v1.Pod for a Pod, *unstructured.Unstructured
// v1/Pod for an unstructured object, which has the same paths as a Pod.
func isReportedAs(object *types.TypeName, reported string) bool {
	goType, kind, _ := strings.Cut(reported, " ")
	if strings.TrimPrefix(goType, "*") == object.Pkg().Name()+"."+object.Name() {
		return true
	}
	return kind != "" && kind[strings.LastIndex(kind, "/")+1:] == object.Name()
}

// AddMemory adds what the fields cost, by a report about objects of the type.
func (r *Report) AddMemory(measured *Footprint, object *types.TypeName) error {
	if err := measured.checkTypes(object); err != nil {
		return err
	}
	r.Memory = &Memory{Bytes: measured.Bytes, Kept: measured.Bytes}
	if len(r.Fields) == 0 {
		return nil
	}
	for _, field := range measured.Fields {
		path := pathOf(field.Path)
		if flow.IsKept(path, flow.Presence, r.Fields) {
			continue
		}
		r.Memory.Kept -= field.OwnBytes
		parent := parentOf(path)
		if parent == "" || flow.IsKept(parent, flow.Presence, r.Fields) {
			r.Memory.Kept += field.EmptyBytes // the field's place in the parent's struct
		}
	}
	return nil
}

// parentOf returns the path without its last name.
func parentOf(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:strings.LastIndex(path, "[")]
	}
	return path[:max(strings.LastIndex(path, "."), 0)]
}

var quotedKey = regexp.MustCompile(`\["([^"]*)"\]`)

// pathOf brings a path of footprint into the form of kubeapi.Options.Fields.
func pathOf(measured string) string {
	path := strings.ReplaceAll(measured, "[*]", "")
	return quotedKey.ReplaceAllStringFunc(path, func(key string) string {
		name := key[2 : len(key)-2]
		if strings.ContainsAny(name, ".[") {
			return "[" + name + "]"
		}
		return "." + name
	})
}
