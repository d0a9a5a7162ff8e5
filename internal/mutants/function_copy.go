package mutants

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// edit replaces bytes of a file.
type edit struct {
	from, to int
	text     string
}

// applyEdits applies edits to a text that begins at an offset of its file.
func applyEdits(text []byte, begin int, edits []edit) []byte {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	done := 0
	for _, e := range sorted {
		out.Write(text[done : e.from-begin])
		out.WriteString(e.text)
		done = e.to - begin
	}
	out.Write(text[done:])
	return out.Bytes()
}

// copyOf has the lines of the copy of a mutant's function in a written file.
type copyOf struct {
	mutant int
	file   string
	first  int
	last   int
}

// copyWriter writes a file with a copy of a function for each mutant that changes a function body.
type copyWriter struct {
	file *sourceFile
	// name is the name of the written file.
	name string
	// edits change the original functions.
	edits  []edit
	copies bytes.Buffer
	made   []copyOf
}

// text returns the file with the copies.
func (w *copyWriter) text() []byte {
	return append(applyEdits(w.file.text, 0, w.edits), w.copies.Bytes()...)
}

// add adds a copy of the function that a mutant changes. It does nothing if the mutant cannot be
// a copy.
func (w *copyWriter) add(number int, changed change) {
	f := w.functionWith(changed.place)
	if f == nil {
		return
	}
	call := &copyCall{
		file:     w.file,
		function: f,
		name:     f.Name.Name + "Mutant" + strconv.Itoa(number+1),
	}
	if !call.build() {
		return
	}
	begin := w.file.offset(f.Pos())
	end := w.file.offset(f.End())
	edits := append(slices.Clone(call.renames),
		edit{changed.from, changed.to, changed.replacement},
		edit{w.file.offset(f.Name.Pos()), w.file.offset(f.Name.End()), call.name})
	mutated := applyEdits(w.file.text[begin:end], begin, edits)

	// Text inserted into the original has no line breaks.
	first := 1 + bytes.Count(
		w.file.text, []byte("\n")) + bytes.Count(
		w.copies.Bytes(), []byte("\n"))
	last := first + 1 + bytes.Count(mutated, []byte("\n"))
	fmt.Fprintf(&w.copies, "\n%s\n", mutated)
	w.made = append(w.made, copyOf{mutant: number, file: w.name, first: first, last: last})
	for _, rename := range call.renames {
		if !slices.Contains(w.edits, rename) {
			w.edits = append(w.edits, rename)
		}
	}
	bodyBegin := w.file.offset(f.Body.Lbrace) + 1
	w.edits = append(w.edits, edit{bodyBegin, bodyBegin, call.statement(number)})
}

// functionWith returns the function whose body has a place. It returns nil if there is none, or if
// a copy would behave differently because recover and runtime.Callers depend on the depth.
func (w *copyWriter) functionWith(changed place) *ast.FuncDecl {
	for _, d := range w.file.parsed.Decls {
		f, isFunction := d.(*ast.FuncDecl)
		if !isFunction || f.Body == nil {
			continue
		}
		begin := w.file.offset(f.Body.Lbrace)
		end := w.file.offset(f.Body.Rbrace)
		if begin >= changed.from || changed.to > end {
			continue
		}
		if f.Name.Name == "init" || dependsOnDepth(f.Body) {
			return nil
		}
		return f
	}
	return nil
}

// dependsOnDepth says whether a function calls recover or runtime.Callers.
func dependsOnDepth(body *ast.BlockStmt) bool {
	depends := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			depends = depends || callsByDepth(n)
		}
		return true
	})
	return depends
}

func callsByDepth(call *ast.CallExpr) bool {
	switch called := call.Fun.(type) {
	case *ast.Ident:
		return called.Name == "recover"
	case *ast.SelectorExpr:
		return strings.HasPrefix(called.Sel.Name, "Caller")
	}
	return false
}

// copyCall is the call of a function's copy at the beginning of the function.
type copyCall struct {
	file     *sourceFile
	function *ast.FuncDecl
	// name is the name of the copy.
	name string
	// text is the call.
	text string
	// renames name the function's unnamed parameters.
	renames []edit
}

// statement calls the copy if the mutant is in use.
func (c *copyCall) statement(number int) string {
	if c.function.Type.Results == nil {
		return fmt.Sprintf(" if mutantInUse == \"%d\" { %s; return };", number+1, c.text)
	}
	return fmt.Sprintf(" if mutantInUse == \"%d\" { return %s };", number+1, c.text)
}

// build sets text and renames. It returns false if the receiver or a parameter has no name.
func (c *copyCall) build() bool {
	c.text = c.name
	if c.function.Recv != nil {
		names := c.namesOf(c.function.Recv.List[0])
		if len(names) == 0 {
			return false
		}
		c.text = names[0] + "." + c.text
	}
	if c.function.Type.TypeParams != nil {
		var types []string
		for _, field := range c.function.Type.TypeParams.List {
			types = append(types, c.namesOf(field)...)
		}
		c.text += "[" + strings.Join(types, ", ") + "]"
	}
	var arguments []string
	for _, field := range c.function.Type.Params.List {
		names := c.namesOf(field)
		if len(names) == 0 {
			return false
		}
		arguments = append(arguments, names...)
		if _, isVariadic := field.Type.(*ast.Ellipsis); isVariadic {
			arguments[len(arguments)-1] += "..."
		}
	}
	c.text += "(" + strings.Join(arguments, ", ") + ")"
	return true
}

// namesOf returns the names of a field, after renaming blank ones.
func (c *copyCall) namesOf(field *ast.Field) []string {
	var names []string
	for _, n := range field.Names {
		name := n.Name
		if name == "_" {
			begin := c.file.offset(n.Pos())
			name = fmt.Sprintf("unused%d", begin)
			c.renames = append(c.renames, edit{begin, c.file.offset(n.End()), name})
		}
		names = append(names, name)
	}
	return names
}
