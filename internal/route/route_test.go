package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func entering(name string, statements ...int) route {
	r := route{name: name, entered: map[function]int{}}
	for i, n := range statements {
		r.entered[function{"a.go", string(rune('f' + i))}] = n
		r.statements += n
	}
	return r
}

func TestARouteAboveItsRecordIsAFailure(t *testing.T) {
	recorded, err := parse(format([]route{entering("an update", 3, 4)}))
	require.NoError(t, err)
	require.Equal(t, map[string]numbers{"an update": {2, 7}}, recorded)
	for name, test := range map[string]struct {
		routes []route
		says   []string
		lower  bool
	}{
		"as recorded":     {[]route{entering("an update", 3, 4)}, nil, false},
		"lower":           {[]route{entering("an update", 6)}, nil, true},
		"more statements": {[]route{entering("an update", 3, 5)}, []string{`"an update" enters 2 functions and 8 statements, recorded are 2 and 7 (-entered lists them)`}, false},
		"more functions":  {[]route{entering("an update", 3, 3, 1)}, []string{`"an update" enters 3 functions and 7 statements, recorded are 2 and 7 (-entered lists them)`}, false},
		"not recorded":    {[]route{entering("an update", 3, 4), entering("an add", 1)}, []string{`"an add" is not recorded`}, false},
		"not measured":    {nil, []string{`"an update" is recorded and was not measured`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			table, failures := compare(test.routes, recorded)
			var says []string
			for _, failure := range failures {
				says = append(says, failure.Error())
			}
			require.Equal(t, test.says, says)
			require.Equal(t, test.lower, len(table) > 0 && table[len(table)-len("-record\n"):] == "-record\n", table)
		})
	}
}

func TestARecordCanBeRead(t *testing.T) {
	text, err := os.ReadFile("recorded.txt")
	require.NoError(t, err)
	recorded, err := parse(string(text))
	require.NoError(t, err)
	require.Len(t, recorded, 17)
	_, err = parse("3 functions of a route")
	require.ErrorContains(t, err, "is not of the form")
}

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
	_, err = s.read("an update", "example.org/a/a.go:11.1,11.2 1 1\n")
	require.ErrorContains(t, err, "a.go:11:1 is in no function")
}
