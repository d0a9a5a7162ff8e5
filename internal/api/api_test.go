package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/typecheck"
)

const source = `package shop

import "io"

// Limit has a comment.
const Limit, hidden = 3, 4

var ErrEmpty error

type base struct {
	Name string
	size int
}

func (*base) Open(path string) error { return nil }
func (base) close()                  {}

type Basket[T any] struct {
	base
	Items []T
}

func (b Basket[T]) All(f func(item T) bool) {}

type Sink interface {
	io.Writer
	Sync(times int) (done bool, err error)
	private()
}

type Number interface{ ~int | ~float64 }
type Kind string
type Reader = io.Reader

func Sum[T Number](numbers ...T) T { return numbers[0] }
func lost()                        {}
`

const want = `const Limit untyped int
field Basket[T].Items []T
field Basket[T].Name string
func Sum[T Number](numbers ...T) T
method (*Basket[T]) Open(path string) error
method (Basket[T]) All(f func(item T) bool)
method Sink has unexported methods
method Sink.Sync(times int) (done bool, err error)
method Sink.Write(p []byte) (n int, err error)
type Basket[T any] struct
type Kind string
type Number interface{~int | ~float64}
type Reader = io.Reader
type Sink interface
var ErrEmpty error
`

func TestEachExportedNameHasALine(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "shop.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	pkg, err := config.Check("example.org/shop", files, []*ast.File{file}, nil)
	require.NoError(t, err)
	require.Equal(t, want, describe(pkg))
}

func TestAChangeIsShownLineByLine(t *testing.T) {
	old := map[string]string{"a.txt": "func A()\nfunc B(int)\nfunc C()\n", "b.txt": "func D()\n", "c.txt": "func E()\n"}
	current := map[string]string{"a.txt": "func A()\nfunc B(string)\nfunc C()\n", "b.txt": "func D()\n"}
	require.Equal(t, ".ci/api/a.txt:\n  - func B(int)\n  + func B(string)\n.ci/api/c.txt:\n  - func E()\n",
		compare(old, current))
	require.Empty(t, compare(old, old))
}

func TestWritingReplacesAllFiles(t *testing.T) {
	dir := t.TempDir()
	first := map[string]string{"a.txt": "func A()\n", "b.txt": "func B()\n"}
	require.NoError(t, writeFiles(dir, first))
	second := map[string]string{"b.txt": "func C()\n"}
	require.NoError(t, writeFiles(dir, second))
	have, err := readFiles(dir)
	require.NoError(t, err)
	require.Equal(t, second, have)
}

func TestPackagesForUsersAreImportable(t *testing.T) {
	for path, want := range map[string]bool{
		modulePath:                      true,
		modulePath + "/sources/etcd":    true,
		modulePath + "/internal/table":  false,
		modulePath + "/examples/source": false,
	} {
		require.Equal(t, want, isForUsers(typecheck.Package{ImportPath: path, Name: "p"}), path)
	}
	require.False(t, isForUsers(typecheck.Package{ImportPath: modulePath + "/tool", Name: "main"}))
	require.Equal(t, "cache.txt", fileName(modulePath))
	require.Equal(t, "sources_etcd.txt", fileName(modulePath+"/sources/etcd"))
}
