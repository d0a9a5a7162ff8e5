package flow

import (
	"go/constant"
	"go/token"
	"go/types"
	"maps"

	"golang.org/x/tools/go/ssa"
)

// functionFlow computes the origins of a function's values.
type functionFlow struct {
	*analysis
	function *ssa.Function
	summary  *summary
	// values has the origins of values; a variable's are those of what is stored in it.
	values map[ssa.Value]origins
	// tuples has the origins of calls with several results.
	tuples map[ssa.Value][]origins
	// current is the visited instruction.
	current ssa.Instruction
	changed bool
}

func newFunctionFlow(a *analysis, function *ssa.Function) *functionFlow {
	return &functionFlow{
		analysis: a,
		function: function,
		summary:  a.summaries[function],
		values:   map[ssa.Value]origins{},
		tuples:   map[ssa.Value][]origins{},
	}
}

// run visits all instructions until no origins change.
func (f *functionFlow) run() {
	for f.changed = true; f.changed; {
		f.changed = false
		for _, block := range f.function.Blocks {
			for _, instruction := range block.Instrs {
				f.visit(instruction)
			}
		}
	}
}

// add adds origins to those of a value.
func (f *functionFlow) add(value ssa.Value, from origins) {
	before := len(f.values[value])
	joined := f.values[value].union(from).limited()
	if len(joined) != before {
		f.values[value] = joined
		f.changed = true
	}
}

// of returns the origins of a value.
func (f *functionFlow) of(value ssa.Value) origins {
	if _, isConst := value.(*ssa.Const); isConst {
		return nil
	}
	object := f.objectOf(value.Type())
	index, isParam := f.paramIndex(value)
	if object != nil && !(isParam && f.summary.inline) {
		return originsOf(origin{root: object})
	}
	if isParam {
		return f.ofParam(value, index)
	}
	known := f.possible(value.Type(), f.values[value])
	isGuessed := len(known) == 0 && f.guess && f.isOfUnknownOrigin(value)
	if isGuessed && f.mayHoldAnything(value.Type()) {
		return originsOf(origin{root: f.Anything})
	}
	return known
}

// possible leaves out whole objects that a value of an interface type cannot be.
func (f *functionFlow) possible(t types.Type, from origins) origins {
	if f.Anything == nil || len(from) == 0 || !types.IsInterface(t) {
		return from
	}
	whole := origin{root: f.Anything}
	_, hasWhole := from[whole]
	if !hasWhole || f.canHold(t) {
		return from
	}
	without := maps.Clone(from)
	delete(without, whole)
	return without
}

func (f *functionFlow) ofParam(value ssa.Value, index int) origins {
	if !f.isTracked(value.Type()) {
		return nil
	}
	known := originsOf(origin{param: index})
	_, isParameter := value.(*ssa.Parameter)
	isGuessed := f.guess && isParameter && f.dynamic.isCallback(f.function)
	if isGuessed && f.mayHoldAnything(value.Type()) {
		known[origin{root: f.Anything}] = struct{}{}
	}
	return known
}

// paramIndex returns the index of a parameter or free variable.
func (f *functionFlow) paramIndex(value ssa.Value) (index int, ok bool) {
	switch v := value.(type) {
	case *ssa.Parameter:
		for i, param := range f.function.Params {
			if param == v {
				return i, true
			}
		}
	case *ssa.FreeVar:
		for i, variable := range f.function.FreeVars {
			if variable == v {
				return len(f.function.Params) + i, true
			}
		}
	}
	return 0, false
}

// isOfUnknownOrigin reports whether a value comes from a place that is not followed.
func (f *functionFlow) isOfUnknownOrigin(value ssa.Value) bool {
	switch v := value.(type) {
	case *ssa.UnOp, *ssa.Lookup, *ssa.Field, *ssa.Index, *ssa.TypeAssert:
		return true
	case *ssa.Extract:
		call, isCall := v.Tuple.(*ssa.Call)
		return !isCall || f.isUnknownCall(call)
	case *ssa.Call:
		return f.isUnknownCall(v)
	}
	return false
}

func (f *functionFlow) isUnknownCall(call *ssa.Call) bool {
	callee := call.Call.StaticCallee()
	if callee == nil {
		_, isBuiltin := call.Call.Value.(*ssa.Builtin)
		return !isBuiltin
	}
	return f.summaries[callee] == nil && !neverReturnsObjects(callee)
}

// visit adds what one instruction does.
func (f *functionFlow) visit(instruction ssa.Instruction) {
	f.current = instruction
	if operand := sameOrigins(instruction); operand != nil {
		f.add(instruction.(ssa.Value), f.of(operand))
		return
	}
	switch i := instruction.(type) {
	case *ssa.FieldAddr:
		f.field(i, i.X, i.Field)
	case *ssa.Field:
		f.field(i, i.X, i.Field)
	case *ssa.Index:
		f.derive(i, f.of(i.X))
	case *ssa.UnOp:
		f.load(i)
	case *ssa.Lookup:
		f.lookup(i)
	case *ssa.Range:
		f.use(f.of(i.X), Read, i.Pos(), "")
	case *ssa.Phi:
		for _, edge := range i.Edges {
			f.add(i, f.of(edge))
		}
	case *ssa.Extract:
		f.extract(i)
	case *ssa.BinOp:
		f.compare(i)
	case *ssa.TypeAssert:
		f.assert(i)
	case *ssa.MakeClosure:
		f.closure(i)
	case ssa.CallInstruction:
		f.call(i)
	default:
		f.visitEffect(instruction)
	}
}

// sameOrigins returns the operand of which an instruction's value is another form or an element, or
// nil for other instructions.
func sameOrigins(instruction ssa.Instruction) (operand ssa.Value) {
	switch i := instruction.(type) {
	case *ssa.IndexAddr:
		return i.X
	case *ssa.Slice:
		return i.X
	case *ssa.MakeInterface:
		return i.X
	case *ssa.ChangeInterface:
		return i.X
	case *ssa.ChangeType:
		return i.X
	case *ssa.Convert:
		return i.X
	case *ssa.MultiConvert:
		return i.X
	case *ssa.SliceToArrayPointer:
		return i.X
	}
	return nil
}

// visitEffect adds what an instruction does that stores or passes on a value.
func (f *functionFlow) visitEffect(instruction ssa.Instruction) {
	switch i := instruction.(type) {
	case *ssa.Store:
		f.store(i)
	case *ssa.Return:
		f.returns(i)
	case *ssa.MapUpdate:
		f.keep(i.Value, i.Pos(), "stored in a map")
	case *ssa.Send:
		f.keep(i.X, i.Pos(), "sent on a channel")
	case *ssa.Select:
		for _, state := range i.States {
			if state.Send != nil {
				f.keep(state.Send, state.Pos, "sent on a channel")
			}
		}
	case *ssa.Panic:
		f.escape(i.X, i, "passed to panic")
	}
}

// field derives a field of a struct, or its address.
func (f *functionFlow) field(result ssa.Value, of ssa.Value, index int) {
	from := f.of(of)
	if len(from) == 0 {
		return
	}
	t := f.shapes.element(of.Type())
	structType, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	if !isUnstructured(t) && !f.shapes.isLeaf(t) {
		name, decoded := f.shapes.fieldName(structType, index)
		if !decoded {
			return
		}
		from = from.below(name)
	}
	if _, isAddress := result.(*ssa.FieldAddr); isAddress {
		f.add(result, from) // an address may also be written to
		return
	}
	f.derive(result, from)
}

// load reads a variable.
func (f *functionFlow) load(i *ssa.UnOp) {
	if i.Op == token.MUL {
		f.derive(i, f.of(i.X))
	}
}

// derive gives a value its origins. A value below which nothing can be selected is read instead, and
// not followed.
func (f *functionFlow) derive(value ssa.Value, from origins) {
	if f.objectOf(value.Type()) == nil && f.shapes.isScalar(value.Type()) {
		f.use(from, Read, value.Pos(), "")
		return
	}
	f.add(value, from)
}

// lookup reads the value of a map's key.
func (f *functionFlow) lookup(i *ssa.Lookup) {
	from := f.of(i.X)
	if len(from) == 0 {
		return
	}
	name, ok := constantKey(i.Index)
	if !ok {
		f.use(from, Read, i.Pos(), "")
		return
	}
	element := i.X.Type().Underlying()
	if m, isMap := element.(*types.Map); isMap && f.shapes.isScalar(m.Elem()) {
		f.use(from.below(name), Read, i.Pos(), "")
		return
	}
	f.add(i, from.below(name))
	f.use(from.below(name), Presence, i.Pos(), "")
}

// constantKey returns a constant map key as a part of a path.
func constantKey(value ssa.Value) (name string, ok bool) {
	text, ok := constantText(value)
	if !ok {
		return "", false
	}
	return keyName(text)
}

func constantText(value ssa.Value) (text string, ok bool) {
	c, ok := value.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(c.Value), true
}

func (f *functionFlow) extract(i *ssa.Extract) {
	if results := f.tuples[i.Tuple]; i.Index < len(results) {
		f.add(i, results[i.Index])
		return
	}
	switch tuple := i.Tuple.(type) {
	case *ssa.TypeAssert:
		if i.Index == 0 {
			f.add(i, f.values[tuple])
		}
	case *ssa.Lookup:
		if i.Index == 0 {
			f.add(i, f.of(tuple))
		}
	case *ssa.Next:
		if iterator, ok := tuple.Iter.(*ssa.Range); ok && i.Index == 2 && f.isTracked(i.Type()) {
			f.add(i, f.of(iterator.X))
		}
	}
}

// assert narrows an interface value. Asserting a basic type of an unstructured object's value reads
// it.
func (f *functionFlow) assert(i *ssa.TypeAssert) {
	from := f.of(i.X)
	if len(from) == 0 {
		return
	}
	if f.mayBeObject(i.AssertedType) {
		f.add(i, from)
		return
	}
	from = notObjects(from)
	if _, isBasic := i.AssertedType.Underlying().(*types.Basic); isBasic {
		f.use(from, Read, i.Pos(), "")
		return
	}
	if f.isTracked(i.AssertedType) {
		f.add(i, from)
	}
}

// mayBeObject reports whether a value of a type can be a whole object.
func (f *functionFlow) mayBeObject(t types.Type) bool {
	if !types.IsInterface(t) {
		return f.objectOf(t) != nil
	}
	return f.Anything == nil || f.canHold(t)
}

// notObjects returns the origins of a value that is of a type which is no object's.
func notObjects(from origins) origins {
	set := origins{}
	for o := range from {
		asserted := origin{notObject: true}
		if narrowed, ok := asserted.with(o); ok {
			set[narrowed] = struct{}{}
		}
	}
	return set
}

// closure applies what a function literal does with the variables that it captures. It is assumed to
// run.
func (f *functionFlow) closure(i *ssa.MakeClosure) {
	function := i.Fn.(*ssa.Function)
	args := make([]origins, len(function.Params), len(function.Params)+len(i.Bindings))
	for _, binding := range i.Bindings {
		args = append(args, f.of(binding))
	}
	f.apply(f.summaries[function], args, i.Pos())
}

func (f *functionFlow) returns(i *ssa.Return) {
	for index, result := range i.Results {
		if !f.isTracked(result.Type()) {
			continue
		}
		f.summary.results[index] = f.summary.results[index].union(f.of(result))
	}
	if !f.dynamic.callbacks[f.function] {
		return
	}
	for _, result := range i.Results {
		f.keep(result, i.Pos(), "returned to an unknown caller")
	}
}
