// Memory shows how a mirror of 20,000 pods comes to need less than a quarter of its memory. It
// mirrors them twice: whole, and with only the fields that its program (package inventory) reads.
// The list of these fields is what the command fieldsused found, see fieldsused.json.
//
//	go run ./examples/memory
//
// It prints a report of package footprint for each mirror, and fails unless the reports, the list
// of fieldsused and the heap agree that the memory is a quarter or less, and the program's answer
// is the same. docs/memory.md is about the steps in between.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	_ "embed"
)

func main() {
	pods := flag.Int("pods", 20_000, "`number` of pods")
	report := flag.String("report", "", "write the JSON of the first report into this `file`, for fieldsused")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *pods, *report); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// fieldsUsedJSON is the output of fieldsused for this program.
//
//go:embed fieldsused.json
var fieldsUsedJSON []byte

// fieldsUsed is what fieldsused found.
type fieldsUsed struct {
	Fields  []string `json:"fields"`
	Escapes []any    `json:"escapes"`
	Memory  struct {
		Bytes int64 `json:"bytes"`
		Kept  int64 `json:"kept"`
	} `json:"memory"`
}

func run(ctx context.Context, out io.Writer, pods int, reportFile string) error {
	var used fieldsUsed
	if err := json.Unmarshal(fieldsUsedJSON, &used); err != nil {
		return fmt.Errorf("read fieldsused.json: %w", err)
	}
	server, err := startServer(pods)
	if err != nil {
		return err
	}
	defer server.stop()

	fmt.Fprintf(out, "== a mirror of whole pods\n\n")
	whole, err := mirror(ctx, server, nil)
	if err != nil {
		return err
	}
	whole.print(out)
	if reportFile != "" {
		if err := writeJSON(reportFile, whole.report); err != nil {
			return err
		}
	}

	fmt.Fprintf(out, "\n== a mirror of the fields that fieldsused found: %q\n\n", used.Fields)
	reduced, err := mirror(ctx, server, used.Fields)
	if err != nil {
		return err
	}
	reduced.print(out)
	return compare(out, whole, reduced, used)
}

func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
