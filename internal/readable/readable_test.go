package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCognitiveComplexityCountsNesting(t *testing.T) {
	for body, want := range map[string]int{
		"x()":                                         0,
		"if a { x() }":                                1,
		"if a { x() } else { y() }":                   2,
		"if a { x() } else if b { y() }":              2,
		"for a { if b { x() } }":                      1 + 2,
		"for range a { for b { if c { x() } } }":      1 + 2 + 3,
		"switch a { case 1: if b { x() } }":           1 + 2,
		"select { case <-a: x(); default: y() }":      1,
		"g(func() { if a { x() } })":                  2,
		"if a && b && c { x() }":                      2,
		"if a && b || c && d { x() }":                 1 + 3,
		"if a && !(b || c) { x() }":                   1 + 2,
		"l: for a { continue l }":                     2,
		"f()":                                         1,
		"if a { if b { x() } else { if c { y() } } }": 1 + 2 + 1 + 3,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+body+" }", 0)
		require.NoError(t, err)
		require.Equal(t, want, complexityOf(file.Decls[0].(*ast.FuncDecl)), body)
	}
}

func TestADirectoryIsMeasuredWithoutTests(t *testing.T) {
	dir := t.TempDir()
	long := "\t// " + strings.Repeat("x", maxWidth) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\n// F has a comment.\nfunc F() {\n"+long+
		"\ta, b := 1, 2\n\tif a = b; a > 1 {\n\t}\n\tif c := a; c > 1 {\n\t}\n\tswitch {\n\t}\n}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("not Go"), 0o600))
	m, err := measureDirectory(dir)
	require.NoError(t, err)
	require.Equal(t, 10, m.code())
	require.Equal(t, 2, m.comments)
	require.Equal(t, 2+5+7+9+1+9+1+2+1+1, m.tokens)
	require.Equal(t, []int{1, 1, 1}, []int{m.ifInits, m.untaggedSwitches, m.tuples})
	require.Equal(t, []wideLine{{filepath.Join(dir, "a.go"), 5}}, m.wide)
	require.Equal(t, []int{10}, m.functionLengths())

	var out strings.Builder
	require.NoError(t, run([]string{dir}, &out))
	require.Contains(t, out.String(), "\n1 lines wider than 100 columns\n")
	require.Error(t, run([]string{filepath.Join(dir, "nothing")}, &out))
}

func TestAQuantileIsOneOfTheNumbers(t *testing.T) {
	require.Equal(t, []int{1, 2, 4, 0}, []int{
		quantile([]int{3, 1, 2, 4}, 0), quantile([]int{3, 1, 2, 4}, 0.5), quantile([]int{3, 1, 2, 4}, 1), quantile(nil, 1),
	})
}
