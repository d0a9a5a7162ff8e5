package cachetest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// example returns an object of the source's type, read-only: the first stored one, or an empty one.
// It is nil if the type is unknown.
func (s *Source) example() runtime.Object {
	s.mu.Lock()
	stored := s.exemplar
	s.mu.Unlock()
	if stored != nil {
		return stored
	}
	return s.configuredObject()
}

// configuredObject returns an empty object of the type in the options, nil if they have none.
func (s *Source) configuredObject() runtime.Object {
	if s.options.NewObject != nil {
		return s.options.NewObject()
	}
	if s.options.NewList != nil {
		return newItem(s.options.NewList())
	}
	return nil
}

// newItem returns an empty item of a typed list, nil if the list has no item type.
func newItem(list runtime.Object) runtime.Object {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil
	}
	itemType := reflect.TypeOf(items).Elem().Elem()
	if itemType.Kind() == reflect.Pointer {
		itemType = itemType.Elem()
	}
	if itemType.Kind() != reflect.Struct {
		return nil
	}
	obj, _ := reflect.New(itemType).Interface().(runtime.Object)
	return obj
}

// NewObject returns an empty object of the type that the source holds or, before its first object,
// that its options name.
func (s *Source) NewObject() runtime.Object {
	obj := s.configuredObject()
	if obj == nil {
		example := s.example()
		if t := reflect.TypeOf(example); t != nil && t.Kind() == reflect.Pointer {
			obj = reflect.New(t.Elem()).Interface().(runtime.Object)
		}
	}
	if obj == nil {
		obj = &unstructured.Unstructured{}
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GetKind() == "" {
		u.SetGroupVersionKind(s.kind())
	}
	return obj
}

// kind returns the kind of the source's objects, empty if it is unknown.
func (s *Source) kind() schema.GroupVersionKind {
	if !s.options.GroupVersionKind.Empty() {
		return s.options.GroupVersionKind
	}
	if example := s.example(); example != nil {
		return example.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// newList returns a list of objects. The list owns them.
func (s *Source) newList(objects []runtime.Object) (runtime.Object, error) {
	if s.options.NewList != nil {
		list := s.options.NewList()
		return list, meta.SetList(list, objects)
	}
	of := objects
	if len(of) == 0 {
		of = []runtime.Object{s.example()}
	}
	switch {
	case all[*unstructured.Unstructured](of) || of[0] == nil:
		return s.newUnstructuredList(objects), nil
	case all[*metav1.PartialObjectMetadata](of):
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
		return list, meta.SetList(list, objects)
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}}
	return list, meta.SetList(list, objects)
}

func (s *Source) newUnstructuredList(objects []runtime.Object) runtime.Object {
	// Without a known kind it is a plain list.
	kind := schema.GroupVersionKind{Version: "v1", Kind: "List"}
	if of := s.kind(); of.Kind != "" {
		kind = of.GroupVersion().WithKind(of.Kind + "List")
	}
	list := &unstructured.UnstructuredList{
		Items: make([]unstructured.Unstructured, 0, len(objects)),
	}
	list.SetGroupVersionKind(kind)
	for _, obj := range objects {
		list.Items = append(list.Items, *obj.(*unstructured.Unstructured))
	}
	return list
}

// all reports whether all objects are of type T.
func all[T runtime.Object](objects []runtime.Object) bool {
	for _, obj := range objects {
		if _, ok := obj.(T); !ok {
			return false
		}
	}
	return true
}
