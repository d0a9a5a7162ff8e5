package flow

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// store writes a value to a variable, an element or a field.
func (f *functionFlow) store(i *ssa.Store) {
	from := f.of(i.Val)
	if len(from) == 0 || !f.isTracked(i.Val.Type()) {
		return
	}
	if f.objectOf(i.Val.Type()) != nil && !f.summary.inline {
		return // each value of the type is an object, wherever it is loaded from
	}
	if variable, ok := localVariable(i.Addr); ok {
		f.add(variable, from)
		return
	}
	to := f.of(i.Addr)
	for o := range from {
		if _, same := to[o]; same {
			continue
		}
		f.keepOrigin(o, i.Val.Type(), i.Pos(), "stored in another object")
	}
}

// localVariable returns the variable that an address belongs to, or an element of which it is.
func localVariable(address ssa.Value) (ssa.Value, bool) {
	for {
		switch a := address.(type) {
		case *ssa.Alloc:
			return a, true
		case *ssa.MakeSlice:
			return a, true
		case *ssa.FreeVar:
			return nil, false
		case *ssa.IndexAddr:
			address = a.X
		case *ssa.Slice:
			address = a.X
		default:
			return nil, false
		}
	}
}

// keep records that a part of an object is stored where it is not followed, which keeps all of it.
func (f *functionFlow) keep(value ssa.Value, pos token.Pos, how string) {
	if f.objectOf(value.Type()) != nil && !f.summary.inline {
		return
	}
	for o := range f.of(value) {
		f.keepOrigin(o, value.Type(), pos, how)
	}
}

func (f *functionFlow) keepOrigin(o origin, t types.Type, pos token.Pos, how string) {
	isFollowed := !f.summary.inline && (f.guessable(t) || f.objectOf(t) != nil)
	if o.path == "" && isFollowed {
		if o.root != nil {
			return // what is loaded from there is an object again
		}
		o.notObject = true
	}
	f.use(originsOf(o), Escaped, pos, how)
}

// guessable reports whether a value of a type counts as a possible object when its origin is
// unknown.
func (f *functionFlow) guessable(t types.Type) bool {
	return f.Anything == nil || f.mayHoldAnything(t)
}

// use records a use of each origin.
func (f *functionFlow) use(of origins, kind Kind, pos token.Pos, how string) {
	if len(of) == 0 {
		return
	}
	site := f.site(pos)
	for o := range of {
		f.record(use{of: o, kind: kind, site: site, how: how})
	}
}

// record adds a use to the result, or to the summary if it is one of a parameter. What a library
// does with objects of its own is not reported.
func (f *functionFlow) record(u use) {
	switch {
	case u.of.root == nil:
		if len(f.summary.uses) >= maxUses {
			u.of.path = shortened(u.of.path)
		}
		f.summary.uses[u] = struct{}{}
	case !f.summary.inline:
		f.found[u] = struct{}{}
	}
}

// site returns the place of an instruction. Some have none, such as the length that a loop asks for:
// it is that of the nearest operand, or of the function.
func (f *functionFlow) site(pos token.Pos) Site {
	if !pos.IsValid() && f.current != nil {
		pos = operandPos(f.current, maxOperandDepth)
	}
	if !pos.IsValid() {
		pos = f.function.Pos()
	}
	position := f.Fset.Position(pos)
	return Site{Pos: pos, File: position.Filename, Line: position.Line}
}

// maxOperandDepth is how far operands are searched for a position.
const maxOperandDepth = 4

func operandPos(instruction ssa.Instruction, depth int) token.Pos {
	for _, operand := range instruction.Operands(nil) {
		if *operand == nil {
			continue
		}
		if pos := (*operand).Pos(); pos.IsValid() {
			return pos
		}
		inner, ok := (*operand).(ssa.Instruction)
		if !ok || depth == 0 {
			continue
		}
		if pos := operandPos(inner, depth-1); pos.IsValid() {
			return pos
		}
	}
	return token.NoPos
}

// compare records what a comparison reads.
func (f *functionFlow) compare(i *ssa.BinOp) {
	if i.Op != token.EQL && i.Op != token.NEQ {
		return
	}
	for _, operand := range []ssa.Value{i.X, i.Y} {
		switch operand.Type().Underlying().(type) {
		case *types.Struct, *types.Array:
			f.use(f.of(operand), Read, i.Pos(), "")
		default:
			f.use(f.of(operand), Presence, i.Pos(), "")
		}
	}
}
