// Package load loads a program from source and builds its SSA form.
//
// Bodies of functions are read only of packages that are analyzed, so that a program with a
// thousand dependencies loads in seconds and none of them is compiled.
package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
)

// Options say what to load.
type Options struct {
	Dir      string
	Patterns []string
	// Dependencies includes the packages of all other modules, Follow those whose import paths begin
	// with one of its elements. The standard library is never included.
	Dependencies bool
	Follow       []string
	// Type is the object's type: import path, dot, name.
	Type string
}

// Program is a loaded program.
type Program struct {
	SSA    *ssa.Program
	Fset   *token.FileSet
	Object *types.TypeName
	// Analyzed are the packages whose bodies are known.
	Analyzed map[string]bool
	// Libraries are those among them that only help to follow calls.
	Libraries map[string]bool
	// Packages is the number of the program's own packages.
	Packages int
}

// Load loads a program. A package that does not compile is an error.
func Load(options Options) (*Program, error) {
	typePackage, _, err := splitType(options.Type)
	if err != nil {
		return nil, err
	}
	listed, err := list(options)
	if err != nil {
		return nil, err
	}
	p := &Program{Fset: token.NewFileSet(), Analyzed: map[string]bool{}, Libraries: map[string]bool{}}
	if err := checkFollow(listed, options.Follow); err != nil {
		return nil, err
	}
	withBodies := p.choose(listed, options, typePackage)
	roots, err := p.parse(options, withBodies)
	if err != nil {
		return nil, err
	}
	if err := p.findObject(roots, options.Type); err != nil {
		return nil, err
	}
	p.build(roots)
	return p, nil
}

func splitType(name string) (pkg, typeName string, err error) {
	dot := strings.LastIndex(name, ".")
	if dot <= 0 || dot < strings.LastIndex(name, "/") || dot == len(name)-1 {
		return "", "", fmt.Errorf("type %q: want an import path, a dot and a name, "+
			"as k8s.io/api/core/v1.Pod", name)
	}
	return name[:dot], name[dot+1:], nil
}

// list finds the packages and their files.
func list(options Options) ([]*packages.Package, error) {
	config := &packages.Config{
		Dir: options.Dir,
		Mode: packages.NeedName | packages.NeedModule | packages.NeedFiles |
			packages.NeedImports | packages.NeedDeps,
	}
	roots, err := packages.Load(config, options.Patterns...)
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	if err := firstError(roots, func(*packages.Package) bool { return true }); err != nil {
		return nil, err
	}
	hasFiles := false
	for _, root := range roots {
		hasFiles = hasFiles || len(root.GoFiles) > 0
	}
	if !hasFiles {
		return nil, fmt.Errorf("no packages with Go files match %s", strings.Join(options.Patterns, " "))
	}
	return roots, nil
}

// maxErrors bounds the errors of packages that are reported.
const maxErrors = 10

// firstError returns the errors of packages, or nil.
func firstError(roots []*packages.Package, isChecked func(*packages.Package) bool) error {
	var found []error
	packages.Visit(roots, nil, func(p *packages.Package) {
		if !isChecked(p) {
			return
		}
		for _, err := range p.Errors {
			if len(found) < maxErrors {
				found = append(found, fmt.Errorf("package %s: %w", p.PkgPath, err))
			}
		}
	})
	return errors.Join(found...)
}

// checkFollow fails for a path to follow below which the program uses no package, since objects would
// escape there as if the path was not named.
func checkFollow(roots []*packages.Package, follow []string) error {
	unused := slices.Clone(follow)
	packages.Visit(roots, nil, func(listed *packages.Package) {
		if listed.Module == nil {
			return // of the standard library
		}
		unused = slices.DeleteFunc(unused, func(path string) bool {
			return isBelow(listed.PkgPath, path)
		})
	})
	if len(unused) > 0 {
		return fmt.Errorf("-follow %s: the program uses no package of another module below it", unused[0])
	}
	return nil
}

// isBelow reports whether a package has a path, or one below it.
func isBelow(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}

// choose decides which packages are analyzed, and returns the files whose bodies are needed.
func (p *Program) choose(
	roots []*packages.Package,
	options Options,
	typePackage string,
) map[string]bool {
	withBodies := map[string]bool{}
	packages.Visit(roots, nil, func(listed *packages.Package) {
		isOwn := listed.Module != nil && listed.Module.Main
		isAPI := listed.PkgPath == typePackage || strings.HasPrefix(listed.PkgPath, "k8s.io/api/")
		isFollowed := listed.Module != nil && options.follows(listed.PkgPath)
		if !isOwn && !isAPI && !isFollowed {
			return
		}
		p.Analyzed[listed.PkgPath] = true
		if isOwn {
			p.Packages++
		}
		if !isOwn {
			p.Libraries[listed.PkgPath] = true
		}
		for _, file := range listed.GoFiles {
			withBodies[file] = !p.Libraries[listed.PkgPath] || !isGenerated(file)
		}
	})
	return withBodies
}

func (o Options) follows(pkg string) bool {
	return o.Dependencies || slices.ContainsFunc(o.Follow, func(path string) bool {
		return isBelow(pkg, path)
	})
}

// isGenerated reports whether a file of an API package has only methods whose meaning is known:
// copying, encoding, documentation.
func isGenerated(file string) bool {
	base := filepath.Base(file)
	return strings.HasPrefix(base, "zz_generated") || strings.HasPrefix(base, "generated") ||
		base == "types_swagger_doc_generated.go"
}

// parse type-checks all packages, without the bodies that are not needed.
func (p *Program) parse(options Options, withBodies map[string]bool) ([]*packages.Package, error) {
	config := &packages.Config{
		Dir:  options.Dir,
		Fset: p.Fset,
		Mode: packages.LoadAllSyntax | packages.NeedModule,
		ParseFile: func(fset *token.FileSet, filename string, src []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, filename, src, parser.SkipObjectResolution)
			if file != nil && !withBodies[filename] {
				removeBodies(file)
			}
			return file, err
		},
	}
	roots, err := packages.Load(config, options.Patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	isOwn := func(loaded *packages.Package) bool {
		return p.Analyzed[loaded.PkgPath] && !p.Libraries[loaded.PkgPath]
	}
	return roots, firstError(roots, isOwn)
}

func removeBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
}

// findObject finds the object's type among the program's packages.
func (p *Program) findObject(roots []*packages.Package, name string) error {
	pkg, typeName, err := splitType(name)
	if err != nil {
		return err
	}
	var found *types.Package
	packages.Visit(roots, nil, func(loaded *packages.Package) {
		if loaded.PkgPath == pkg {
			found = loaded.Types
		}
	})
	if found == nil {
		return fmt.Errorf("type %s: the program does not import %s", name, pkg)
	}
	object, ok := found.Scope().Lookup(typeName).(*types.TypeName)
	if !ok {
		return fmt.Errorf("type %s: package %s has no type %s", name, pkg, typeName)
	}
	if _, isStruct := object.Type().Underlying().(*types.Struct); !isStruct {
		return fmt.Errorf("type %s: it is no struct", name)
	}
	p.Object = object
	return nil
}

func (p *Program) build(roots []*packages.Package) {
	p.SSA = ssa.NewProgram(p.Fset, ssa.InstantiateGenerics)
	var analyzed []*ssa.Package
	packages.Visit(roots, nil, func(loaded *packages.Package) {
		if loaded.Types == nil {
			return
		}
		if !p.Analyzed[loaded.PkgPath] {
			p.SSA.CreatePackage(loaded.Types, nil, nil, true)
			return
		}
		created := p.SSA.CreatePackage(loaded.Types, loaded.Syntax, loaded.TypesInfo, true)
		analyzed = append(analyzed, created)
	})
	for _, created := range analyzed {
		created.Build()
	}
}
