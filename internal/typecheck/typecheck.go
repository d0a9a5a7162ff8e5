// Package typecheck loads packages of a module with their types, for the project's own checks.
package typecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is what the go command reports of a package.
type Package struct {
	ImportPath string
	Name       string
	Dir        string
	// Export is the file with the package's compiled types.
	Export  string
	DepOnly bool
	GoFiles []string
}

// Packages are packages of one module and all packages that they depend on.
type Packages struct {
	files    *token.FileSet
	byPath   map[string]Package
	importer types.Importer
	// Named are the packages that the patterns matched.
	Named []Package
}

// List compiles the packages that match the patterns in a directory of a module.
func List(ctx context.Context, dir string, patterns ...string) (*Packages, error) {
	args := append([]string{"list", "-export", "-deps",
		"-json=ImportPath,Name,Dir,Export,DepOnly,GoFiles"}, patterns...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, problems.String())
	}

	p := &Packages{files: token.NewFileSet(), byPath: map[string]Package{}}
	p.importer = importer.ForCompiler(p.files, "gc", p.open)
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var next Package
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("output of go list in %s: %w", dir, err)
		}
		p.byPath[next.ImportPath] = next
		if !next.DepOnly {
			p.Named = append(p.Named, next)
		}
	}
}

// open opens the compiled types of a package.
func (p *Packages) open(path string) (io.ReadCloser, error) {
	return os.Open(p.byPath[path].Export)
}

// Exported returns a package with its exported declarations.
func (p *Packages) Exported(path string) (*types.Package, error) {
	return p.importer.Import(path)
}

// Source is the checked source of a package, without tests.
type Source struct {
	Types *types.Package
	// Uses has the object that each identifier denotes.
	Uses map[*ast.Ident]types.Object

	files *token.FileSet
}

// Source parses and checks the source files of a package.
func (p *Packages) Source(pkg Package) (*Source, error) {
	var parsed []*ast.File
	for _, name := range pkg.GoFiles {
		path := filepath.Join(pkg.Dir, name)
		file, err := parser.ParseFile(p.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}

	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: p.importer}
	checked, err := config.Check(pkg.ImportPath, p.files, parsed, info)
	if err != nil {
		return nil, err
	}
	return &Source{Types: checked, Uses: info.Uses, files: p.files}, nil
}

// Position returns the place of a declaration or a use. Its file name has no directory.
func (s *Source) Position(at token.Pos) token.Position {
	position := s.files.Position(at)
	position.Filename = filepath.Base(position.Filename)
	return position
}
