package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// route has the functions and statements that one route entered in its shortest pass.
type route struct {
	name       string
	statements int
	entered    map[function]int // statements of each function
}

// function is a function of a file; function literals belong to the enclosing one.
type function struct{ file, name string }

func (r route) functions() int { return len(r.entered) }

// listing lists the entered functions by file.
func (r route) listing() string {
	var text strings.Builder
	file := ""
	for _, f := range slices.SortedFunc(maps.Keys(r.entered), func(a, b function) int {
		return strings.Compare(a.file+"\x00"+a.name, b.file+"\x00"+b.name)
	}) {
		if f.file != file {
			file = f.file
			fmt.Fprintln(&text, file)
		}
		fmt.Fprintf(&text, "  %5d %s\n", r.entered[f], f.name)
	}
	fmt.Fprintf(&text, "%s: %d functions, %d statements\n", r.name, r.functions(), r.statements)
	return text.String()
}

// readRoutes reads the counters of all passes in counters/pass/route.
func readRoutes(ctx context.Context, m module, covdata, counters string) ([]route, error) {
	directories, err := filepath.Glob(filepath.Join(counters, "*", "*"))
	if err != nil {
		return nil, err
	}
	source := sources{root: m.root, path: m.path, files: map[string][]span{}}
	shortest := map[string]route{}
	for _, directory := range directories {
		profile := filepath.Join(directory, "profile.txt")
		if _, err := command(ctx, m.root, covdata, "textfmt", "-i="+directory, "-o="+profile); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		r, err := source.read(filepath.Base(directory), string(text))
		if err != nil {
			return nil, err
		}
		if best, ok := shortest[r.name]; !ok || r.statements < best.statements {
			shortest[r.name] = r
		}
	}
	return slices.SortedFunc(maps.Values(shortest), func(a, b route) int { return strings.Compare(a.name, b.name) }), nil
}

// sources maps positions to functions.
type sources struct {
	root, path string
	files      map[string][]span
}

// span is the position of a function, from line and column to line and column.
type span struct {
	name     string
	from, to place
}

type place struct{ line, column int }

func (p place) before(other place) bool {
	return p.line < other.line || p.line == other.line && p.column < other.column
}

// read reads a coverage profile in the format of go test -coverprofile.
func (s sources) read(name, profile string) (route, error) {
	r := route{name: name, entered: map[function]int{}}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		colon := strings.LastIndex(line, ":")
		var from, to place
		var statements, count int
		if _, err := fmt.Sscanf(line[max(colon, 0):], ":%d.%d,%d.%d %d %d",
			&from.line, &from.column, &to.line, &to.column, &statements, &count); err != nil {
			return route{}, fmt.Errorf("profile line %q: %w", line, err)
		}
		if count == 0 {
			continue
		}
		file := strings.TrimPrefix(line[:colon], s.path+"/")
		if strings.HasPrefix(file, measured+"/") {
			continue
		}
		f, err := s.function(file, from)
		if err != nil {
			return route{}, err
		}
		r.statements += statements
		r.entered[f] += statements
	}
	return r, nil
}

func (s sources) function(file string, at place) (function, error) {
	spans, known := s.files[file]
	if !known {
		var err error
		if spans, err = functionsOf(filepath.Join(s.root, file)); err != nil {
			return function{}, err
		}
		s.files[file] = spans
	}
	for _, f := range spans {
		if !at.before(f.from) && at.before(f.to) {
			return function{file: file, name: f.name}, nil
		}
	}
	return function{}, fmt.Errorf("%s:%d:%d is in no function", file, at.line, at.column)
}

func functionsOf(file string) ([]span, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(pos token.Pos) place {
		p := set.Position(pos)
		return place{p.Line, p.Column}
	}
	var spans []span
	for _, decl := range parsed.Decls {
		from, name := decl.Pos(), "(variables)" // literals outside of functions
		if f, ok := decl.(*ast.FuncDecl); ok {
			name = f.Name.Name
			if f.Recv != nil {
				name = receiver(f.Recv.List[0].Type) + "." + name
			}
		}
		spans = append(spans, span{name: name, from: at(from), to: at(decl.End())})
	}
	return spans, nil
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
