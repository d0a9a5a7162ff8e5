package calls

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type object = metav1.PartialObjectMetadata

const (
	ownerAnnotation = "owner"
	tierLabel       = "tier"
	perNamespace    = 1000
	perTier         = 10_000
	perOwner        = 10
)

// newObject returns object i with a name of so many bytes, as it is at a version. It shares no
// string with another object or state, as nothing that a decoder makes does.
func newObject(i, nameLength, version int) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		Namespace:       namespaceOf(i),
		Name:            nameOf(i, nameLength),
		UID:             types.UID(fmt.Sprintf("0b5c7a52-60a3-4a5e-9d4b-%012d", i)),
		ResourceVersion: strconv.Itoa(version),
		Labels:          map[string]string{tierLabel: tierOf(i)},
		Annotations:     map[string]string{ownerAnnotation: ownerOf(i)},
	}}
}

func namespaceOf(i int) string { return fmt.Sprintf("space-%03d", i/perNamespace) }

func tierOf(i int) string { return fmt.Sprintf("tier-%03d", i/perTier) }

func ownerOf(i int) string { return fmt.Sprintf("owner-%06d", i/perOwner) }

// nameOf returns a name like those of pods: most of it is the same for many objects.
func nameOf(i, length int) string {
	const prefix = "deployment-of-a-rather-long-name-7d9c8b6f5-"
	number := fmt.Sprintf("%06d", i)
	return prefix[:length-len(number)] + number
}

// nameLength makes keys of 38 bytes.
const nameLength = 28

func keyOf(o *object) string { return o.Namespace + "/" + o.Name }

// newObjects returns so many objects. Their versions begin after a number.
func newObjects(count, nameLength, after int) []*object {
	all := make([]*object, count)
	for i := range all {
		all[i] = newObject(i, nameLength, after+i+1)
	}
	return all
}

// laterStates returns the next states of objects. As in most programs that measure a store, and
// unlike objects that were just decoded, they share all strings but the version.
func laterStates(of []*object, round int) []*object {
	later := make([]*object, len(of))
	for i, o := range of {
		next := *o
		next.ResourceVersion = strconv.Itoa(round*len(of) + i + 1)
		later[i] = &next
	}
	return later
}

func asList(objects []*object) []any {
	list := make([]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	return list
}

// shuffled returns the numbers up to n in an order that is the same in every run.
func shuffled(n int) []int { return rand.New(rand.NewPCG(1, 2)).Perm(n) }

// indexFunctions are those of the indexes, in the order in which they are added.
var indexFunctions = []indexFunction{
	func(obj any) ([]string, error) { return []string{obj.(*object).Namespace}, nil },
	func(obj any) ([]string, error) { return []string{obj.(*object).Labels[tierLabel]}, nil },
	func(obj any) ([]string, error) { return []string{obj.(*object).Annotations[ownerAnnotation]}, nil },
}

// finalizers is an index function with any number of values.
func finalizers(obj any) ([]string, error) { return obj.(*object).Finalizers, nil }
