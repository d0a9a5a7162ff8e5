package report

import (
	"encoding/json"
	"errors"
	"fmt"
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

// footprint has the fields of footprint.Report that are needed.
type footprint struct {
	Bytes      int64  `json:"bytes"`
	Incomplete bool   `json:"incomplete"`
	Fields     []cost `json:"fields"`
}

type cost struct {
	Path       string `json:"path"`
	OwnBytes   int64  `json:"ownBytes"`
	EmptyBytes int64  `json:"emptyBytes"`
}

// AddMemory adds what the fields cost, from a file with the JSON of footprint.Report.
func (r *Report) AddMemory(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the report of footprint: %w", err)
	}
	var measured footprint
	if err := json.Unmarshal(content, &measured); err != nil {
		return fmt.Errorf("read the report of footprint %s: %w", file, err)
	}
	if measured.Bytes <= 0 || len(measured.Fields) == 0 {
		return fmt.Errorf("read the report of footprint %s: %w", file, errEmptyReport)
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

var errEmptyReport = errors.New("it has no bytes or no fields")

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
