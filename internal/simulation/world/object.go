package world

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	// TransformedMark counts the transforms of an object.
	TransformedMark = "transformed"
	// BadMark names the function that fails for the object.
	BadMark = "bad"
	// UnwantedMark makes the transform return nil.
	UnwantedMark = "unwanted"
	// decodeMark is a label that the network damages, so that the object cannot be decoded.
	decodeMark = "undecodable"
	// GroupMark is the label that objects are indexed by: any number of values, joined
	// by dots.
	GroupMark = "group"
)

func newObject(key string) *Object {
	namespace, name := script.SplitKey(key)
	return &Object{
		TypeMeta:   metav1.TypeMeta{APIVersion: objectKind.GroupVersion().String(), Kind: objectKind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// KeyOf returns the key of an object.
func KeyOf(o *Object) string { return o.Namespace + "/" + o.Name }

// SerialOf returns the number of the write that produced a state.
func SerialOf(o *Object) int { return numberIn(o, serialMark) }

// ReceiptOf returns the number that an object has among those sent to one mirror.
func ReceiptOf(o *Object) int { return numberIn(o, receiptMark) }

func numberIn(o *Object, mark string) int {
	n, _ := strconv.Atoi(o.Annotations[mark])
	return n
}

// SetMark sets an annotation.
func SetMark(o *Object, mark, value string) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[mark] = value
}

// GroupsOf returns the values of the index for an object.
func GroupsOf(o *Object) []string { return SplitGroups(o.Labels[GroupMark]) }

// SplitGroups returns the values of a GroupMark.
func SplitGroups(label string) []string {
	if label == "" {
		return nil
	}
	return strings.Split(label, ".")
}

func objectOf(obj runtime.Object) *Object {
	o, _ := obj.(*Object)
	return o
}
