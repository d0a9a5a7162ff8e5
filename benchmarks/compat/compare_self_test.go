package compat

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checked compiles a small package from source.
func checked(t *testing.T, path, source string) *types.Package {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path+".go", "package cache\n"+source, 0)
	require.NoError(t, err)
	config := types.Config{Importer: importer.Default()}
	p, err := config.Check(path, files, []*ast.File{file}, nil)
	require.NoError(t, err)
	return p
}

// TestTheComparerSeesEveryKindOfDifference guards the guard: each case is one
// name on which two packages differ, or must count as the same.
func TestTheComparerSeesEveryKindOfDifference(t *testing.T) {
	cases := []struct {
		name, ours, theirs string
		want               []string
	}{
		{"a missing name", ``, `func X() {}`, []string{"X: missing"}},
		{"a name that client-go lacks", `func X() {}`, ``, []string{"X: client-go does not have it"}},
		{"the same function", `func X(a any) (err error) { return nil }`, `func X(b interface{}) error { return nil }`, nil},
		{"another result", `func X() error { return nil }`, `func X() {}`, []string{"X: have func() error, want func()"}},
		{"variadic", `func X(a []int) {}`, `func X(a ...int) {}`, []string{"X: have func(a []int), want func(a ...int)"}},
		{"another kind", `var X func()`, `func X() {}`, []string{"X: want a function, have var ours.X func()"}},
		{"a constant's value", `const X = "a"`, `const X = "b"`, []string{`X: value is "a", want "b"`}},
		{"a constant's type", `const X = 1`, `const X int = 1`, []string{"X: have untyped int, want int"}},
		{"a mapped type", `type T int; func X(T) {}`, `type T int; func X(T) {}`, nil},
		{"another named type", `type T int; func X(T) {}`, `type U int; func X(U) {}`, []string{"X: have func(cache.T), want func(cache.U)"}},
		{"an alias", `type X = int`, `type X int`, []string{"X: alias is true, want false"}},
		{"what an alias stands for", `type X = func(int)`, `type X = func(string)`, []string{"X: have func(int), want func(string)"}},
		{"an excluded alias in a signature", `type c int; type Skipped = func(*c); func X(Skipped) {}`,
			`type d int; type Skipped = func(d); func X(Skipped) {}`, nil},
		{"an excluded type", `type Skipped int; var X Skipped`, `type Skipped string; var X Skipped`, nil},
		{"an excluded field", `type X struct{}`, `type X struct{ Skipped int }`, nil},
		{"one method more in an interface", `type X interface{ A(); B() }`, `type X interface{ A() }`,
			[]string{"X: have interface{A(); B()}, want interface{A()}"}},
		{"one method less in an interface", `type X interface{ A() }`, `type X interface{ A(); B() }`,
			[]string{"X: have interface{A()}, want interface{A(); B()}"}},
		{"embedded or written out", `type X interface{ A(); B() }`, `type E interface{ B() }; type X interface{ A(); E }`, nil},
		{"a struct with more fields", `type X struct{ B, A int }`, `type X struct{ A int }`, nil},
		{"a struct with a field less", `type X struct{}`, `type X struct{ A int; b int }`, []string{"X.A: field missing"}},
		{"a field of another type", `type X struct{ A string }`, `type X struct{ A int }`, []string{"X.A: have string, want int"}},
		{"a field that is embedded", `type E int; type X struct{ E E }`, `type E int; type X struct{ E }`,
			[]string{"X.E: embedded is false, want true"}},
		{"more methods", `type X int; func (X) A() {}; func (X) B() {}`, `type X int; func (X) A() {}`, nil},
		{"a method less", `type X int`, `type X int; func (*X) A() {}`, []string{"X.A: method missing (receiver is a pointer: true)"}},
		{"a pointer receiver", `type X int; func (*X) A() {}`, `type X int; func (X) A() {}`,
			[]string{"X.A: method missing (receiver is a pointer: false)"}},
		{"a method's signature", `type X int; func (X) A(int) {}`, `type X int; func (X) A() {}`, []string{"X.A: have func(int), want func()"}},
		{"a map's value", `type X map[string]int`, `type X map[string]bool`, []string{"X: have map[string]int, want map[string]bool"}},
		{"the same generic type", `type O interface{ comparable }; type X[T O] struct{ A T; F func(X[T]) }`,
			`type O interface{ comparable }; type X[E O] struct{ A E; F func(X[E]) }`, nil},
		{"another constraint", `type X[T any] struct{ A T }`, `type X[T comparable] struct{ A T }`,
			[]string{"X: type parameters are [any], want [comparable]"}},
		{"a type parameter more", `type X[T, U any] struct{ A T }`, `type X[T any] struct{ A T }`,
			[]string{"X: type parameters are [any, any], want [any]"}},
		{"a type parameter's place", `type X[T, U any] struct{ A T }`, `type X[T, U any] struct{ A U }`, []string{"X.A: have T, want U"}},
		{"a type argument", `type G[T any] struct{}; func X(G[int]) {}`, `type G[T any] struct{}; func X(G[string]) {}`,
			[]string{"X: have func(cache.G[int]), want func(cache.G[string])"}},
		{"a generic function's constraint", `func X[T any](T) {}`, `type O interface{ M() }; func X[T O](T) {}`,
			[]string{"X: have func[T any](T), want func[T cache.O](T)"}},
		{"a channel's direction", `var X chan int`, `var X <-chan int`, []string{"X: have chan int, want <-chan int"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := &comparer{
				ours: checked(t, "ours", tc.ours), theirs: checked(t, "theirs", tc.theirs),
				skip: func(name string) bool { return strings.HasSuffix(name, "Skipped") },
			}
			c.identifier("X")
			require.Equal(t, tc.want, c.sorted())
		})
	}
}

func TestNeedsFindsTheTypesThatASignatureMentions(t *testing.T) {
	p := checked(t, "p", `
type A int; type B int; type C int; type D = func(B); type E int; type F int; type g int
func X(*A, map[string][]C, D, ...E) (chan F, g)  { return nil, 0 }`)
	found := map[string]bool{}
	needs(p.Scope().Lookup("X").Type(), p, found)
	require.Equal(t, map[string]bool{"A": true, "C": true, "D": true, "E": true, "F": true}, found)
}
