package compat

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const (
	oursPath   = "github.com/watchmirror/cache"
	theirsPath = "k8s.io/client-go/tools/cache"
)

// loadBoth returns the type information of both packages as the compiler sees it.
// One importer reads both, so that a type of apimachinery is the same type in
// either. The go command compiles what its cache does not have yet; the test
// binary imports both packages, so that is usually nothing.
var loadBoth = sync.OnceValues(func() (both [2]*types.Package, err error) {
	exports, err := exportFiles(oursPath, theirsPath)
	if err != nil {
		return both, err
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	})
	for i, path := range []string{oursPath, theirsPath} {
		if both[i], err = from.Import(path); err != nil {
			return both, fmt.Errorf("importing %s: %w", path, err)
		}
	}
	return both, nil
})

// exportFiles maps each import path that the given packages need to the file with
// its export data.
func exportFiles(paths ...string) (map[string]string, error) {
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, paths...)
	var stderr bytes.Buffer
	command := exec.Command("go", args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), "="); ok && file != "" {
			exports[path] = file
		}
	}
	return exports, nil
}

// packages is loadBoth for a test.
func packages(t *testing.T) (ours, theirs *types.Package) {
	t.Helper()
	both, err := loadBoth()
	if err != nil {
		t.Fatal(err)
	}
	return both[0], both[1]
}
