// The names of reflectors and of their types. How are two of them distinguished in a log?

package cache

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache/internal/numbered"
)

// defaultNames are the default names of the reflectors of this process. A line in a loop or in a
// helper makes many of them.
var defaultNames numbered.Names

// nameOrDefault returns a name or, if it is empty, the first caller outside, with a number from the
// second reflector of this caller on.
func nameOrDefault(name string) string {
	if name != "" {
		return name
	}
	return defaultNames.Give(firstCallerOutside())
}

// firstCallerOutside returns folder/file:line of the nearest caller outside this package and its
// adapter for client-go.
func firstCallerOutside() string {
	const ours = "github.com/watchmirror/cache."
	const adapter = "github.com/watchmirror/cache/adapters/clientgo."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if !more { // the last frame is the runtime's
			return "reflector"
		}
		inside := strings.HasPrefix(frame.Function, ours) ||
			strings.HasPrefix(frame.Function, adapter)
		if !inside && frame.File != "" {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
	}
}

// describeType returns the kind or Go type of the expected objects. Where the source may list any
// kind, the source's own description has precedence. It returns "" if neither is known.
func (r *Reflector) describeType() string {
	if !r.expectedGVK.Empty() {
		return r.expectedGVK.String()
	}
	described, isDescribed := r.own.(interface{ TypeDescription() string })
	isAnyKind := r.expectedType == nil || typesOfAnyKind[r.expectedType]
	if isAnyKind && isDescribed && described.TypeDescription() != "" {
		return described.TypeDescription()
	}
	if r.expectedType == nil {
		return ""
	}
	return shortType(r.expectedType)
}

// typesOfAnyKind are Go types that objects of every kind have.
var typesOfAnyKind = map[reflect.Type]bool{
	reflect.TypeFor[*unstructured.Unstructured]():    true,
	reflect.TypeFor[*metav1.PartialObjectMetadata](): true,
}

// folders are those of a package in the name of a type parameter.
var folders = regexp.MustCompile(`[^][,*\s]+/`)

// shortType returns the name of a type, in which each package is its last element:
// *sources.Entry[machines.Machine].
func shortType(of reflect.Type) string { return folders.ReplaceAllString(of.String(), "") }
