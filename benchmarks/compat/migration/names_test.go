package migration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exported are the names that a package's files declare for others.
func exported(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	add := func(identifiers ...*ast.Ident) {
		for _, identifier := range identifiers {
			if identifier.IsExported() {
				names[identifier.Name] = true
			}
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			switch declared := declaration.(type) {
			case *ast.FuncDecl:
				if declared.Recv == nil {
					add(declared.Name)
				}
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						add(spec.Names...)
					}
				}
			}
		}
	}
	return names
}

func folderOf(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(goCommand(t, "list", "-m", "-f", "{{.Dir}}", module))
}

// The guide has a line for each name of client-go's package that is not here, and none for
// a name that is.
func TestTheMigrationGuideHasEachNameThatIsNotHere(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/migrating.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "\n## Names that are not here\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var removed strings.Builder
	for line := range strings.Lines(table) {
		if columns := strings.Split(line, "|"); len(columns) == 4 {
			removed.WriteString(columns[1])
		}
	}

	have := exported(t, folderOf(t, "github.com/watchmirror/cache"))
	theirs := exported(t, filepath.Join(folderOf(t, "k8s.io/client-go"), "tools/cache"))
	require.Greater(t, len(theirs), 150)
	for name := range theirs {
		assert.Equal(t, !have[name], strings.Contains(removed.String(), "`"+name+"`"),
			"%s: is it here: %t", name, have[name])
	}
}
