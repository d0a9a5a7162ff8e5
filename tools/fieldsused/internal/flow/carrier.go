package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// carriers are packages that hold objects and return them, and read of them only what is always
// kept.
var carriers = []string{
	"k8s.io/client-go/tools/cache",
	"k8s.io/client-go/util/workqueue",
	"k8s.io/client-go/listers",
	"k8s.io/client-go/informers",
	"k8s.io/apimachinery/pkg/api/meta",
	"k8s.io/utils/ptr",
	"k8s.io/utils/pointer",
	"sigs.k8s.io/controller-runtime/pkg/builder",
	"github.com/watchmirror/cache/adapters/clientgo",
	"github.com/watchmirror/cache/kubeapi",
	"github.com/watchmirror/cache/overlay",
	"github.com/watchmirror/cache/sharding",
	"github.com/watchmirror/cache/sources",
	"container/heap",
	"container/list",
	"context",
	"iter",
	"maps",
	"slices",
	"sort",
	"sync",
	"sync/atomic",
}

// root is this library's package. Not all packages below it are carriers.
const root = "github.com/watchmirror/cache"

func isCarrierPackage(pkg string) bool {
	return pkg == root || slices.ContainsFunc(carriers, func(carrier string) bool {
		return pkg == carrier || strings.HasPrefix(pkg, carrier+"/")
	})
}

// isCarrier reports whether a function belongs to a carrier. One of them copies all metadata.
func isCarrier(callee *ssa.Function) bool {
	return isCarrierPackage(path(PackageOf(callee))) && callee.Name() != "AsPartialObjectMetadata"
}

// neverReturnsObjects reports whether a function's results of interface types are no objects.
func neverReturnsObjects(callee *ssa.Function) bool {
	pkg := path(PackageOf(callee))
	return pkg == "reflect" || pkg == "errors" || pkg == "fmt"
}

// carry handles a call into a carrier: its results may be what its arguments are, and functions
// among the arguments may be called with the others.
func (f *functionFlow) carry(i ssa.CallInstruction) {
	var from origins
	for _, arg := range i.Common().Args {
		_, isMap := arg.Type().Underlying().(*types.Map)
		if isMap || f.returnsFunction(i) {
			f.use(f.of(arg), Read, i.Pos(), "")
		}
		from = from.union(f.of(arg))
	}
	f.setEachResult(i, from)
	f.runLiterals(i)
}

// returnsFunction reports whether a call returns an iterator, whose values are not followed.
func (f *functionFlow) returnsFunction(i ssa.CallInstruction) bool {
	results := i.Common().Signature().Results()
	if results.Len() != 1 {
		return false
	}
	_, isFunction := results.At(0).Type().Underlying().(*types.Signature)
	return isFunction
}

// runLiterals applies the functions among a call's arguments to the other arguments, where their
// types fit.
func (f *functionFlow) runLiterals(i ssa.CallInstruction) {
	for _, arg := range i.Common().Args {
		function := functionOf(arg)
		if function == nil {
			continue
		}
		summary := f.summaryOf(function)
		if summary == nil {
			continue
		}
		args := make([]origins, len(function.Params))
		for n, param := range function.Params {
			args[n] = f.fitting(i.Common().Args, param.Type())
		}
		f.apply(summary, args, i.Pos())
	}
}

// fitting returns the origins of the arguments whose elements have a type.
func (f *functionFlow) fitting(args []ssa.Value, t types.Type) origins {
	var from origins
	for _, arg := range args {
		argType := f.shapes.element(arg.Type())
		if m, isMap := argType.Underlying().(*types.Map); isMap {
			argType = f.shapes.element(m.Elem())
		}
		if types.Identical(argType, f.shapes.element(t)) {
			from = from.union(f.of(arg))
		}
	}
	return from
}

// functionOf returns the function that a value is, or nil if it is not known.
func functionOf(value ssa.Value) *ssa.Function {
	switch v := value.(type) {
	case *ssa.Function:
		return v
	case *ssa.MakeClosure:
		return v.Fn.(*ssa.Function)
	case *ssa.ChangeType:
		return functionOf(v.X)
	case *ssa.MakeInterface:
		return functionOf(v.X)
	}
	return nil
}
