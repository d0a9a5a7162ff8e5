package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"path"
	"path/filepath"
	"reflect"
	"strings"
)

var (
	errNoChange = errors.New("the mutant is the original")
	errUnparsed = errors.New("the mutant is no Go")
)

// located is a mutant with its change of the source, or with the reason why it does not apply.
type located struct {
	Mutant
	change change
	err    error
}

// change is a replacement in a file, which on disk is never changed.
type change struct {
	place
	replacement string
}

// locate finds the places of all mutants in the module at root.
func locate(root string, all []Mutant) []located {
	packages := map[string]sourcePackage{}
	result := make([]located, 0, len(all))
	for _, m := range all {
		pkg, known := packages[m.Dir]
		if !known {
			var err error
			pkg, err = readPackage(filepath.Join(root, filepath.FromSlash(m.Dir)))
			if err != nil {
				result = append(result, located{Mutant: m, err: m.outdated(err)})
				continue
			}
			packages[m.Dir] = pkg
		}
		changed, err := pkg.mutate(m)
		if err != nil {
			err = m.outdated(err)
		}
		result = append(result, located{Mutant: m, change: changed, err: err})
	}
	return result
}

func (m Mutant) outdated(err error) error {
	return fmt.Errorf("mutant %s %w: %w", m.Name, ErrOutdated, err)
}

// mutate returns the mutant's change of the package.
func (p sourcePackage) mutate(m Mutant) (change, error) {
	found, err := p.find(m)
	if err != nil {
		return change{}, err
	}
	changed := change{place: found, replacement: strings.TrimSpace(m.To)}
	if _, isBinary := parseElement(m.To).(*ast.BinaryExpr); isBinary {
		// It stays one operand of the expression around it.
		changed.replacement = "(" + changed.replacement + ")"
	}
	after, err := parseSource(changed.text())
	if err != nil {
		return change{}, fmt.Errorf("%w: %w", errUnparsed, err)
	}
	if sameSyntax(reflect.ValueOf(found.file.parsed), reflect.ValueOf(after)) {
		return change{}, errNoChange
	}
	return changed, nil
}

// text returns the changed file.
func (c change) text() []byte {
	return applyEdits(c.file.text, 0, []edit{{c.from, c.to, c.replacement}})
}

// path returns the changed file, relative to the module's root.
func (l located) path() string {
	return path.Join(l.Dir, filepath.Base(l.change.file.path))
}

// line returns the first changed line.
func (c change) line() int {
	return 1 + bytes.Count(c.file.text[:c.from], []byte("\n"))
}
