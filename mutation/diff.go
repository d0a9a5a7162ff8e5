package mutation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// change is a path in the JSON form of an object and the kind of change there. The path of the
// object itself is ".".
type change struct{ Path, Kind string }

func (c change) String() string { return c.Path + " " + c.Kind }

// Kinds of changes. Added: the value was null or absent before. Removed: it is null or absent now.
const (
	changed = "changed"
	added   = "added"
	removed = "removed"
)

// absent is the value of a missing field.
type absent struct{}

// differences returns the differences of two JSON values, sorted by path.
func differences(was, is any) []change {
	changes := diff("", was, is)
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

func diff(path string, was, is any) (changes []change) {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	oldMap, wasMap := was.(map[string]any)
	newMap, isMap := is.(map[string]any)
	oldList, wasList := was.([]any)
	newList, isList := is.([]any)
	switch {
	case wasMap && isMap && len(oldMap)+len(newMap) > 0:
		for key := range sets.KeySet(oldMap).Union(sets.KeySet(newMap)) {
			changes = append(
				changes,
				diff(path+step(key), field(oldMap, key), field(newMap, key))...)
		}
		return changes
	case wasList && isList && len(oldList)+len(newList) > 0:
		// By position: after a removal all later elements differ.
		for i := range max(len(oldList), len(newList)) {
			changes = append(
				changes,
				diff(fmt.Sprintf("%s[%d]", path, i), element(oldList, i), element(newList, i))...)
		}
		return changes
	}
	kind := changed
	switch {
	case was == absent{} || was == nil && is != absent{}:
		kind = added
	case is == absent{} || is == nil:
		kind = removed
	}
	return []change{{cmp.Or(strings.TrimPrefix(path, "."), "."), kind}}
}

func field(of map[string]any, key string) any {
	if value, exists := of[key]; exists {
		return value
	}
	return absent{}
}

func element(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// longestKey bounds a field name in a path, in bytes: the longest label key is a prefix of 253, a
// slash and a name of 63.
const longestKey = 253 + 1 + 63

// step returns the part of a path for a field name.
func step(name string) string {
	switch {
	case len(name) > longestKey:
		name = strings.ToValidUTF8(name[:longestKey], "") + "…"
	case name != "" && !strings.ContainsAny(name, "./\"[]"):
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
