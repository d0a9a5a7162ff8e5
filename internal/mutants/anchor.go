package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A mutant's place is found by its declaration and its code, and not by a file and its text. So
// the code can be reformatted, moved to another file, and split into several functions.

var (
	errNoPlace       = errors.New("its code is not there")
	errSeveralPlaces = errors.New("its code is there several times")
	errNoPattern     = errors.New("its From is neither an expression nor statements nor cases")
)

// sourcePackage has the parsed files of a package, without its tests.
type sourcePackage []*sourceFile

type sourceFile struct {
	path   string
	text   []byte
	parsed *ast.File
}

// offset returns the offset of a position in the file.
func (f *sourceFile) offset(position token.Pos) int {
	return int(position - f.parsed.FileStart)
}

func readPackage(dir string) (sourcePackage, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var p sourcePackage
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parseSource(text)
		if err != nil {
			return nil, err
		}
		p = append(p, &sourceFile{path: path, text: text, parsed: parsed})
	}
	return p, nil
}

func parseSource(text []byte) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
}

// place is the code that a mutant replaces.
type place struct {
	file *sourceFile
	// in is the top-level declaration that has the code, as in Mutant.In.
	in string
	// from and to are offsets in the file.
	from, to int
}

// find returns the place of a mutant: in its declaration or, if that does not have the code, the
// only place in the package that has it.
func (p sourcePackage) find(m Mutant) (place, error) {
	meanings, err := parsePattern(m.From)
	if err != nil {
		return place{}, err
	}
	var everywhere []place
	for _, pattern := range meanings {
		everywhere = append(everywhere, p.places(pattern)...)
	}
	var within []place
	for _, found := range everywhere {
		if found.in == m.In {
			within = append(within, found)
		}
	}

	return choose(m, within, everywhere)
}

// choose returns one of the places within the mutant's declaration or, if there is none, the only
// place everywhere.
func choose(m Mutant, within, everywhere []place) (place, error) {
	switch {
	case m.Nth > 0 && m.Nth <= len(within):
		return within[m.Nth-1], nil
	case m.Nth == 0 && len(within) == 1:
		return within[0], nil
	case len(within) > 0:
		return place{}, fmt.Errorf("%w: %s of %s has %d times (Nth is %d): %s; "+
			"give the mutant a longer From, or set Nth",
			errSeveralPlaces, m.In, m.changedPackage(), len(within), m.Nth, oneLine(m.From))
	case len(everywhere) == 1:
		return everywhere[0], nil
	case len(everywhere) > 1:
		return place{}, fmt.Errorf("%w: not %s of %s, but %s have: %s; "+
			"set the mutant's In to one of them, or give it a longer From",
			errSeveralPlaces, m.In, m.changedPackage(), declarationsOf(everywhere), oneLine(m.From))
	}
	return place{}, fmt.Errorf("%w: neither %s nor another declaration of %s has: %s; "+
		"set the mutant's In and From to where this code is now, or remove the mutant if the code "+
		"can no longer have its fault", errNoPlace, m.In, m.changedPackage(), oneLine(m.From))
}

// oneLine returns code for an error.
func oneLine(code string) string { return strings.Join(strings.Fields(code), " ") }

func declarationsOf(places []place) string {
	var names []string
	for _, found := range places {
		names = append(names, found.in)
	}
	return strings.Join(slices.Compact(names), ", ")
}

// parsePattern returns what a mutant's From may be: one expression or element of a composite
// literal, or consecutive statements or cases. Some cases may be of a switch and of a select.
func parsePattern(text string) ([][]ast.Node, error) {
	if element := parseElement(text); element != nil {
		return [][]ast.Node{{element}}, nil
	}
	var meanings [][]ast.Node
	for _, around := range []string{"{%s}", "switch {%s}", "select {%s}"} {
		function := fmt.Appendf(nil, "package p; func _() { "+around+" }", text+"\n")
		parsed, err := parseSource(function)
		if err != nil {
			continue
		}
		body := parsed.Decls[0].(*ast.FuncDecl).Body
		if nodes := innerStatements(body.List[0]); len(nodes) > 0 {
			meanings = append(meanings, nodes)
		}
	}
	if len(meanings) == 0 {
		return nil, fmt.Errorf("%w: %q", errNoPattern, text)
	}
	return meanings, nil
}

// parseElement parses an element of a composite literal: an expression, or a key with a value. It
// returns nil if the text is something else.
func parseElement(text string) ast.Expr {
	literal, err := parser.ParseExpr("T{" + strings.TrimSpace(text) + "}")
	if err != nil {
		return nil
	}
	composite, ok := literal.(*ast.CompositeLit)
	if !ok || len(composite.Elts) != 1 {
		return nil
	}
	return composite.Elts[0]
}

func innerStatements(outer ast.Stmt) []ast.Node {
	switch s := outer.(type) {
	case *ast.BlockStmt:
		return nodesOf(s.List)
	case *ast.SwitchStmt:
		return nodesOf(s.Body.List)
	case *ast.SelectStmt:
		return nodesOf(s.Body.List)
	}
	return nil
}

func nodesOf(statements []ast.Stmt) []ast.Node {
	var nodes []ast.Node
	for _, s := range statements {
		nodes = append(nodes, s)
	}
	return nodes
}

// places returns all places of the package that have the code.
func (p sourcePackage) places(pattern []ast.Node) []place {
	var all []place
	for _, file := range p {
		for _, declared := range declarations(file.parsed) {
			ast.Inspect(declared.node, func(n ast.Node) bool {
				for _, nodes := range candidates(n, len(pattern)) {
					if !sameNodes(nodes, pattern) {
						continue
					}
					all = append(all, place{
						file: file,
						in:   declared.name,
						from: file.offset(nodes[0].Pos()),
						to:   file.offset(nodes[len(nodes)-1].End()),
					})
				}
				return true
			})
		}
	}
	return all
}

// declaration is a top-level declaration with its name as in Mutant.In.
type declaration struct {
	name string
	node ast.Node
}

func declarations(file *ast.File) []declaration {
	var all []declaration
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			all = append(all, declaration{name, d})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					all = append(all, declaration{values.Names[0].Name, values})
				}
			}
		}
	}
	return all
}

// candidates returns the sequences of nodes that begin in or at a node and can be replaced.
func candidates(n ast.Node, length int) [][]ast.Node {
	if length > 1 {
		return windows(statementsIn(n), length)
	}
	switch n := n.(type) {
	case *ast.CaseClause:
		if len(n.Body) > 0 {
			// A case without statements stands for the head of any.
			head := &ast.CaseClause{Case: n.Case, List: n.List, Colon: n.Colon}
			return [][]ast.Node{{n}, {head}}
		}
		return [][]ast.Node{{n}}
	case *ast.CommClause:
		if len(n.Body) > 0 {
			head := &ast.CommClause{Case: n.Case, Comm: n.Comm, Colon: n.Colon}
			return [][]ast.Node{{n}, {head}}
		}
		return [][]ast.Node{{n}}
	case ast.Expr, ast.Stmt:
		return [][]ast.Node{{n}}
	}
	return nil
}

func statementsIn(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return nodesOf(n.List)
	case *ast.CaseClause:
		return nodesOf(n.Body)
	case *ast.CommClause:
		return nodesOf(n.Body)
	}
	return nil
}

func windows(nodes []ast.Node, length int) [][]ast.Node {
	var all [][]ast.Node
	for first := 0; first+length <= len(nodes); first++ {
		all = append(all, nodes[first:first+length])
	}
	return all
}

func sameNodes(a, b []ast.Node) bool {
	for i := range a {
		if !sameSyntax(reflect.ValueOf(a[i]), reflect.ValueOf(b[i])) {
			return false
		}
	}
	return true
}

// sameSyntax compares values of syntax trees without comments. Of a position it compares only
// whether there is one: f(x...) differs from f(x) by nothing else.
func sameSyntax(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Interface().(type) {
	case token.Pos:
		return a.IsZero() == b.IsZero()
	case *ast.CommentGroup, []*ast.CommentGroup:
		return true
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameSyntax(a.Elem(), b.Elem())
	case reflect.Slice:
		return sameElements(a, b)
	case reflect.Struct:
		return sameFields(a, b)
	}
	return a.Equal(b)
}

func sameElements(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !sameSyntax(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func sameFields(a, b reflect.Value) bool {
	for i := range a.NumField() {
		if !sameSyntax(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}
