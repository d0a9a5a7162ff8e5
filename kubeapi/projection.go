package kubeapi

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fieldpaths "github.com/watchmirror/cache/kubeapi/internal/projection"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// ProjectionMark is the annotation of an object that has only the fields named in Options.Fields.
// Its value is the list of their paths, separated by commas.
//
// The key is invalid on purpose: API servers check the annotations of every type on each create and
// update, and refuse this one with reason Invalid and a text that quotes the key. (An invalid
// managedFields would not suffice: an update with it is accepted.)
const ProjectionMark = "watchmirror projection: fields are missing, do not write this object"

// ProjectedFields returns the Options.Fields with which an object was decoded, and whether it has
// the ProjectionMark. It also works for copies.
func ProjectedFields(object any) (fields []string, projected bool) {
	paths, projected := markOf(object)
	if !projected {
		return nil, false
	}
	return strings.Split(paths, ","), true
}

func markOf(object any) (paths string, marked bool) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		// GetAnnotations returns none if one of them is not a string.
		metadata, _ := u.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		paths, marked = annotations[ProjectionMark].(string)
		return paths, marked
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", false
	}
	paths, marked = accessor.GetAnnotations()[ProjectionMark]
	return paths, marked
}

// projection keeps only the named fields. It is immutable.
type projection struct {
	fields     *wire.Fields
	paths      string // separated by commas
	pathsValue any    // paths as an interface value, for unstructured objects
}

// projectionOf returns nil if no fields are named.
func projectionOf(paths []string, into target) (*projection, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	fields, err := fieldpaths.New(paths, into.structType)
	if err != nil {
		return nil, err
	}
	joined := strings.Join(paths, ",")
	return &projection{fields: fields, paths: joined, pathsValue: joined}, nil
}

// overlaps reports whether a field, one of its parents or one of its subfields is named.
func (p *projection) overlaps(field string) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(p.paths, ","), func(path string) bool {
		return path == field || strings.HasPrefix(field, path+".") ||
			strings.HasPrefix(path, field+".")
	})
}

// protobuf reports whether the fields' numbers are known, which protobuf needs.
func (p *projection) protobuf() bool { return p == nil || p.fields.Numbers != nil }

// maxPooledBuffer is the largest buffer that is kept for reuse; a larger one belongs to an
// unusually large object. Buffers are pooled because thousands of watches may be idle.
const maxPooledBuffer = 64 << 10

var cutBuffers = sync.Pool{New: func() any { return new([]byte) }}

// cut calls use with the named fields of an object's bytes, which are valid until use returns.
func (p *projection) cut(
	encoding wire.Encoding, raw []byte, limits wire.Limits, use func([]byte) error,
) error {
	buffer := cutBuffers.Get().(*[]byte)
	cut, err := encoding.Cut((*buffer)[:0], raw, p.fields, limits)
	if cap(cut) <= maxPooledBuffer {
		*buffer = cut
		defer cutBuffers.Put(buffer)
	}
	if err != nil {
		return err
	}
	return use(cut)
}

// mark sets the annotation. It changes a map only if the object owns it.
func (p *projection) mark(object runtime.Object) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		p.markUnstructured(u.Object)
		return
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return // a type whose metadata is nil: it cannot be written anyway
	}
	annotations := accessor.GetAnnotations()
	if annotations == nil {
		accessor.SetAnnotations(map[string]string{ProjectionMark: p.paths})
		return
	}
	annotations[ProjectionMark] = p.paths
}

func (p *projection) markUnstructured(content map[string]any) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations[ProjectionMark] = p.pathsValue
		return
	}
	metadata["annotations"] = map[string]any{ProjectionMark: p.pathsValue}
}
