package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// accessors are the methods of metav1.Object, runtime.Object and schema.ObjectKind that read a
// field. All objects have them.
var accessors = map[string]string{
	"GetName":                       "metadata.name",
	"GetGenerateName":               "metadata.generateName",
	"GetNamespace":                  "metadata.namespace",
	"GetUID":                        "metadata.uid",
	"GetResourceVersion":            "metadata.resourceVersion",
	"GetGeneration":                 "metadata.generation",
	"GetSelfLink":                   "metadata.selfLink",
	"GetCreationTimestamp":          "metadata.creationTimestamp",
	"GetDeletionTimestamp":          "metadata.deletionTimestamp",
	"GetDeletionGracePeriodSeconds": "metadata.deletionGracePeriodSeconds",
	"GetLabels":                     "metadata.labels",
	"GetAnnotations":                "metadata.annotations",
	"GetFinalizers":                 "metadata.finalizers",
	"GetOwnerReferences":            "metadata.ownerReferences",
	"GetManagedFields":              "metadata.managedFields",
	"GetKind":                       "kind",
	"GetAPIVersion":                 "apiVersion",
	"GroupVersionKind":              "kind",
}

// aliases are methods whose result is the object itself, or a copy.
var aliases = []string{
	"GetObjectMeta", "GetObjectKind", "DeepCopy", "DeepCopyObject", "UnstructuredContent",
}

// setters are methods that read nothing.
var setters = []string{"SetGroupVersionKind", "SetKind", "SetAPIVersion", "SetUnstructuredContent"}

// known handles calls whose meaning is known without a body. It reports whether it did.
func (f *functionFlow) known(i ssa.CallInstruction) bool {
	common := i.Common()
	name, receiver := methodName(common)
	if receiver != nil && f.method(i, name, receiver) {
		return true
	}
	callee := common.StaticCallee()
	if callee == nil {
		return f.knownInvoke(i)
	}
	return f.knownFunction(i, callee)
}

// methodName returns a called method and its receiver, which is nil for functions.
func methodName(common *ssa.CallCommon) (name string, receiver ssa.Value) {
	if common.IsInvoke() {
		return common.Method.Name(), common.Value
	}
	callee := common.StaticCallee()
	if callee == nil || callee.Signature.Recv() == nil || len(common.Args) == 0 {
		return "", nil
	}
	return callee.Name(), common.Args[0]
}

// method handles the methods that API objects and their parts have.
func (f *functionFlow) method(i ssa.CallInstruction, name string, receiver ssa.Value) bool {
	from := f.of(receiver)
	if len(from) == 0 || !f.isObjectLike(receiver.Type()) {
		return false
	}
	if field, ok := accessors[name]; ok {
		f.accessor(i, objectsOf(from).below(field))
		return true
	}
	switch {
	case slices.Contains(aliases, name):
		f.setEachResult(i, from)
		return true
	case name == "DeepCopyInto":
		f.copyInto(i, from)
		return true
	}
	isSetter := strings.HasPrefix(name, "Set") && accessors["Get"+name[len("Set"):]] != ""
	return isSetter || slices.Contains(setters, name)
}

// accessor derives the result of an accessor, and reads it if nothing can be selected below it.
func (f *functionFlow) accessor(i ssa.CallInstruction, field origins) {
	f.setEachResult(i, field)
	result := i.Common().Signature().Results().At(0).Type()
	if !f.isTracked(result) || f.shapes.isScalar(result) {
		f.use(field, Read, i.Pos(), "")
	}
}

func (f *functionFlow) copyInto(i ssa.CallInstruction, from origins) {
	args := i.Common().Args
	to := args[len(args)-1]
	if f.objectOf(to.Type()) != nil {
		return
	}
	if variable, ok := localVariable(to); ok {
		f.add(variable, from)
		return
	}
	for o := range from {
		f.keepOrigin(o, to.Type(), i.Pos(), "copied into another object")
	}
}

// isObjectLike reports whether a type's methods may be those of API objects.
func (f *functionFlow) isObjectLike(t types.Type) bool {
	if _, isParam := types.Unalias(t).(*types.TypeParam); isParam || types.IsInterface(t) {
		return true
	}
	name := namedOf(t)
	return name != nil && (f.IsObject(name) || f.IsPart(name))
}

// objectsOf returns the objects whose metadata the origins are, which has the same accessors.
func objectsOf(from origins) origins {
	objects := origins{}
	for o := range from {
		o.path = strings.TrimSuffix(strings.TrimSuffix(o.path, "metadata"), ".")
		objects[o] = struct{}{}
	}
	return objects
}

// knownInvoke handles calls through interfaces of other modules.
func (f *functionFlow) knownInvoke(i ssa.CallInstruction) bool {
	common := i.Common()
	if !common.IsInvoke() || common.Method.Pkg() == nil {
		return false
	}
	pkg := path(common.Method.Pkg())
	name := common.Method.Name()
	switch {
	case f.dynamic.packages[common.Method.Pkg()]:
		return false
	case isCarrierPackage(pkg):
		f.carry(i)
		return true
	case pkg == clientPackage && (name == "Get" || name == "List"):
		return true // fills the object
	case pkg == clientPackage && name == "Delete":
		return true // by type, namespace and name
	case pkg == "k8s.io/client-go/tools/record" || pkg == "k8s.io/client-go/tools/events":
		f.recordEvent(i)
		return true
	}
	return false
}

// recordEvent handles an event recorder, which refers to objects by kind, name and UID.
func (f *functionFlow) recordEvent(i ssa.CallInstruction) {
	for _, arg := range i.Common().Args {
		if made, ok := arg.(*ssa.MakeInterface); ok && f.objectOf(made.X.Type()) != nil {
			continue
		}
		if f.mayHoldAnything(arg.Type()) {
			continue
		}
		f.escape(arg, i, "passed to "+i.Common().Method.FullName())
	}
}

// clientPackage has the client of controller-runtime.
const clientPackage = "sigs.k8s.io/controller-runtime/pkg/client"

// metadataReaders are functions of other modules that read only metadata which is always kept, or
// the Go type.
var metadataReaders = []string{
	"reflect.TypeOf",
	"k8s.io/klog/v2.KObj",
	"k8s.io/klog/v2.KObjs",
	"k8s.io/klog/v2.KObjSlice",
	"k8s.io/apimachinery/pkg/apis/meta/v1.IsControlledBy",
	"k8s.io/apimachinery/pkg/apis/meta/v1.NewControllerRef",
	"k8s.io/apimachinery/pkg/apis/meta/v1.HasAnnotation",
	"k8s.io/apimachinery/pkg/apis/meta/v1.GetControllerOfNoCopy",
	"k8s.io/apimachinery/pkg/apis/meta/v1.GetControllerOf",
	"k8s.io/client-go/tools/reference.GetReference",
	clientPackage + ".ObjectKeyFromObject",
	clientPackage + "/apiutil.GVKForObject",
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.SetControllerReference",
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.SetOwnerReference",
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.ContainsFinalizer",
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.AddFinalizer",
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil.RemoveFinalizer",
}

// comparers are functions that compare two values by reflection.
var comparers = []string{
	"reflect.DeepEqual",
	"(k8s.io/apimachinery/third_party/forked/golang/reflect.Equalities).DeepEqual",
	"(k8s.io/apimachinery/third_party/forked/golang/reflect.Equalities).DeepDerivative",
	"(k8s.io/apimachinery/pkg/conversion.Equalities).DeepEqual",
	"(k8s.io/apimachinery/pkg/conversion.Equalities).DeepDerivative",
	"github.com/google/go-cmp/cmp.Equal",
}

// knownFunction handles functions of other modules.
func (f *functionFlow) knownFunction(i ssa.CallInstruction, callee *ssa.Function) bool {
	name := calleeName(callee)
	if instance := callee.Origin(); instance != nil {
		name = calleeName(instance)
	}
	name = strings.TrimPrefix(name, "*")
	switch {
	case strings.HasPrefix(name, unstructuredPackage+"."):
		return f.unstructured(i, callee.Name())
	case f.summaries[callee] != nil:
		return false
	case slices.Contains(metadataReaders, name):
		return true
	case slices.Contains(comparers, name):
		f.deepEqual(i)
		return true
	}
	return f.printf(i, name)
}

// deepEqual records a comparison. Of a whole object, only the kept fields take part in it.
func (f *functionFlow) deepEqual(i ssa.CallInstruction) {
	for _, arg := range i.Common().Args {
		for o := range f.of(arg) {
			kind := Read
			if o.path == "" {
				kind = Compared
			}
			f.use(originsOf(o), kind, i.Pos(), "")
		}
	}
}

// unstructured handles the package's functions for nested fields.
func (f *functionFlow) unstructured(i ssa.CallInstruction, name string) bool {
	isSetter := strings.HasPrefix(name, "SetNested") || name == "RemoveNestedField"
	if isSetter {
		return true
	}
	args := i.Common().Args
	if !strings.HasPrefix(name, "Nested") || len(args) < 2 {
		return false
	}
	relative, isConstant := constantPath(args[len(args)-1])
	from := f.of(args[0]).below(relative)
	if !isConstant {
		f.use(from, Read, i.Pos(), "")
		return true
	}
	switch name {
	case "NestedMap", "NestedSlice", "NestedFieldNoCopy", "NestedFieldCopy":
		f.use(from, Presence, i.Pos(), "")
		f.setEachResult(i, from)
	default:
		f.use(from, Read, i.Pos(), "")
	}
	return true
}

// constantPath returns the path that the variadic arguments of a call are. If not all are constant
// it returns those before the first that is not, and false.
func constantPath(variadic ssa.Value) (relative string, ok bool) {
	elements := variadicArgs(variadic)
	for _, element := range elements {
		name, isConstant := constantKey(element)
		if !isConstant {
			return relative, false
		}
		relative = join(relative, name)
	}
	return relative, len(elements) > 0
}

// variadicArgs returns the values that a call passes as its variadic parameter, or nil if it passes
// a slice, whose elements may change before.
func variadicArgs(variadic ssa.Value) []ssa.Value {
	slice, ok := variadic.(*ssa.Slice)
	isOnlyPassed := ok && len(*slice.Referrers()) == 1
	if !isOnlyPassed {
		return nil
	}
	array, ok := slice.X.(*ssa.Alloc)
	if !ok {
		return nil
	}
	var args []ssa.Value
	for _, referrer := range *array.Referrers() {
		element, ok := referrer.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, user := range *element.Referrers() {
			if store, isStore := user.(*ssa.Store); isStore {
				args = append(args, store.Val)
			}
		}
	}
	return args
}

// printf handles functions with a constant format, of whose arguments those of %T and %p are not
// read.
func (f *functionFlow) printf(i ssa.CallInstruction, name string) bool {
	args := i.Common().Args
	if !i.Common().Signature().Variadic() || len(args) < 2 {
		return false
	}
	format, ok := constantText(args[len(args)-2])
	if !ok || !strings.Contains(format, "%") {
		return false
	}
	values := variadicArgs(args[len(args)-1])
	verbs := verbsOf(format)
	if len(values) == 0 || len(values) != len(verbs) {
		return false
	}
	for n, value := range values {
		if verbs[n] != 'T' && verbs[n] != 'p' {
			f.escape(value, i, "passed to "+name)
		}
	}
	return true
}

// verbsOf returns the verbs of a format, or nil if it has widths or indexes among the arguments.
func verbsOf(format string) []byte {
	if strings.ContainsAny(format, "*[") {
		return nil
	}
	var verbs []byte
	for rest := format; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return verbs
		}
		verb := strings.TrimLeft(after, "+-# 0123456789.")
		if verb == "" {
			return verbs
		}
		if verb[0] != '%' {
			verbs = append(verbs, verb[0])
		}
		rest = verb[1:]
	}
}
