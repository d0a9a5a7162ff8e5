package mutants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keysAfter is, for each logging method, the index of its first key argument.
var keysAfter = map[string]int{
	"Info":                   1,
	"Error":                  2,
	"HandleErrorWithLogger":  3,
	"HandleErrorWithContext": 3,
	"WithValues":             0,
}

// logKeys returns the keys that a file logs, in calls of loggers and steps of traces.
func logKeys(t *testing.T, path string) map[string]bool {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	keys := map[string]bool{}
	add := func(all []ast.Expr) {
		for i := 0; i < len(all); i += 2 {
			key, ok := text(all[i])
			if assert.True(t, ok, "%s: the key is no literal", files.Position(all[i].Pos())) {
				keys[key] = true
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			first, logs := keysAfter[method.Sel.Name]
			isOther := isName(method.X, "http") || isName(method.X, "stream")
			if logs && len(n.Args) > first && !isOther {
				assert.False(t, n.Ellipsis.IsValid(),
					"%s: the keys cannot be read here", files.Position(n.Pos()))
				add(n.Args[first:])
			}
		case *ast.CompositeLit:
			if of, ok := n.Type.(*ast.SelectorExpr); ok && isName(of.X, "trace") && of.Sel.Name == "Field" {
				add([]ast.Expr{n.Elts[0].(*ast.KeyValueExpr).Value})
			}
		}
		return true
	})
	return keys
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(literal.Value)
	return s, err == nil
}

// loggingPackages are the directories whose keys are documented.
var loggingPackages = []string{
	".", "kubeapi", "overlay", "sources", "statuspage", "adapters/clientgo",
}

// Programs filter their logs by keys. Fails unless docs/logging.md has exactly the keys in use.
func TestTheKeysOfTheLogAreDocumented(t *testing.T) {
	used := map[string]bool{"err": true} // klog's own
	for _, dir := range loggingPackages {
		for _, path := range sourcePaths(t, dir) {
			maps.Copy(used, logKeys(t, path))
		}
	}
	require.Greater(t, len(used), 20)
	_, table, found := strings.Cut(read(t, "docs", "logging.md"), "## Keys")
	require.True(t, found)
	documented := map[string]bool{"err": true}
	row := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		for _, key := range names(cells[1]) {
			documented[key] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(used)),
		"docs/logging.md has the first, the source the second")
}

// sourcePaths returns the files under a directory that are no tests, for the root without
// subdirectories.
func sourcePaths(t *testing.T, dir string) []string {
	t.Helper()
	root := filepath.Join(moduleRoot, dir)
	var paths []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && dir == "." && path != root:
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

// Fails unless docs/operating.md has instructions for exactly the existing causes and alerts.
func TestEachCauseAndEachAlertSaysWhatToDo(t *testing.T) {
	causes := firstOf(`Cause = "([a-z-]+)"`, rootSource(t))
	operating := read(t, "docs", "operating.md")
	_, table, found := strings.Cut(operating, "## Causes")
	require.True(t, found)
	require.Greater(t, len(causes), 30)
	assert.Equal(t, causes, firstOf("(?m)^\\| `([a-z-]+)` \\|", table))
	alerts := firstOf(`alert: (\w+)`, read(t, "metrics", "prometheus", "alerts.yaml"))
	require.NotEmpty(t, alerts)
	assert.Equal(t, alerts, firstOf(`(?m)^\*\*(WatchMirror\w+)\*\*: `, operating))
}

// rootSource returns the concatenated source of the root package, without its tests.
func rootSource(t *testing.T) string {
	files, err := readPackage(moduleRoot)
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		all.Write(file.text)
	}
	return all.String()
}
