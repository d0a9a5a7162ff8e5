package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Most of the time that a mutant takes is the compiler's, and most of what it
// compiles is tests that are not run: of the root package 7 s of 9 s. So a mutant's
// build leaves out every test file that its test has no use for. A file too many
// costs time; one too few is a build that fails, which is never treated as a kill.

// testFile is a test file of a package, and what of it matters for what it needs.
type testFile struct {
	path string
	// declares are its top-level names, and uses the names in it that are declared
	// elsewhere. receivers are the types that it declares methods of.
	declares, uses, receivers map[string]bool
	// tests are the top-level tests in it.
	tests map[string]bool
	// always is true if it has an effect without being named: an init, a TestMain,
	// an import for its effects.
	always bool
}

// testFilesOf reads the test files of the package in a directory.
func testFilesOf(dir string) ([]*testFile, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var all []*testFile
	for _, path := range paths {
		file, err := readTestFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

func readTestFile(path string) (*testFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		return nil, err
	}
	f := &testFile{
		path: path, declares: map[string]bool{}, uses: map[string]bool{},
		receivers: map[string]bool{}, tests: map[string]bool{},
	}
	for _, imported := range parsed.Imports {
		f.always = f.always || imported.Name != nil && imported.Name.Name == "_"
	}
	for _, declaration := range parsed.Decls {
		f.declare(declaration)
	}
	// Resolved by the parser, file by file: a type checker would know better and take
	// longer than what it saves. Keys of composite literals are among them.
	for _, name := range parsed.Unresolved {
		f.uses[name.Name] = true
	}
	if strings.HasSuffix(parsed.Name.Name, "_test") {
		f.useSelectors(parsed)
	}
	return f, nil
}

// useSelectors is for the files of an external test package: what a test file of the
// package itself lends to them has the package's name before it.
func (f *testFile) useSelectors(parsed *ast.File) {
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			f.uses[selector.Sel.Name] = true
		}
		return true
	})
}

func (f *testFile) declare(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			f.receivers[receiver(d.Recv.List[0].Type)] = true
			return
		}
		f.declares[name] = true
		switch {
		case name == "init" || name == "TestMain":
			f.always = true
		case strings.HasPrefix(name, "Test"):
			f.tests[name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				f.declares[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range s.Names {
					f.declares[name.Name] = true
				}
			}
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// unneeded are the files that a test does not need.
func unneeded(all []*testFile, test string) ([]string, error) {
	needed := map[*testFile]bool{}
	var need func(f *testFile)
	need = func(f *testFile) {
		if needed[f] {
			return
		}
		needed[f] = true
		for _, other := range all {
			if f.needs(other) {
				need(other)
			}
		}
	}
	found := false
	for _, f := range all {
		if f.tests[test] {
			found = true
			need(f)
		}
		if f.always || f.extends(all) {
			need(f)
		}
	}
	if !found {
		return nil, fmt.Errorf("test %s does not exist", test)
	}
	var rest []string
	for _, f := range all {
		if !needed[f] {
			rest = append(rest, f.path)
		}
	}
	return rest, nil
}

func (f *testFile) needs(other *testFile) bool {
	for name := range other.declares {
		if f.uses[name] && !other.tests[name] {
			return true
		}
	}
	for name := range other.receivers {
		if f.declares[name] {
			return true
		}
	}
	return false
}

// extends says whether it has methods of a type that no test file declares: they may
// be called without being named, through an interface.
func (f *testFile) extends(all []*testFile) bool {
	for name := range f.receivers {
		declared := false
		for _, other := range all {
			declared = declared || other.declares[name]
		}
		if !declared {
			return true
		}
	}
	return false
}
