package flow

import (
	"cmp"
	"go/types"
	"slices"
)

// FunctionFact is a function's summary for the analysis of other packages.
type FunctionFact struct {
	Uses    []FactUse
	Results [][]FactOrigin
}

// AFact marks it as a fact of go/analysis.
func (*FunctionFact) AFact() {}

// FactUse is a use of a parameter.
type FactUse struct {
	Param int
	Path  string
	// NotObject: only if the argument is a part of an object.
	NotObject bool

	Kind Kind
	How  string
	File string
	Line int
}

// FactOrigin is the origin of a result.
type FactOrigin struct {
	// Package and Type name the object's type; empty for a parameter.
	Package string
	Type    string
	Param   int
	Path    string
}

// IsEmpty reports whether a fact says nothing.
func (f *FunctionFact) IsEmpty() bool {
	if len(f.Uses) > 0 {
		return false
	}
	return !slices.ContainsFunc(f.Results, func(result []FactOrigin) bool {
		return len(result) > 0
	})
}

func (s *summary) fact() *FunctionFact {
	fact := &FunctionFact{}
	for u := range s.uses {
		fact.Uses = append(fact.Uses, FactUse{
			Param:     u.of.param,
			NotObject: u.of.notObject,
			Path:      u.of.path,
			Kind:      u.kind,
			How:       u.how,
			File:      u.site.File,
			Line:      u.site.Line,
		})
	}
	slices.SortFunc(fact.Uses, func(a, b FactUse) int {
		return cmp.Or(
			cmp.Compare(a.Param, b.Param),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.How, b.How),
		)
	})
	for _, result := range s.results {
		fact.Results = append(fact.Results, factOrigins(result))
	}
	return fact
}

func factOrigins(from origins) []FactOrigin {
	var list []FactOrigin
	for o := range from {
		exported := FactOrigin{Param: o.param, Path: o.path}
		if o.root != nil {
			exported.Package = o.root.Pkg().Path()
			exported.Type = o.root.Name()
		}
		list = append(list, exported)
	}
	slices.SortFunc(list, func(a, b FactOrigin) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Param, b.Param), cmp.Compare(a.Path, b.Path))
	})
	return list
}

// factOf returns the summary that a fact describes, or nil.
func (a *analysis) factOf(function *types.Func) *summary {
	if known, ok := a.facts[function]; ok {
		return known
	}
	fact := a.Facts(function)
	if fact == nil {
		a.facts[function] = nil
		return nil
	}
	summary := newSummary(function.Signature())
	summary.inline = true
	for _, u := range fact.Uses {
		summary.uses[use{
			of:   origin{param: u.Param, path: u.Path, notObject: u.NotObject},
			kind: u.Kind,
			how:  u.How,
			site: Site{File: u.File, Line: u.Line},
		}] = struct{}{}
	}
	for n, result := range fact.Results {
		summary.results[n] = a.originsOf(function, result)
	}
	a.facts[function] = summary
	return summary
}

func (a *analysis) originsOf(function *types.Func, result []FactOrigin) origins {
	set := origins{}
	for _, exported := range result {
		o := origin{param: exported.Param, path: exported.Path}
		if exported.Type != "" {
			o.root = lookup(function.Pkg(), exported.Package, exported.Type)
			if o.root == nil {
				continue
			}
			o.param = 0
		}
		set[o] = struct{}{}
	}
	return set
}

// lookup finds a type in the packages that a package imports, or returns nil.
func lookup(from *types.Package, pkg, name string) *types.TypeName {
	for _, imported := range append(from.Imports(), from) {
		if imported.Path() != pkg {
			continue
		}
		found, _ := imported.Scope().Lookup(name).(*types.TypeName)
		return found
	}
	return nil
}
