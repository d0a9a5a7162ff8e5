package conformance

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// RigOver returns a rig for a source whose backend is a Source, for example one that lists and watches through a
// Handler. Its objects are in the namespace, which may be empty. A nil source means the backend itself.
func RigOver(backend *cachetest.Source, namespace string, source ListerWatcher) ListerWatcherRig {
	if source == nil {
		source = backend
	}
	marked := func(name, mark string) runtime.Object {
		obj := backend.NewObject()
		accessor := metadata(obj)
		accessor.SetNamespace(namespace)
		accessor.SetName(name)
		accessor.SetAnnotations(map[string]string{MarkAnnotation: mark})
		return obj
	}
	return ListerWatcherRig{
		Source: source,
		Create: func(name, mark string) error {
			_, err := backend.Create(marked(name, mark))
			return err
		},
		Update: func(name, mark string) error {
			obj := marked(name, mark)
			if before, err := backend.Get(namespace, name); err == nil {
				metadata(obj).SetLabels(metadata(before).GetLabels())
			}
			_, err := backend.Update(obj)
			return err
		},
		Label: func(name, value string) error {
			obj, err := backend.Get(namespace, name)
			if err != nil {
				return err
			}
			metadata(obj).SetLabels(map[string]string{SelectedLabel: value})
			_, err = backend.Update(obj)
			return err
		},
		Delete: func(name string) error {
			_, err := backend.Delete(namespace, name)
			return err
		},
		Compact: func() error {
			backend.CompactAll()
			return nil
		},
		EndWatches: func() error {
			backend.CloseWatches()
			return nil
		},
		SendBookmarks: func() error {
			backend.SendBookmarks()
			return nil
		},
	}
}

// metadata returns an object's metadata. Each object of a Source has some.
func metadata(obj runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}
