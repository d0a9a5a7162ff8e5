package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// call adds what a call, go or defer statement does.
func (f *functionFlow) call(i ssa.CallInstruction) {
	common := i.Common()
	if builtin, ok := common.Value.(*ssa.Builtin); ok {
		f.builtin(i, builtin.Name())
		return
	}
	if f.known(i) {
		return
	}
	if common.IsInvoke() {
		f.invoke(i)
		return
	}
	callee := common.StaticCallee()
	if callee == nil {
		f.dynamicCall(i)
		return
	}
	f.static(i, callee)
}

func (f *functionFlow) static(i ssa.CallInstruction, callee *ssa.Function) {
	args := f.args(i.Common().Args)
	summary := f.summaryOf(callee)
	isOwn := summary != nil && !summary.inline
	if !isOwn && isCarrier(callee) {
		f.carry(i)
		return
	}
	if summary != nil {
		f.setResults(i, f.apply(summary, args, i.Pos()))
		if f.summaries[callee] == nil {
			f.runLiterals(i)
		}
		return
	}
	f.escapeAll(i, "passed to "+calleeName(callee))
}

// summaryOf returns the summary of a function that is analyzed here or has a fact, or nil.
func (f *functionFlow) summaryOf(callee *ssa.Function) *summary {
	if known := f.summaries[callee]; known != nil {
		return known
	}
	if f.Facts == nil {
		return nil
	}
	if origin := callee.Origin(); origin != nil {
		callee = origin
	}
	object, ok := callee.Object().(*types.Func)
	if !ok {
		return nil
	}
	return f.factOf(object)
}

func (f *functionFlow) args(values []ssa.Value) []origins {
	args := make([]origins, len(values))
	for n, value := range values {
		args[n] = f.of(value)
	}
	return args
}

// apply adds what a function does with its arguments, and returns what its results are derived from.
func (f *functionFlow) apply(callee *summary, args []origins, pos token.Pos) []origins {
	if callee == nil {
		return nil
	}
	for u := range callee.uses {
		if u.of.param >= len(args) {
			continue
		}
		applied := u
		if callee.inline {
			applied.site = f.site(pos)
		}
		for o := range args[u.of.param] {
			joined, ok := u.of.with(o)
			if !ok {
				continue
			}
			applied.of = joined
			f.record(applied)
		}
	}
	results := make([]origins, len(callee.results))
	for n, result := range callee.results {
		results[n] = replaceParams(result, args)
	}
	return results
}

// replaceParams replaces parameters by the arguments of a call.
func replaceParams(result origins, args []origins) origins {
	replaced := origins{}
	for o := range result {
		if o.root != nil {
			replaced[o] = struct{}{}
			continue
		}
		if o.param >= len(args) {
			continue
		}
		for arg := range args[o.param] {
			if joined, ok := o.with(arg); ok {
				replaced[joined] = struct{}{}
			}
		}
	}
	return replaced
}

// setResults sets the origins of a call's results.
func (f *functionFlow) setResults(i ssa.CallInstruction, results []origins) {
	value := i.Value()
	if value == nil {
		return
	}
	if len(results) == 1 {
		f.add(value, results[0])
		return
	}
	known := f.tuples[value]
	if known == nil {
		known = make([]origins, len(results))
		f.tuples[value] = known
	}
	for n, result := range results {
		joined := known[n].union(result)
		if len(joined) != len(known[n]) {
			known[n] = joined
			f.changed = true
		}
	}
}

// setEachResult sets the same origins for each result that can hold them.
func (f *functionFlow) setEachResult(i ssa.CallInstruction, from origins) {
	signature := i.Common().Signature()
	results := make([]origins, signature.Results().Len())
	for n := range results {
		if f.isTracked(signature.Results().At(n).Type()) {
			results[n] = from
		}
	}
	f.setResults(i, results)
}

func (f *functionFlow) builtin(i ssa.CallInstruction, name string) {
	args := i.Common().Args
	switch name {
	case "append":
		value := i.Value()
		for _, arg := range args {
			f.add(value, f.of(arg))
		}
	case "copy":
		if variable, ok := localVariable(args[0]); ok {
			f.add(variable, f.of(args[1]))
			return
		}
		f.keep(args[1], i.Pos(), "copied to another list")
	case "len", "cap":
		f.use(f.of(args[0]), Presence, i.Pos(), "")
	case "print", "println":
		f.escapeAll(i, "printed")
	case "ssa:wrapnilchk":
		f.add(i.Value(), f.of(args[0]))
	}
}

// escapeAll lets each argument escape, and runs functions among them with the others.
func (f *functionFlow) escapeAll(i ssa.CallInstruction, how string) {
	for _, arg := range expandedArgs(i.Common()) {
		f.escape(arg, i, how)
	}
	f.runLiterals(i)
}

// expandedArgs returns a call's arguments, and each variadic one instead of their slice.
func expandedArgs(common *ssa.CallCommon) []ssa.Value {
	args := common.Args
	if !common.Signature().Variadic() || len(args) == 0 {
		return args
	}
	last := len(args) - 1
	variadic := variadicArgs(args[last])
	if variadic == nil {
		return args
	}
	return append(slices.Clone(args[:last]), variadic...)
}

// escape records that a value reaches code that is not analyzed.
func (f *functionFlow) escape(value ssa.Value, at ssa.Instruction, how string) {
	if _, isConst := value.(*ssa.Const); isConst || isExample(value) {
		return
	}
	from := f.of(value)
	if len(from) == 0 {
		f.escapeContainer(value, at, how)
		return
	}
	for o := range from {
		if o.path == "" && !f.mayBeWhole(value, at, o.root) {
			if o.root != nil {
				continue
			}
			o.notObject = true
		}
		f.use(originsOf(o), Escaped, at.Pos(), how)
	}
}

// mayBeWhole reports whether a value can be a whole object. The object's type is not known for
// parameters.
func (f *functionFlow) mayBeWhole(
	value ssa.Value,
	at ssa.Instruction,
	object *types.TypeName,
) bool {
	if object == nil {
		object = f.Anything
	}
	if object == nil {
		return true
	}
	if f.Anything != nil && types.IsInterface(value.Type()) && !f.canHold(value.Type()) {
		return false
	}
	return !f.isExcluded(value, at, object)
}

// maxContainerDepth is how deep containers of objects are searched for their type.
const maxContainerDepth = 3

func (f *functionFlow) escapeContainer(value ssa.Value, at ssa.Instruction, how string) {
	if made, ok := value.(*ssa.MakeInterface); ok {
		value = made.X
	}
	if isExample(value) {
		return
	}
	object := f.holdsObject(value.Type(), maxContainerDepth)
	if object != nil {
		f.use(originsOf(origin{root: object}), Escaped, at.Pos(), how)
	}
}

// isExample reports whether a value is a new object that nothing else refers to, such as the
// ObjectType of options.
func isExample(value ssa.Value) bool {
	if made, ok := value.(*ssa.MakeInterface); ok {
		if len(*made.Referrers()) > 1 {
			return false
		}
		value = made.X
	}
	alloc, ok := value.(*ssa.Alloc)
	return ok && len(*alloc.Referrers()) == 1
}

// isExcluded reports whether a type assertion has shown that an interface value is no object.
func (f *functionFlow) isExcluded(
	value ssa.Value,
	at ssa.Instruction,
	object *types.TypeName,
) bool {
	if made, ok := value.(*ssa.ChangeInterface); ok {
		value = made.X
	}
	if !types.IsInterface(value.Type()) {
		return false
	}
	for _, block := range f.function.Blocks {
		for _, instruction := range block.Instrs {
			assert, ok := instruction.(*ssa.TypeAssert)
			if ok && assert.CommaOk && f.objectOf(assert.AssertedType) == object &&
				isSameValue(assert.X, value) && failed(assert, at.Block()) {
				return true
			}
		}
	}
	return false
}

// failed reports whether a block is reached only if an assertion failed.
func failed(assert *ssa.TypeAssert, block *ssa.BasicBlock) bool {
	for _, referrer := range *assert.Referrers() {
		extract, ok := referrer.(*ssa.Extract)
		if !ok || extract.Index != 1 {
			continue
		}
		for _, user := range *extract.Referrers() {
			branch, ok := user.(*ssa.If)
			if !ok {
				continue
			}
			otherwise := branch.Block().Succs[1]
			if len(otherwise.Preds) == 1 && otherwise.Dominates(block) {
				return true
			}
		}
	}
	return false
}

// isSameValue reports whether two values are the same, or the same field of one value.
func isSameValue(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *ssa.Field:
		b, ok := b.(*ssa.Field)
		return ok && a.Field == b.Field && isSameValue(a.X, b.X)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && isSameValue(a.X, b.X)
	case *ssa.UnOp:
		b, ok := b.(*ssa.UnOp)
		return ok && a.Op == token.MUL && b.Op == token.MUL && isSameField(a.X, b.X)
	}
	return false
}

// isSameField excludes variables, which may change between two loads.
func isSameField(a, b ssa.Value) bool {
	_, isField := a.(*ssa.FieldAddr)
	return isField && isSameValue(a, b)
}

// calleeName is the name of a function for messages.
func calleeName(callee *ssa.Function) string {
	if object := callee.Object(); object != nil {
		if function, ok := object.(*types.Func); ok {
			return function.FullName()
		}
	}
	return callee.String()
}
