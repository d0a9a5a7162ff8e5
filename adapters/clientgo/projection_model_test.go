package clientgo_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// randomObjects returns objects of a type with random content.
func randomObjects(t *testing.T, of reflect.Type, n int, seed int64) []runtime.Object {
	t.Helper()
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	objects := make([]runtime.Object, n)
	for i := range objects {
		objects[i] = reflect.New(of).Interface().(runtime.Object)
		filler.Fill(objects[i])
	}
	return objects
}

// pathsOf returns the paths of a type's fields, down to where the type contains itself.
func pathsOf(of reflect.Type, above []string, seen []reflect.Type) [][]string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || slices.Contains(seen, of) ||
		reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	var paths [][]string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if len(above) > 0 && field.Type == reflect.TypeFor[metav1.TypeMeta]() {
			// Protobuf does not have the type of an object within an object, so its fields cannot
			// be named.
			continue
		}
		path := above
		if name != "" {
			path = append(slices.Clone(above), name)
			paths = append(paths, path)
		}
		paths = append(paths, pathsOf(field.Type, path, append(slices.Clone(seen), of))...)
	}
	return paths
}

// zeroed empties everything in a value that no path names.
func zeroed(value reflect.Value, paths [][]string) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			zeroed(value.Elem(), paths)
		}
	case reflect.Slice:
		for i := range value.Len() {
			zeroed(value.Index(i), paths)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if name == "" {
				zeroed(value.Field(i), paths)
				continue
			}
			below := [][]string{}
			whole := false
			for _, path := range paths {
				if path[0] == name {
					below = append(below, path[1:])
					whole = whole || len(path) == 1
				}
			}
			switch {
			case whole:
			case len(below) == 0:
				value.Field(i).SetZero()
			default:
				zeroed(value.Field(i), below)
			}
		}
	}
}

// alwaysKept is kept even if it is not named.
var alwaysKept = strings.Fields(
	"apiVersion kind metadata.name metadata.generateName metadata.namespace metadata.uid " +
		"metadata.resourceVersion metadata.generation metadata.creationTimestamp metadata.deletionTimestamp " +
		"metadata.deletionGracePeriodSeconds metadata.labels metadata.ownerReferences metadata.finalizers",
)
