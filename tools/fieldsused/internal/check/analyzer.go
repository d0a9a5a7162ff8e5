// Package check reports reads of fields that kubeapi.Options.Fields does not keep.
package check

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
)

// settings are the analyzer's flags.
type settings struct {
	withoutUnknown bool
	withEscapes    bool
}

// New returns the check.
func New() *analysis.Analyzer {
	s := &settings{}
	analyzer := &analysis.Analyzer{
		Name:      "fieldscheck",
		Doc:       "report reads of fields that kubeapi.Options.Fields does not keep",
		URL:       "https://github.com/watchmirror/cache/blob/main/docs/memory.md",
		Run:       s.run,
		FactTypes: []analysis.Fact{new(flow.FunctionFact), new(packageFact)},
	}
	analyzer.Flags.BoolVar(&s.withoutUnknown, "nounknown", false,
		"do not report Fields that are no constants, against which no reads are checked")
	analyzer.Flags.BoolVar(&s.withEscapes, "escapes", false,
		"report also where objects and parts reach code that is not analyzed")
	return analyzer
}

// packageFact is what packages that import this one have to know.
type packageFact struct {
	Module       string
	Declarations []declaration
	// Reads are the reads of a package that has seen no declaration of their type. Later packages
	// report them once they see one.
	Reads []read
	// Reported are the reads of other packages that this one has reported.
	Reported []read
}

// AFact marks it as a fact of go/analysis.
func (*packageFact) AFact() {}

// declaration is a literal of kubeapi.Options.
type declaration struct {
	// Type is the object's type, as import path, dot and name.
	Type string
	// Fields are the kept fields. IsWhole: all are kept, or those that are kept are no constants.
	Fields  []string
	IsWhole bool
	Place   string
	pos     token.Pos
}

// read is a read of a field.
type read struct {
	Type string
	Path string
	Kind flow.Kind
	// How says to which code an object or a part escapes.
	How   string
	Place string
	pos   token.Pos
}

func (s *settings) run(pass *analysis.Pass) (any, error) {
	if !usesObjects(pass.Pkg, map[*types.Package]bool{}) {
		return nil, nil
	}
	c := &checker{settings: s, pass: pass}
	c.own.Declarations = c.declarations()
	c.own.Reads = c.analyze()
	if pass.Module != nil {
		c.own.Module = pass.Module.Path
	}
	c.collect()
	c.reportOwn()
	c.reportImported()
	if len(c.own.Declarations)+len(c.own.Reads)+len(c.own.Reported) > 0 {
		pass.ExportPackageFact(&c.own)
	}
	return nil, nil
}

// usesObjects reports whether a package can have to do with API objects.
func usesObjects(pkg *types.Package, seen map[*types.Package]bool) bool {
	if seen[pkg] {
		return false
	}
	seen[pkg] = true
	if strings.HasPrefix(pkg.Path(), "k8s.io/apimachinery/") {
		return true
	}
	return slices.ContainsFunc(pkg.Imports(), func(imported *types.Package) bool {
		return usesObjects(imported, seen)
	})
}

// checker checks one package.
type checker struct {
	settings *settings
	pass     *analysis.Pass
	own      packageFact
	// imported are the facts of all packages of the module that this one imports, also indirectly.
	imported []*packageFact
	// byType are the declarations of this package and the imported ones.
	byType map[string][]declaration
}

// analyze finds the package's reads and exports its functions' facts.
func (c *checker) analyze() []read {
	pass := c.pass
	program := ssa.NewProgram(pass.Fset, ssa.InstantiateGenerics)
	createImports(program, pass.Pkg, map[*types.Package]bool{})
	created := program.CreatePackage(pass.Pkg, withoutGenerated(pass), pass.TypesInfo, false)
	created.Build()
	result := flow.Analyze(flow.Config{
		Fset:     pass.Fset,
		IsObject: cached(flow.IsAPIObject),
		IsPart:   cached(flow.MayBePart),
		Facts: func(function *types.Func) *flow.FunctionFact {
			fact := new(flow.FunctionFact)
			if !pass.ImportObjectFact(function, fact) {
				return nil
			}
			return fact
		},
	}, program, flow.Functions(ssautil.AllFunctions(program)))
	for function, fact := range result.Facts {
		if function.Pkg() == pass.Pkg && !fact.IsEmpty() {
			pass.ExportObjectFact(function, fact)
		}
	}
	return c.readsOf(result)
}

func createImports(program *ssa.Program, of *types.Package, seen map[*types.Package]bool) {
	for _, imported := range of.Imports() {
		if seen[imported] {
			continue
		}
		seen[imported] = true
		program.CreatePackage(imported, nil, nil, true)
		createImports(program, imported, seen)
	}
}

// withoutGenerated returns the files. Those with generated methods of API types have no bodies,
// because what the methods do is known, and there are many.
func withoutGenerated(pass *analysis.Pass) []*ast.File {
	if !flow.IsAPIPackage(pass.Pkg) {
		return pass.Files
	}
	var files []*ast.File
	for _, file := range pass.Files {
		base := filepath.Base(pass.Fset.Position(file.Pos()).Filename)
		if strings.HasPrefix(base, "generated") || strings.HasPrefix(base, "zz_generated") {
			file = withoutBodies(file)
		}
		files = append(files, file)
	}
	return files
}

func withoutBodies(file *ast.File) *ast.File {
	stripped := *file
	stripped.Decls = slices.Clone(file.Decls)
	for n, declared := range stripped.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		withoutBody := *function
		withoutBody.Body = nil
		stripped.Decls[n] = &withoutBody
	}
	return &stripped
}

func cached[K comparable](f func(K) bool) func(K) bool {
	known := map[K]bool{}
	return func(key K) bool {
		answer, ok := known[key]
		if !ok {
			answer = f(key)
			known[key] = answer
		}
		return answer
	}
}

// readsOf returns the uses that need a field.
func (c *checker) readsOf(result *flow.Result) []read {
	var reads []read
	for _, u := range result.Uses {
		if u.Kind == flow.Compared || flow.IsAlwaysKept(u.Path) {
			continue
		}
		found := read{
			Type:  u.Object.Pkg().Path() + "." + u.Object.Name(),
			Path:  u.Path,
			Kind:  u.Kind,
			How:   u.How,
			Place: placeText(u.Site.File, u.Site.Line),
			pos:   u.Site.Pos,
		}
		if u.Kind == flow.Escaped && !c.settings.withEscapes {
			if u.Path == "" {
				continue
			}
			found.Kind = flow.Presence // something below it is read, but it is not known what
			found.How = ""
		}
		reads = append(reads, found)
	}
	return reads
}

// placeText names a file with its folder: packages often have files of equal names.
func placeText(file string, line int) string {
	folder := filepath.Base(filepath.Dir(file))
	return fmt.Sprintf("%s/%s:%d", folder, filepath.Base(file), line)
}

// collect reads the facts of imported packages.
func (c *checker) collect() {
	c.byType = map[string][]declaration{}
	add := func(fact *packageFact) {
		for _, declared := range fact.Declarations {
			c.byType[declared.Type] = append(c.byType[declared.Type], declared)
		}
	}
	for _, fact := range c.pass.AllPackageFacts() {
		imported, ok := fact.Fact.(*packageFact)
		if !ok || fact.Package == c.pass.Pkg {
			continue
		}
		if imported.Module != c.own.Module {
			continue // what a library does is no part of the program
		}
		c.imported = append(c.imported, imported)
		add(imported)
	}
	add(&c.own)
}

// reportOwn reports this package's reads of types that are declared here or in an imported package.
// The others stay in the fact.
func (c *checker) reportOwn() {
	var later []read
	for _, found := range c.own.Reads {
		declared := c.byType[found.Type]
		if len(declared) == 0 {
			later = append(later, found)
			continue
		}
		if !isKept(found, declared) {
			c.pass.Reportf(found.pos, "%s", message(found, declared))
		}
	}
	c.own.Reads = later
}

// reportImported reports reads of other packages of the module, for which a declaration is seen
// only here.
func (c *checker) reportImported() {
	reported := map[read]bool{}
	for _, fact := range c.imported {
		for _, known := range fact.Reported {
			reported[known] = true
		}
	}
	for _, fact := range c.imported {
		for _, found := range fact.Reads {
			declared := c.byType[found.Type]
			if len(declared) == 0 || isKept(found, declared) || reported[found] {
				continue
			}
			reported[found] = true
			c.own.Reported = append(c.own.Reported, found)
			c.pass.Reportf(c.position(declared), "%s: %s", found.Place, message(found, declared))
		}
	}
}

// position returns the place of a declaration of this package, or of the package clause.
func (c *checker) position(declared []declaration) token.Pos {
	for _, d := range declared {
		if d.pos.IsValid() {
			return d.pos
		}
	}
	return c.pass.Files[0].Package
}

func isKept(found read, declared []declaration) bool {
	return slices.ContainsFunc(declared, func(d declaration) bool {
		return d.IsWhole || flow.IsKept(found.Path, found.Kind, d.Fields)
	})
}

func message(found read, declared []declaration) string {
	keeps := fmt.Sprintf("which kubeapi.Options.Fields at %s does not keep", declared[0].Place)
	switch {
	case found.How == "":
		return fmt.Sprintf("reads %s of %s, %s", found.Path, found.Type, keeps)
	case found.Path == "":
		return fmt.Sprintf("a whole %s is %s, %s", found.Type, found.How, keeps)
	}
	return fmt.Sprintf("%s of %s is %s, %s", found.Path, found.Type, found.How, keeps)
}
