package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/watchmirror/cache/internal/typecheck"
)

// layersFile is relative to the root of the module.
const layersFile = "internal/layers/layers.txt"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	problems, err := run(ctx, ".", layersFile)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(1)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// run checks the package in a directory with a file of layers, which is relative to it.
func run(ctx context.Context, dir, file string) (problems []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	layers, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	packages, err := typecheck.List(ctx, dir, ".")
	if err != nil {
		return nil, err
	}
	pkg := packages.Named[0]
	problems = layers.compareFiles(pkg.GoFiles)
	if len(problems) > 0 {
		return problems, nil
	}
	source, err := packages.Source(pkg)
	if err != nil {
		return nil, err
	}
	return layers.upwardUses(source), nil
}
