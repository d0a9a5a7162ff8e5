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

// ProjectionMark is the annotation by which an object says that it has only those fields
// that Options.Fields names: its value is their paths, with commas between.
//
// It is no valid key of an annotation, on purpose. API servers check all annotations
// whenever an object is created or updated, for every type and in every version, and refuse
// one that carries this with the reason Invalid and a text that quotes the key.
// (The other field that a server alone should write does not do: an update whose
// managedFields cannot be read is accepted, with those that the object had.)
const ProjectionMark = "watchmirror projection: fields are missing, do not write this object"

// ProjectedFields returns the Options.Fields with which an object, or the one that it is a copy of, was decoded, and
// whether it was (it has the ProjectionMark).
func ProjectedFields(object any) (fields []string, projected bool) {
	paths, projected := markOf(object)
	if !projected {
		return nil, false
	}
	return strings.Split(paths, ","), true
}

func markOf(object any) (paths string, marked bool) {
	if generic, ok := object.(*unstructured.Unstructured); ok {
		// Its own method has no annotations at all if one of them is no string.
		metadata, _ := generic.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		paths, marked = annotations[ProjectionMark].(string)
		return paths, marked
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return "", false
	}
	paths, marked = about.GetAnnotations()[ProjectionMark]
	return paths, marked
}

// projection keeps the fields that are named. It is never changed.
type projection struct {
	fields *wire.Fields
	paths  string // with commas between
	boxed  any    // paths, for unstructured objects
}

// projectionOf returns nil if no fields are named.
func projectionOf(paths []string, into target) (*projection, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	fields, err := fieldpaths.New(paths, into.of)
	if err != nil {
		return nil, err
	}
	joined := strings.Join(paths, ",")
	return &projection{fields: fields, paths: joined, boxed: joined}, nil
}

// names says whether a field is kept because it, what it is in, or a part of it is named.
func (p *projection) names(field string) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(p.paths, ","), func(path string) bool {
		return path == field || strings.HasPrefix(field, path+".") || strings.HasPrefix(path, field+".")
	})
}

// protobuf says whether it is known what to cut there.
func (p *projection) protobuf() bool { return p == nil || p.fields.Numbers != nil }

// Buffers are lent for the time of one object: there may be thousands of watches, all
// waiting. One that has grown beyond this belongs to an object of unusual size.
const keptCut = 64 << 10

var cutBuffers = sync.Pool{New: func() any { return new([]byte) }}

// cut calls use with the wanted part of an object's bytes, good until it returns.
func (p *projection) cut(encoding wire.Encoding, raw []byte, limits wire.Limits, use func([]byte) error) error {
	buffer := cutBuffers.Get().(*[]byte)
	cut, err := encoding.Cut((*buffer)[:0], raw, p.fields, limits)
	if cap(cut) <= keptCut {
		*buffer = cut
		defer cutBuffers.Put(buffer)
	}
	if err != nil {
		return err
	}
	return use(cut)
}

// mark puts the mark on an object. The map that it is in is the object's own: others may be
// changed while this one is read.
func (p *projection) mark(object runtime.Object) {
	if generic, ok := object.(*unstructured.Unstructured); ok {
		p.markUnstructured(generic.Object)
		return
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return // of a type whose metadata is nil: there is nothing of it to be written
	}
	annotations := about.GetAnnotations()
	if annotations == nil {
		about.SetAnnotations(map[string]string{ProjectionMark: p.paths})
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
		annotations[ProjectionMark] = p.boxed
		return
	}
	metadata["annotations"] = map[string]any{ProjectionMark: p.boxed}
}
