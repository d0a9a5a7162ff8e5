package simulation

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// Object is the type of the source's objects. Its annotations and labels have the marks.
type Object = metav1.PartialObjectMetadata

var objectKind = schema.GroupVersionKind{Group: "simulation", Version: "v1", Kind: "Thing"}

const (
	// serialMark numbers the written states, from 1.
	serialMark = "serial"
	// receiptMark numbers the objects sent to one mirror, in order. The tap sets it.
	receiptMark = "receipt"
	// transformedMark counts the transforms of an object.
	transformedMark = "transformed"
	// badMark names the function that fails for the object.
	badMark = "bad"
	// unwantedMark makes the transform return nil.
	unwantedMark = "unwanted"
	// decodeMark is a label that the network damages, so that the object cannot be decoded.
	decodeMark = "undecodable"
	// groupMark is the label that objects are indexed by: any number of values, joined
	// by dots.
	groupMark = "group"
)

// groupsIndex is the name of the index by groupMark.
const groupsIndex = "groups"

func newObject(key string) *Object {
	namespace, name := script.SplitKey(key)
	return &Object{
		TypeMeta:   metav1.TypeMeta{APIVersion: objectKind.GroupVersion().String(), Kind: objectKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// asObject returns the Object of a store's or handler's argument, of a tombstone the last known one;
// nil if there is none.
func asObject(obj any) *Object {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	o, _ := obj.(*Object)
	return o
}

func isTombstone(obj any) bool {
	_, ok := obj.(cache.DeletedFinalStateUnknown)
	return ok
}

func keyOf(o *Object) string { return o.Namespace + "/" + o.Name }

func serialOf(o *Object) int { return numberIn(o, serialMark) }

func receiptOf(o *Object) int { return numberIn(o, receiptMark) }

func numberIn(o *Object, mark string) int {
	n, _ := strconv.Atoi(o.Annotations[mark])
	return n
}

func setMark(o *Object, mark, value string) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[mark] = value
}

// keyFunction is the one of every mirror.
func keyFunction(obj any) (string, error) {
	if o, ok := obj.(*Object); ok && o.Annotations[badMark] == script.BadKey {
		return "", errBad
	}
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// byGroup is an index function: none, one or several values.
func byGroup(obj any) ([]string, error) {
	o := asObject(obj)
	if o == nil {
		return nil, fmt.Errorf("index function was given a %T", obj)
	}
	switch o.Annotations[badMark] {
	case script.BadIndex:
		return nil, errBad
	case script.BadIndexPanic:
		panic(errBad)
	}
	return groupsOf(o), nil
}

func groupsOf(o *Object) []string { return splitGroups(o.Labels[groupMark]) }

// splitGroups returns the values of a groupMark.
func splitGroups(label string) []string {
	if label == "" {
		return nil
	}
	return strings.Split(label, ".")
}

func objectOf(obj runtime.Object) *Object {
	o, _ := obj.(*Object)
	return o
}
