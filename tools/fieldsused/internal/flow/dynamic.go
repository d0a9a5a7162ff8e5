package flow

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// dynamicCalls has the functions that calls of function values and of interface methods may reach.
type dynamicCalls struct {
	// values are the analyzed functions that are used as values, by their signatures.
	values map[string][]*ssa.Function
	// unknownValues are the signatures of other functions that are used as values.
	unknownValues map[string]bool
	callbacks     map[*ssa.Function]bool
	// methods are the analyzed methods, by name and signature.
	methods map[string][]*ssa.Function
	// converted are the named types whose values are converted to interfaces.
	converted map[*types.TypeName]bool
	// foreign are the interfaces to which values of types that are not analyzed are converted.
	foreign map[string]bool
	// packages are the analyzed packages.
	packages map[*types.Package]bool
}

func findDynamicCalls(a *analysis) *dynamicCalls {
	d := &dynamicCalls{
		values:        map[string][]*ssa.Function{},
		unknownValues: map[string]bool{},
		callbacks:     map[*ssa.Function]bool{},
		methods:       map[string][]*ssa.Function{},
		converted:     map[*types.TypeName]bool{},
		foreign:       map[string]bool{},
		packages:      map[*types.Package]bool{},
	}
	for _, function := range a.functions {
		d.packages[PackageOf(function)] = true
	}
	for _, function := range a.functions {
		if function.Signature.Recv() != nil && function.Synthetic == "" {
			key := function.Name() + signatureKey(function.Signature)
			d.methods[key] = append(d.methods[key], function)
		}
		for _, block := range function.Blocks {
			for _, instruction := range block.Instrs {
				d.addValues(a, instruction)
				d.addConversion(instruction)
			}
		}
	}
	return d
}

// signatureKey is equal for identical parameters and results.
func signatureKey(signature *types.Signature) string {
	var key strings.Builder
	for _, tuple := range []*types.Tuple{signature.Params(), signature.Results()} {
		key.WriteByte('(')
		for variable := range tuple.Variables() {
			key.WriteString(types.TypeString(variable.Type(), nil))
			key.WriteByte(',')
		}
		key.WriteByte(')')
	}
	return key.String()
}

// addValues adds the functions that an instruction uses as values.
func (d *dynamicCalls) addValues(a *analysis, instruction ssa.Instruction) {
	if made, ok := instruction.(*ssa.MakeClosure); ok {
		d.addMadeClosure(a, made)
		return
	}
	for _, operand := range instruction.Operands(nil) {
		function, ok := (*operand).(*ssa.Function)
		if !ok {
			continue
		}
		call, isCall := instruction.(ssa.CallInstruction)
		if isCall && call.Common().Value == function && operand == &call.Common().Value {
			continue
		}
		d.addValue(a, function)
	}
}

// addMadeClosure adds a function literal, unless it is only called where it is made.
func (d *dynamicCalls) addMadeClosure(a *analysis, made *ssa.MakeClosure) {
	for _, referrer := range *made.Referrers() {
		call, ok := referrer.(ssa.CallInstruction)
		if !ok || call.Common().Value != made {
			d.addValue(a, made.Fn.(*ssa.Function))
			return
		}
	}
}

func (d *dynamicCalls) addValue(a *analysis, function *ssa.Function) {
	key := signatureKey(function.Signature)
	if a.summaries[function] == nil {
		d.unknownValues[key] = true
		return
	}
	if d.callbacks[function] {
		return
	}
	d.callbacks[function] = true
	d.values[key] = append(d.values[key], function)
}

func (d *dynamicCalls) addConversion(instruction ssa.Instruction) {
	var from ssa.Value
	var to types.Type
	switch i := instruction.(type) {
	case *ssa.MakeInterface:
		from = i.X
		to = i.Type()
	case *ssa.ChangeInterface:
		from = i.X
		to = i.Type()
	default:
		return
	}
	name := namedOf(from.Type())
	if name == nil {
		return
	}
	if d.packages[name.Pkg()] {
		d.converted[name] = true
		return
	}
	d.foreign[types.TypeString(to, nil)] = true
}

// isCallback reports whether a function may be called by code that is not analyzed.
func (d *dynamicCalls) isCallback(function *ssa.Function) bool {
	if d.callbacks[function] {
		return true
	}
	receiver := function.Signature.Recv()
	if receiver == nil {
		return false
	}
	name := namedOf(receiver.Type())
	return name != nil && d.converted[name]
}

// dynamicCall handles the call of a function value.
func (f *functionFlow) dynamicCall(i ssa.CallInstruction) {
	common := i.Common()
	key := signatureKey(common.Signature())
	candidates := f.dynamic.values[key]
	args := f.args(common.Args)
	for _, candidate := range candidates {
		f.setResults(i, f.apply(f.summaries[candidate], args, i.Pos()))
	}
	isUnknown := len(candidates) == 0 || f.dynamic.unknownValues[key]
	if isUnknown || f.isForeignFunction(common.Value) {
		f.escapeAll(i, "passed to a function value")
	}
}

// isForeignFunction reports whether a function value was returned by code that is not analyzed.
func (f *functionFlow) isForeignFunction(value ssa.Value) bool {
	if extract, ok := value.(*ssa.Extract); ok {
		value = extract.Tuple
	}
	call, ok := value.(*ssa.Call)
	return ok && f.isUnknownCall(call)
}

// invoke handles a call through an interface.
func (f *functionFlow) invoke(i ssa.CallInstruction) {
	common := i.Common()
	method := common.Method
	candidates := f.dynamic.methods[method.Name()+signatureKey(method.Signature())]
	args := append([]origins{f.of(common.Value)}, f.args(common.Args)...)
	for _, candidate := range candidates {
		if !f.implements(candidate, common.Value.Type()) {
			continue
		}
		f.setResults(i, f.apply(f.summaries[candidate], args, i.Pos()))
	}
	isUnknown := !f.dynamic.packages[method.Pkg()] ||
		f.dynamic.foreign[types.TypeString(common.Value.Type(), nil)]
	if !isUnknown {
		return
	}
	how := "passed to " + method.FullName()
	f.escapeAll(i, how)
	f.escape(common.Value, i, how)
}

// implements reports whether a method belongs to a type that has an interface's methods.
func (f *functionFlow) implements(method *ssa.Function, of types.Type) bool {
	u, ok := of.Underlying().(*types.Interface)
	if !ok {
		return true
	}
	receiver := method.Signature.Recv().Type()
	return types.Implements(receiver, u) || types.Implements(types.NewPointer(receiver), u)
}
