package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

// comparison is what became of comparing the mirror with a list of its source.
type comparison struct {
	listed int
	// equal is how many objects have the same version and content.
	equal int
	// moved are the keys in which the mirror is ahead of the list, differ those in
	// which the two differ; each with what is the matter.
	moved, differ []string
}

// compare holds the objects of a list, which was made at a version, against the
// mirror's. deleted says whether a key is known to have been deleted later.
func compare(list []*unstructured.Unstructured, version string, m *mirror, deleted func(version, key string) bool) comparison {
	mirrored := maps.Collect(m.informer.All())
	c := comparison{listed: len(list)}
	for _, object := range list {
		key := keyOf(object)
		have, there := mirrored[key]
		delete(mirrored, key)
		switch {
		case !there && deleted(version, key):
			c.moved = append(c.moved, key+": deleted since")
		case !there:
			c.differ = append(c.differ, fmt.Sprintf("%s: not in the mirror, source has version %s", key, object.GetResourceVersion()))
		default:
			c.add(key, object, have)
		}
	}
	for key, object := range mirrored {
		if has := object.GetResourceVersion(); older(version, has) {
			c.moved = append(c.moved, key+": created since")
		} else {
			c.differ = append(c.differ, fmt.Sprintf("%s: version %s is in the mirror, not in the source", key, has))
		}
	}
	slices.Sort(c.differ)
	slices.Sort(c.moved)
	return c
}

// add compares two states of one object.
func (c *comparison) add(key string, listed, have *unstructured.Unstructured) {
	is, has := listed.GetResourceVersion(), have.GetResourceVersion()
	switch {
	case is == has && equality.Semantic.DeepEqual(listed.Object, have.Object):
		c.equal++
	case is == has:
		c.differ = append(c.differ, fmt.Sprintf("%s: other content at the same version %s: %s",
			key, is, strings.Join(fieldsThatDiffer("", listed.Object, have.Object), ", ")))
	case older(is, has):
		c.moved = append(c.moved, fmt.Sprintf("%s: changed since", key))
	default:
		c.differ = append(c.differ, fmt.Sprintf("%s: version %s in the mirror, %s in the source", key, has, is))
	}
}

// checkedIndexes are those of the mirror, with the one that it has besides.
func checkedIndexes() cache.TypedIndexers[*unstructured.Unstructured] {
	checked := maps.Clone(indexes)
	checked[cache.NamespaceIndex] = func(object *unstructured.Unstructured) ([]string, error) {
		return []string{object.GetNamespace()}, nil
	}
	return checked
}

// indexDifferences holds one index of the mirror against what its function says
// of the objects, value by value and key by key. It also returns how many values
// there are.
func indexDifferences(objects []*unstructured.Unstructured, m *mirror, name string) (values int, differ []string) {
	wanted, err := expectedIndex(objects, checkedIndexes()[name])
	if err != nil {
		return 0, []string{fmt.Sprintf("index %s: %v", name, err)}
	}
	found, err := m.informer.IndexValues(name)
	if err != nil {
		return 0, []string{err.Error()}
	}
	for _, value := range found {
		if _, ok := wanted[value]; !ok {
			differ = append(differ, fmt.Sprintf("index %s: no object has the value %q", name, value))
		}
	}
	for value, keys := range wanted {
		have := m.keysByIndex(name, value)
		slices.Sort(keys)
		if !slices.Equal(keys, have) {
			differ = append(differ, fmt.Sprintf("index %s: value %q has keys %q, want %q", name, value, have, keys))
		}
	}
	slices.Sort(differ)
	return len(wanted), differ
}

// keysByIndex are the keys that have a value in an index, in order.
func (m *mirror) keysByIndex(name, value string) []string {
	keys := []string{}
	if all, err := m.informer.AllByIndex(name, value); err == nil { // else there is no such index
		for key := range all {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// expectedIndex is the index that the objects should make: keys by value.
func expectedIndex(objects []*unstructured.Unstructured, index cache.TypedIndexFunc[*unstructured.Unstructured]) (map[string][]string, error) {
	keys := map[string][]string{}
	for _, object := range objects {
		values, err := index(object)
		if err != nil {
			return nil, fmt.Errorf("of %q: %w", keyOf(object), err)
		}
		for _, value := range values {
			keys[value] = append(keys[value], keyOf(object))
		}
	}
	return keys, nil
}

// objectsLine says how many objects were equal.
func (c comparison) objectsLine() string {
	return fmt.Sprintf("          %s %6d of %-6d same key, version and content", fit("objects", 16), c.equal, c.listed)
}

// checkIndexes compares all indexes and prints a line for each.
func checkIndexes(show *display, objects []*unstructured.Unstructured, m *mirror) (differ []string) {
	for _, name := range slices.Sorted(maps.Keys(checkedIndexes())) {
		values, found := indexDifferences(objects, m, name)
		differ = append(differ, found...)
		verdict := "every value has the same keys"
		if len(found) > 0 {
			verdict = fmt.Sprintf("%d values differ", len(found))
		}
		show.text(fmt.Sprintf("          %s %6d values    %s", fit("index "+name, 16), values, verdict))
	}
	return differ
}

// equalLine ends a show that went well, with how many objects the mirror has.
func equalLine(show *display, objects int, version, more string) {
	show.text("", show.paint(green, "✓")+" "+
		show.paint(bold, fmt.Sprintf("mirror equals the source: %d objects, version %s", objects, version)+more))
}

// errorOf names what differs, nil if nothing does.
func errorOf(differ []string) error {
	const named = 10
	if len(differ) == 0 {
		return nil
	}
	lines := differ[:min(named, len(differ))]
	if more := len(differ) - len(lines); more > 0 {
		lines = append(slices.Clone(lines), fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("mirror and source differ:\n  %s", strings.Join(lines, "\n  "))
}
