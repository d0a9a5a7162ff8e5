package check

import (
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// optionsPackage has the type Options.
const optionsPackage = "github.com/watchmirror/cache/kubeapi"

// unstructuredType is the type of objects if options name none.
const unstructuredType = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured"

// declarations finds the literals of kubeapi.Options whose type of objects is known.
func declarations(pass *analysis.Pass) []declaration {
	var found []declaration
	for _, file := range pass.Files {
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.CompositeLit)
			if ok && len(literal.Elts) > 0 && isOptions(pass.TypesInfo.TypeOf(literal)) {
				if declared, known := declarationOf(pass, literal); known {
					found = append(found, declared)
				}
			}
			return true
		})
	}
	return found
}

func isOptions(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Options" && named.Obj().Pkg() != nil &&
		named.Obj().Pkg().Path() == optionsPackage
}

// declarationOf reads a literal. known is false if the type of objects is not.
func declarationOf(pass *analysis.Pass, literal *ast.CompositeLit) (d declaration, known bool) {
	position := pass.Fset.Position(literal.Pos())
	d = declaration{
		Type:    unstructuredType,
		IsWhole: true,
		Place:   placeText(position.Filename, position.Line),
		pos:     literal.Pos(),
	}
	known = true
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return d, false
		}
		key, ok := pair.Key.(*ast.Ident)
		if !ok {
			return d, false
		}
		switch key.Name {
		case "ObjectType":
			d.Type, known = objectType(pass.TypesInfo.TypeOf(pair.Value))
		case "Fields":
			d.Fields, d.IsWhole = constantFields(pass, pair.Value)
		}
	}
	return d, known
}

// objectType returns the name of a pointer's element type.
func objectType(t types.Type) (name string, ok bool) {
	pointer, isPointer := t.Underlying().(*types.Pointer)
	if !isPointer {
		return "", false // an interface value
	}
	named, isNamed := types.Unalias(pointer.Elem()).(*types.Named)
	if !isNamed || named.Obj().Pkg() == nil {
		return "", false
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name(), true
}

// constantFields returns the elements of a literal of constants, or of a variable of the package
// that is set to one.
func constantFields(pass *analysis.Pass, value ast.Expr) (fields []string, isWhole bool) {
	if name, ok := ast.Unparen(value).(*ast.Ident); ok {
		value = initialValue(pass, name)
	}
	literal, ok := value.(*ast.CompositeLit)
	if !ok {
		return nil, true
	}
	for _, element := range literal.Elts {
		field := pass.TypesInfo.Types[element].Value
		if field == nil || field.Kind() != constant.String {
			return nil, true
		}
		fields = append(fields, constant.StringVal(field))
	}
	return fields, len(fields) == 0
}

// initialValue returns what a variable is declared with, or nil.
func initialValue(pass *analysis.Pass, name *ast.Ident) ast.Expr {
	variable := pass.TypesInfo.Uses[name]
	for _, initializer := range pass.TypesInfo.InitOrder {
		for _, declared := range initializer.Lhs {
			if declared == variable && len(initializer.Lhs) == 1 {
				return initializer.Rhs
			}
		}
	}
	return nil
}
