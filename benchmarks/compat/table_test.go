package compat

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tableFile is the list of promised names, with client-go's signatures.
//
//go:embed testdata/api-surface.tsv
var tableFile string

// row is one line of the table.
type row struct {
	// name is without the package: "Config", or "Config.Queue".
	name string
	// kind is const, var, func, type:..., field, embedded, method, imethod or
	// imethod(embedded).
	kind, signature, tier string
}

// owner is the identifier that a row belongs to: itself, or the type.
func (r row) owner() string {
	owner, _, _ := strings.Cut(r.name, ".")
	return owner
}

func readTable(t *testing.T) []row {
	t.Helper()
	var rows []row
	for i, line := range strings.Split(strings.TrimSpace(tableFile), "\n") {
		columns := strings.Split(line, "\t")
		require.Len(t, columns, 6, "line %d", i+1)
		if i == 0 {
			require.Equal(t, []string{"identifier", "kind", "signature", "deprecated", "group", "tier"}, columns)
			continue
		}
		name, ours := strings.CutPrefix(columns[0], "cache.")
		require.True(t, ours, "line %d", i+1)
		rows = append(rows, row{name: name, kind: columns[1], signature: columns[2], tier: columns[5]})
	}
	require.NotEmpty(t, rows)
	return rows
}

// TestTheTableSaysWhatClientGoHas keeps the table honest: a row that client-go
// does not have, or has with another kind or signature, promises something else
// than an import swap.
func TestTheTableSaysWhatClientGoHas(t *testing.T) {
	_, theirs := packages(t)
	var wrong []string
	for _, r := range readTable(t) {
		kind, signature, err := describe(theirs, r.name)
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case kind != r.kind:
			wrong = append(wrong, fmt.Sprintf("%s: kind is %q, the table says %q", r.name, kind, r.kind))
		case signature != tidy(r.signature):
			wrong = append(wrong, fmt.Sprintf("%s: client-go has %s, the table says %s", r.name, signature, r.signature))
		}
	}
	require.Empty(t, wrong, lines(wrong))
}

// describe says what a package has under a name, in the table's words.
func describe(p *types.Package, name string) (kind, signature string, err error) {
	owner, member, isMember := strings.Cut(name, ".")
	object := p.Scope().Lookup(owner)
	if object == nil {
		return "", "", fmt.Errorf("%s: client-go does not have it", owner)
	}
	if isMember {
		return describeMember(object, member)
	}
	switch object := object.(type) {
	case *types.Const:
		return "const", typeText(object.Type()) + " = " + object.Val().ExactString(), nil
	case *types.Var:
		return "var", typeText(object.Type()), nil
	case *types.Func:
		return "func", signatureText(object.Signature()), nil
	}
	return describeType(object.(*types.TypeName))
}

func describeType(object *types.TypeName) (kind, signature string, err error) {
	under := object.Type().Underlying()
	switch under := under.(type) {
	case *types.Interface:
		return "type:interface", fmt.Sprintf("interface (%d methods)", under.NumMethods()) + typeParameters(object), nil
	case *types.Struct:
		return "type:struct", "struct" + typeParameters(object), nil
	case *types.Map:
		kind = "map"
	case *types.Slice:
		kind = "slice"
	case *types.Signature:
		kind = "func"
	default:
		kind = typeText(under)
	}
	if object.IsAlias() {
		kind += "(alias)"
	}
	return "type:" + kind, typeText(under) + typeParameters(object), nil
}

// typeParameters is how the table marks a generic type.
func typeParameters(object *types.TypeName) string {
	named, ok := object.Type().(*types.Named)
	if !ok || named.TypeParams().Len() == 0 {
		return ""
	}
	return fmt.Sprintf(" [%d type parameters]", named.TypeParams().Len())
}

func describeMember(object types.Object, member string) (kind, signature string, err error) {
	under := object.Type().Underlying()
	if structure, ok := under.(*types.Struct); ok {
		for field := range structure.Fields() {
			switch {
			case field.Name() == member && field.Embedded():
				return "embedded", typeText(field.Type()), nil
			case field.Name() == member:
				return "field", typeText(field.Type()), nil
			}
		}
	}
	if contract, ok := under.(*types.Interface); ok {
		for embedded := range contract.EmbeddedTypes() {
			if named, ok := embedded.(*types.Named); ok && named.Obj().Name() == member {
				return "embedded", typeText(embedded), nil
			}
		}
	}
	found := methodSet(object.Type(), !types.IsInterface(object.Type())).Lookup(nil, member)
	if found == nil {
		return "", "", fmt.Errorf("%s.%s: client-go does not have it", object.Name(), member)
	}
	kind = "method"
	if contract, ok := under.(*types.Interface); ok {
		kind = "imethod(embedded)"
		for method := range contract.ExplicitMethods() {
			if method.Name() == member {
				kind = "imethod"
			}
		}
	}
	return kind, signatureText(found.Obj().(*types.Func).Signature()), nil
}

// anyWord finds the short form of the empty interface. The table has both forms;
// they are one type.
var anyWord = regexp.MustCompile(`\bany\b`)

func typeText(t types.Type) string {
	return tidy(types.TypeString(t, qualifier))
}

func signatureText(s *types.Signature) string {
	var b bytes.Buffer
	if s.TypeParams().Len() > 0 {
		b.WriteString("[")
		for i := range s.TypeParams().Len() {
			parameter := s.TypeParams().At(i)
			fmt.Fprintf(&b, "%s %s", parameter.Obj().Name(), types.TypeString(parameter.Constraint(), qualifier))
		}
		b.WriteString("]")
	}
	plain := types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())
	types.WriteSignature(&b, plain, qualifier)
	return tidy(b.String())
}

func tidy(text string) string { return anyWord.ReplaceAllString(text, "interface{}") }
