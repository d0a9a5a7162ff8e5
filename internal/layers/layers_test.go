package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module has a package of a lower and a higher file, of which the lower one is given.
func module(t *testing.T, lower string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.org/m\n\ngo 1.26\n",
		"lower.go":   lower,
		"higher.go":  "package m\n\ntype higher struct{ count int }\n\nfunc (h *higher) add() { h.count += one }\n",
		"layers.txt": "lower.go base\nhigher.go top\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestAnArrowThatGoesUpIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		lower string
		want  []string
	}{
		"only down": {"package m\n\nconst one = 1\n", nil},
		"a type": {
			"package m\n\nconst one = 1\n\nvar first higher\n",
			[]string{"lower.go:5: layer base uses higher of higher.go, in the higher layer top"},
		},
		"a method through an interface of its own": {
			"package m\n\nconst one = 1\n\nfunc two(x interface{ add() }) { x.add() }\n",
			nil,
		},
		"a method and a field": {
			"package m\n\nconst one = 1\n\nfunc two() int {\n\th := new(higher)\n\th.add()\n\treturn h.count\n}\n",
			[]string{
				"lower.go:6: layer base uses higher of higher.go, in the higher layer top",
				"lower.go:7: layer base uses add of higher.go, in the higher layer top",
				"lower.go:8: layer base uses count of higher.go, in the higher layer top",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := run(t.Context(), module(t, test.lower), "layers.txt")
			require.NoError(t, err)
			require.Equal(t, test.want, problems)
		})
	}
}

func TestFilesAndTheirLayersAreCompared(t *testing.T) {
	l, err := parse("a.go base\n\nb.go base\nc.go top\n")
	require.NoError(t, err)
	require.Equal(t, []string{"base", "top"}, l.names)
	require.Empty(t, l.compareFiles([]string{"a.go", "b.go", "c.go"}))
	require.Equal(t, []string{
		"d.go has no layer in internal/layers/layers.txt",
		"internal/layers/layers.txt lists b.go, which does not exist",
	}, l.compareFiles([]string{"a.go", "c.go", "d.go"}))
}

func TestAWrongFileOfLayersIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"a.go\n":                         `"a.go" is not a file and its layer`,
		"a.go base\na.go top\n":          "a.go is listed twice",
		"a.go base\nb.go top\nc.go base": "c.go stands apart from the other files of layer base",
	} {
		_, err := parse(text)
		require.EqualError(t, err, want)
	}
}

// row matches a row of the table of layers: a layer, its subject and its files.
var row = regexp.MustCompile(`(?m)^\| ([a-z]+) \| [^|]+ \| ([^|]+) \|$`)

func TestTheTableOfLayersHasTheirFilesInTheirOrder(t *testing.T) {
	text, err := os.ReadFile("layers.txt")
	require.NoError(t, err)
	document, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(document), "| layer | subject | files, without `.go` |\n")
	table, _, _ = strings.Cut(table, "\n\n")

	var inTable strings.Builder
	for _, found := range row.FindAllStringSubmatch(table, -1) {
		layer, files := found[1], found[2]
		for file := range strings.SplitSeq(files, ", ") {
			fmt.Fprintf(&inTable, "%s.go %s\n", file, layer)
		}
	}
	require.Equal(t, string(text), inTable.String())
}

func TestEachFileOfTheRootBeginsWithItsPurpose(t *testing.T) {
	text, err := os.ReadFile("layers.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		source, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		isCommented := strings.HasPrefix(string(source), "// ")
		assert.True(t, isCommented, "%s does not begin with a comment that says what it is for", name)
	}
}
