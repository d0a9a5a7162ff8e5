package check

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
)

// optionsPackage has the type Options.
const optionsPackage = "github.com/watchmirror/cache/kubeapi"

// unstructuredType is the type of objects if options name none.
const unstructuredType = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured"

// declarations finds the literals of kubeapi.Options whose type of objects is known.
func (c *checker) declarations() []declaration {
	var found []declaration
	for _, file := range c.pass.Files {
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CompositeLit:
				if len(n.Elts) > 0 && isOptions(c.pass.TypesInfo.TypeOf(n)) {
					found = c.addDeclaration(found, n)
				}
			case *ast.AssignStmt:
				c.checkAssignment(n)
			}
			return true
		})
	}
	return found
}

func isOptions(t types.Type) bool {
	if pointer, isPointer := t.(*types.Pointer); isPointer {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Options" && named.Obj().Pkg() != nil &&
		named.Obj().Pkg().Path() == optionsPackage
}

// checkAssignment reports fields that are set outside of a literal, which are not known here.
func (c *checker) checkAssignment(statement *ast.AssignStmt) {
	for _, target := range statement.Lhs {
		selector, ok := target.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Fields" || !isOptions(c.pass.TypesInfo.TypeOf(selector.X)) {
			continue
		}
		c.reportUnknown(selector, "they are set outside of the literal of kubeapi.Options")
	}
}

// reportUnknown reports fields because of which reads are not checked. Tests run with the real
// fields, so that they need no such report.
func (c *checker) reportUnknown(at ast.Node, why string) {
	file := c.pass.Fset.Position(at.Pos()).Filename
	if c.settings.withoutUnknown || strings.HasSuffix(file, "_test.go") {
		return
	}
	c.pass.Reportf(at.Pos(), "reads are not checked against these Fields: %s", why)
}

// addDeclaration adds what a literal declares, unless its type of objects is not known.
func (c *checker) addDeclaration(to []declaration, literal *ast.CompositeLit) []declaration {
	values, ok := valuesByField(literal)
	if !ok {
		return to
	}
	objectType, isKnown := c.objectType(values["ObjectType"])
	fields, isConstant := c.constantFields(values["Fields"])
	switch {
	case !isConstant:
		c.reportUnknown(values["Fields"], "they are no constants")
	case !isKnown && len(fields) > 0:
		c.reportUnknown(values["Fields"], "the ObjectType is of no fixed type")
	}
	if !isKnown {
		return to
	}
	position := c.pass.Fset.Position(literal.Pos())
	declared := declaration{
		Type:    objectType.name,
		IsWhole: len(fields) == 0,
		Place:   placeText(position.Filename, position.Line),
		pos:     literal.Pos(),
	}
	for _, field := range fields {
		declared.Fields = append(declared.Fields, field.path)
		if err := flow.CheckPath(objectType.object, field.path); err != nil {
			c.pass.Reportf(field.pos, "kubeapi.Options.Fields names %q: %v", field.path, err)
		}
	}
	return append(to, declared)
}

// valuesByField returns the values of a literal, or false if it does not name its fields.
func valuesByField(literal *ast.CompositeLit) (values map[string]ast.Expr, ok bool) {
	values = map[string]ast.Expr{}
	for _, element := range literal.Elts {
		pair, isPair := element.(*ast.KeyValueExpr)
		if !isPair {
			return nil, false
		}
		key, isName := pair.Key.(*ast.Ident)
		if !isName {
			return nil, false
		}
		values[key.Name] = pair.Value
	}
	return values, true
}

// namedType is the type of objects.
type namedType struct {
	name string
	// object is nil for unstructured objects.
	object *types.TypeName
}

// objectType returns the element type of a pointer, or that of unstructured objects for none.
func (c *checker) objectType(value ast.Expr) (objectType namedType, isKnown bool) {
	if value == nil || c.isNil(value) {
		return namedType{name: unstructuredType}, true
	}
	pointer, isPointer := c.pass.TypesInfo.TypeOf(value).Underlying().(*types.Pointer)
	if !isPointer {
		return namedType{}, false // an interface value
	}
	named, isNamed := types.Unalias(pointer.Elem()).(*types.Named)
	if !isNamed || named.Obj().Pkg() == nil {
		return namedType{}, false
	}
	name := named.Obj().Pkg().Path() + "." + named.Obj().Name()
	if name == unstructuredType {
		return namedType{name: name}, true
	}
	return namedType{name: name, object: named.Obj()}, true
}

func (c *checker) isNil(value ast.Expr) bool { return c.pass.TypesInfo.Types[value].IsNil() }

// constantField is one of the fields of a literal.
type constantField struct {
	path string
	pos  token.Pos
}

// constantFields returns the elements of a literal of constants, or of a variable of the package
// that is set to one. There are none without a value.
func (c *checker) constantFields(value ast.Expr) (fields []constantField, isConstant bool) {
	if value == nil || c.isNil(value) {
		return nil, true
	}
	if name, ok := ast.Unparen(value).(*ast.Ident); ok {
		value = c.initialValue(name)
	}
	literal, ok := value.(*ast.CompositeLit)
	if !ok {
		return nil, false
	}
	for _, element := range literal.Elts {
		field := c.pass.TypesInfo.Types[element].Value
		if field == nil || field.Kind() != constant.String {
			return nil, false
		}
		fields = append(fields, constantField{constant.StringVal(field), element.Pos()})
	}
	return fields, true
}

// initialValue returns what a variable is declared with, or nil.
func (c *checker) initialValue(name *ast.Ident) ast.Expr {
	variable := c.pass.TypesInfo.Uses[name]
	for _, initializer := range c.pass.TypesInfo.InitOrder {
		for _, declared := range initializer.Lhs {
			if declared == variable && len(initializer.Lhs) == 1 {
				return initializer.Rhs
			}
		}
	}
	return nil
}
