package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package a

type list[T any] struct{}

func (l *list[T]) add(x T) {
	f := func() {
		_ = x
	}
	f()
}

func never() {}
`

// Statements of a literal count for the enclosing function, statements entered twice count once,
// and the program that runs the routes does not count.
func TestAFunctionIsCountedOnceWithItsLiterals(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte(source), 0o600))
	s := sources{root: root, path: "example.org/a", files: map[string][]span{}}
	r, err := s.read("an update", `mode: atomic
example.org/a/a.go:5.28,6.14 1 7
example.org/a/a.go:6.14,8.3 1 1
example.org/a/a.go:9.2,9.5 1 7
example.org/a/a.go:12.15,12.16 1 0
example.org/a/internal/route/measured/main.go:1.1,2.1 9 9
`)
	require.NoError(t, err)
	require.Equal(t, route{name: "an update", statements: 3, entered: map[function]int{{"a.go", "list.add"}: 3}}, r)
	require.Equal(t, "a.go\n      3 list.add\nan update: 1 functions, 3 statements\n", r.listing())
	require.Equal(t, "an update 1 3", strings.Join(strings.Fields(table([]route{r}))[3:], " "))
	_, err = s.read("an update", "example.org/a/a.go:11.1,11.2 1 1\n")
	require.ErrorContains(t, err, "a.go:11:1 is in no function")
}
