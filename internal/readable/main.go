package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxComplexity = 20
	maxWidth      = 100
)

func main() {
	dirs := os.Args[1:]
	if len(dirs) == 0 {
		dirs = []string{
			".", "internal/table", "internal/eventlog", "internal/deltalog", "internal/tasks", "internal/backoff",
		}
	}
	if err := run(dirs, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "readable:", err)
		os.Exit(1)
	}
}

func run(dirs []string, out io.Writer) error {
	var packages []*measures
	for _, dir := range dirs {
		m, err := measureDirectory(dir)
		if err != nil {
			return err
		}
		packages = append(packages, m)
	}
	printTable(out, packages)
	printComplex(out, packages)
	printWide(out, packages)
	return nil
}

// measureDirectory measures the source files of a directory, without tests.
func measureDirectory(dir string) (*measures, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	m := &measures{dir: dir}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := m.addFile(path, text); err != nil {
			return nil, err
		}
	}
	if m.files == 0 {
		return nil, fmt.Errorf("%s has no Go files", dir)
	}
	return m, nil
}

func printTable(out io.Writer, packages []*measures) {
	fmt.Fprintf(out, "%-24s %6s %5s %5s %5s %5s %5s %5s %6s %6s %6s %6s %6s %6s\n", "package", "code",
		"cmt%", "tok/l", "med w", "p90 w", ">100%", "funcs", "med fn", "p90 fn", "max fn", "ifinit", "sw{}", "tuple")
	for _, m := range packages {
		lengths := m.functionLengths()
		fmt.Fprintf(out, "%-24s %6d %5.0f %5.1f %5d %5d %5.1f %5d %6d %6d %6d %6.1f %6.1f %6.1f\n",
			m.dir, m.code(), m.commentPercent(), m.tokensPerLine(),
			quantile(m.widths, 0.5), quantile(m.widths, 0.9), m.widePercent(),
			len(m.functions), quantile(lengths, 0.5), quantile(lengths, 0.9), quantile(lengths, 1),
			m.perThousand(m.ifInits), m.perThousand(m.untaggedSwitches), m.perThousand(m.tuples))
	}
}

func printComplex(out io.Writer, packages []*measures) {
	var complex []function
	for _, m := range packages {
		for _, f := range m.functions {
			if f.complexity > maxComplexity {
				complex = append(complex, f)
			}
		}
	}
	slices.SortStableFunc(complex, func(a, b function) int { return b.complexity - a.complexity })
	fmt.Fprintf(out, "\n%d functions with a cognitive complexity above %d\n", len(complex), maxComplexity)
	for _, f := range complex {
		fmt.Fprintf(out, "%5d %s: %s\n", f.complexity, f.position, f.name)
	}
}

// printWide prints the numbers of wide lines by file.
func printWide(out io.Writer, packages []*measures) {
	total := 0
	var text strings.Builder
	for _, m := range packages {
		file := ""
		for _, line := range m.wide {
			if line.file != file {
				file = line.file
				fmt.Fprintf(&text, "\n  %s:", file)
			}
			fmt.Fprintf(&text, " %d", line.number)
		}
		total += len(m.wide)
	}
	fmt.Fprintf(out, "\n%d lines wider than %d columns%s\n", total, maxWidth, text.String())
}
