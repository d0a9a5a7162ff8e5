package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// older is true if both versions are numbers and a is the lower one, or if there
// is no a yet.
func older(a, b string) bool {
	if a == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// whatIsNew says in a few words how an object begins.
func whatIsNew(object *unstructured.Unstructured) string {
	phase, node := text(object, "status", "phase"), text(object, "spec", "nodeName")
	switch {
	case phase != "" && node != "":
		return phase + " on " + node
	case phase != "":
		return phase
	}
	return "new"
}

// whatChanged says in a few words how two states of an object differ: by what is
// known to matter to people, else by the first field that differs.
func whatChanged(before, now *unstructured.Unstructured) string {
	if was, is := text(before, "status", "phase"), text(now, "status", "phase"); was != is {
		return orNone(was) + " → " + orNone(is)
	}
	if before.GetDeletionTimestamp() == nil && now.GetDeletionTimestamp() != nil {
		return "being deleted"
	}
	if was, is := images(before), images(now); was != is {
		return "image " + was + " → " + is
	}
	if restarts(now) > restarts(before) {
		return fmt.Sprintf("crashed, restart %d", restarts(now))
	}
	if was, is := ready(before), ready(now); was != is {
		return "ready: " + was + " → " + is
	}
	differences := fieldsThatDiffer("", before.Object, now.Object)
	switch len(differences) {
	case 0:
		return "touched"
	case 1:
		return differences[0]
	}
	return fmt.Sprintf("%s +%d", differences[0], len(differences)-1)
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// images are the tags of a pod's images.
func images(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	var names []string
	for _, c := range containers {
		if container, ok := c.(map[string]any); ok {
			image, _ := container["image"].(string)
			names = append(names, image[strings.LastIndexAny(image, "/:")+1:])
		}
	}
	return strings.Join(names, " ")
}

// restarts is how often the containers of a pod were started again.
func restarts(pod *unstructured.Unstructured) int64 {
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	var sum int64
	for _, s := range statuses {
		if status, ok := s.(map[string]any); ok {
			count, _ := status["restartCount"].(int64)
			sum += count
		}
	}
	return sum
}

// ready is what the condition of that name says, empty if there is none.
func ready(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Ready" {
			said, _ := condition["status"].(string)
			return said
		}
	}
	return ""
}

// bookkeeping changes with every write and says nothing to people.
var bookkeeping = []string{"metadata.resourceVersion", "metadata.managedFields", "metadata.generation"}

// fieldsThatDiffer names the fields in which two objects differ, in order, with
// their values where those are short. A list counts as one field.
func fieldsThatDiffer(path string, before, now map[string]any) []string {
	names := slices.Collect(maps.Keys(now))
	for name := range before {
		if _, both := now[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var found []string
	for _, name := range names {
		at := strings.TrimPrefix(path+"."+name, ".")
		was, is := before[name], now[name]
		if slices.Contains(bookkeeping, at) || reflect.DeepEqual(was, is) {
			continue
		}
		wasMap, wasIsMap := was.(map[string]any)
		isMap, isIsMap := is.(map[string]any)
		switch {
		case wasIsMap && isIsMap:
			found = append(found, fieldsThatDiffer(at, wasMap, isMap)...)
		case isScalar(was) && isScalar(is):
			found = append(found, fmt.Sprintf("%s %v → %v", name, orNothing(was), orNothing(is)))
		default:
			found = append(found, at)
		}
	}
	return found
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func orNothing(value any) any {
	if value == nil {
		return "none"
	}
	return value
}
