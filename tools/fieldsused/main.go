package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/ssa/ssautil"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
	"github.com/watchmirror/cache/tools/fieldsused/internal/load"
	"github.com/watchmirror/cache/tools/fieldsused/internal/report"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fieldsused:", err)
		os.Exit(1)
	}
}

const usage = `fieldsused says which fields of a type a program may read.

	fieldsused -type k8s.io/api/core/v1.Pod ./...

It prints each field with the places that read it, the places at which an object leaves the
analyzed code, and the list for kubeapi.Options.Fields. For unstructured objects the type is
k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured.

`

const (
	followUsage = "follow objects into packages of other modules below an import `path`; " +
		"may be repeated"
	footprintUsage = "say what the other fields cost, by a `file` with the JSON of a footprint.Report"
	harmlessUsage  = "an escape, as `file:line`, that is known to read only fields in the list; " +
		"may be repeated"
)

// appendTo returns a flag's function that collects its values.
func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}

// settings are the flags.
type settings struct {
	load      load.Options
	footprint string
	harmless  []string
	asJSON    bool
}

func parseFlags(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("fieldsused", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.load.Type, "type", "", "the type, as `import/path.Name`")
	flags.StringVar(&s.load.Dir, "dir", ".", "the `directory` in which packages are found")
	flags.BoolVar(&s.load.Dependencies, "deps", false, "follow objects into all other modules (slow)")
	flags.Func("follow", followUsage, appendTo(&s.load.Follow))
	flags.StringVar(&s.footprint, "footprint", "", footprintUsage)
	flags.BoolVar(&s.asJSON, "json", false, "print JSON")
	flags.Func("harmless", harmlessUsage, appendTo(&s.harmless))
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.load.Type == "" {
		return s, errors.New("-type is required")
	}
	s.load.Patterns = flags.Args()
	if len(s.load.Patterns) == 0 {
		return s, errors.New("no packages are named; name some, for example ./... for all")
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) error {
	settings, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	found, err := settings.answer()
	if err != nil {
		return err
	}
	if !settings.asJSON {
		_, err = io.WriteString(stdout, found.String())
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(found)
}

// answer loads and analyzes the program.
func (s settings) answer() (*report.Report, error) {
	var measured *report.Footprint
	if s.footprint != "" {
		read, err := report.ReadFootprint(s.footprint)
		if err != nil {
			return nil, err
		}
		measured = read
	}
	program, err := load.Load(s.load)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.load.Dir)
	if err != nil {
		return nil, fmt.Errorf("find directory %s: %w", s.load.Dir, err)
	}
	found, err := report.New(s.load.Type, analyze(program), dir, s.harmless)
	if err != nil {
		return nil, err
	}
	if measured == nil {
		return found, nil
	}
	if err := found.AddMemory(measured, program.Object); err != nil {
		return nil, err
	}
	return found, nil
}

func analyze(program *load.Program) *flow.Result {
	config := flow.Config{
		Fset:      program.Fset,
		IsObject:  func(name *types.TypeName) bool { return name == program.Object },
		IsPart:    flow.PartsOf(program.Object).Has,
		IsLibrary: func(pkg *types.Package) bool { return program.Libraries[pkg.Path()] },
		Anything:  program.Object,
	}
	functions := flow.WithoutGenerics(flow.Functions(ssautil.AllFunctions(program.SSA)))
	return flow.Analyze(config, program.SSA, functions)
}
