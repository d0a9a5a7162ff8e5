package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/watchmirror/cache/internal/typecheck"
)

// modules have the packages for users.
var modules = []string{".", "adapters/clientgo", "metrics/prometheus", "sources/etcd", "sources/nats"}

// modulePath begins the import paths of all packages.
const modulePath = "github.com/watchmirror/cache"

// recorded is the directory of the files.
const recorded = ".ci/api"

func main() {
	write := flag.Bool("write", false, "write the files of "+recorded)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	differs, err := run(ctx, *write)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	if differs {
		fmt.Println("If the change of the API is intended: go run ./internal/api -write")
		os.Exit(1)
	}
}

// run compares or writes all files.
func run(ctx context.Context, write bool) (differs bool, err error) {
	current, err := describeModules(ctx)
	if err != nil {
		return false, err
	}
	if write {
		return false, writeFiles(recorded, current)
	}
	old, err := readFiles(recorded)
	if err != nil {
		return false, err
	}
	differences := compare(old, current)
	fmt.Print(differences)
	return differences != "", nil
}

// describeModules returns the content of each file.
func describeModules(ctx context.Context) (map[string]string, error) {
	files := map[string]string{}
	for _, module := range modules {
		packages, err := typecheck.List(ctx, module, "./...")
		if err != nil {
			return nil, err
		}
		for _, pkg := range packages.Named {
			if !isForUsers(pkg) {
				continue
			}
			exported, err := packages.Exported(pkg.ImportPath)
			if err != nil {
				return nil, err
			}
			files[fileName(pkg.ImportPath)] = describe(exported)
		}
	}
	return files, nil
}

func isForUsers(pkg typecheck.Package) bool {
	directories := strings.Split(pkg.ImportPath, "/")
	return pkg.Name != "main" &&
		!slices.Contains(directories, "internal") && !slices.Contains(directories, "examples")
}

// fileName returns the name of a package's file: sources/etcd has sources_etcd.txt.
func fileName(importPath string) string {
	if importPath == modulePath {
		return "cache.txt"
	}
	inside := strings.TrimPrefix(importPath, modulePath+"/")
	return strings.ReplaceAll(inside, "/", "_") + ".txt"
}

func readFiles(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = string(text)
	}
	return files, nil
}

// writeFiles writes all files and removes those of packages that do not exist any more.
func writeFiles(dir string, files map[string]string) error {
	old, err := readFiles(dir)
	if err != nil {
		return err
	}
	for name := range old {
		if _, exists := files[name]; exists {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
