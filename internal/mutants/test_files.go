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

// Most of a mutant's time is compilation, mostly of tests that are not run: 7 s of 9 s for the
// root package. So a mutant's build omits the test files that its test does not need. A needless
// file costs time; a missing one fails the build, which does not count as a kill.

// testFile is a test file with the names that it declares and uses.
type testFile struct {
	path string
	// declares are its top-level names, uses the names that are declared elsewhere, and
	// receivers the types of its methods.
	declares, uses, receivers map[string]bool
	// tests are its top-level tests.
	tests map[string]bool
	// always is true if it has effects without being used: an init, a TestMain, a blank import.
	always bool
}

// testFilesOf reads the test files in a directory.
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
	// The parser's unresolved names of the file. They include keys of composite literals; a type
	// checker would be exact, but take longer than it saves.
	for _, name := range parsed.Unresolved {
		f.uses[name.Name] = true
	}
	if strings.HasSuffix(parsed.Name.Name, "_test") {
		f.useSelectors(parsed)
	}
	return f, nil
}

// useSelectors adds the names after a selector, since an external test package uses names of the
// package's own test files by its package name.
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

// receiver returns the name of a method's receiver type.
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

// unneededFiles returns the files that a test does not need.
func unneededFiles(all []*testFile, test string) ([]string, error) {
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

// extends says whether it has methods of a type that no test file declares. They may be called
// through an interface, without being named.
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
