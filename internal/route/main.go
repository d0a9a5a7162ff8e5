package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// measured is the program that runs the routes, relative to the module's root.
const measured = "internal/route/measured"

func main() {
	entered := flag.String("entered", "", "list the functions that one `route` enters")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *entered); err != nil {
		fmt.Fprintln(os.Stderr, "route:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, entered string) error {
	module, err := findModule(ctx)
	if err != nil {
		return err
	}
	routes, err := measure(ctx, module)
	if err != nil {
		return err
	}
	if entered == "" {
		fmt.Print(table(routes))
		return nil
	}
	for _, r := range routes {
		if r.name == entered {
			fmt.Print(r.listing())
			return nil
		}
	}
	return fmt.Errorf("no route %q", entered)
}

// table formats the numbers of all routes.
func table(routes []route) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-36s %9s %10s\n", "route", "functions", "statements")
	for _, r := range routes {
		fmt.Fprintf(&text, "%-36s %9d %10d\n", r.name, r.functions(), r.statements)
	}
	return text.String()
}

// module has the counted packages: the root package and those of the module that it imports.
type module struct {
	root, path string
	packages   []string
}

func findModule(ctx context.Context) (module, error) {
	output, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Dir}} {{.Path}}")
	if err != nil {
		return module{}, err
	}
	root, path, _ := strings.Cut(strings.TrimSpace(output), " ")
	output, err = command(ctx, root, "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", path)
	if err != nil {
		return module{}, err
	}
	return module{root: root, path: path, packages: strings.Fields(output)}, nil
}

// measure builds the measured program, runs it and reads its counters.
func measure(ctx context.Context, m module) ([]route, error) {
	scratch, err := os.MkdirTemp("", "route")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	program, counters := filepath.Join(scratch, "measured"), filepath.Join(scratch, "counters")
	// No package has counters unless the program itself has them.
	counted := strings.Join(append(m.packages, m.path+"/"+measured), ",")
	if _, err := command(ctx, m.root, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted,
		"-o", program, "./"+measured); err != nil {
		return nil, err
	}
	// GOCOVERDIR receives the counters at the program's end, which are not used.
	if _, err := command(ctx, m.root, "env", "GOCOVERDIR="+scratch, program, counters); err != nil {
		return nil, err
	}
	covdata, err := command(ctx, m.root, "go", "tool", "-n", "covdata")
	if err != nil {
		return nil, err
	}
	return readRoutes(ctx, m, strings.TrimSpace(covdata), counters)
}

// command returns the output of a command. If it fails, the output is part of the error.
func command(ctx context.Context, directory, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = directory
	output, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output), nil
}
