package cache

import (
	"strings"
	"testing"
)

// FuzzKeys holds keys and names against each other: what one makes the other
// takes apart, and nothing panics.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"shop", "prices"}, {"", "node"}, {"shop", ""}, {"a/b", "c"}, {"a", "b/c"}, {"/", "/"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		whole := NewObjectName(namespace, name)
		parsed, err := ParseObjectName(whole.String())
		slashes := strings.Count(whole.String(), "/")
		if (err != nil) != (slashes > 1) {
			t.Fatalf("%q: %v", whole, err)
		}
		if !strings.Contains(namespace+name, "/") && parsed != whole {
			t.Fatalf("%#v became %#v", whole, parsed)
		}
		if key, err := MetaNamespaceKeyFunc(pod(namespace, name)); err != nil || key != whole.String() {
			t.Fatalf("key %q, %v; name %q", key, err, whole)
		}

		// The other way round: any string as a key.
		namespacePart, namePart, err := SplitMetaNamespaceKey(name)
		if err != nil {
			return
		}
		back := NewObjectName(namespacePart, namePart).String()
		if back != name && "/"+back != name {
			t.Fatalf("%q became %q", name, back)
		}
		if key, err := MetaNamespaceKeyFunc(ExplicitKey(name)); err != nil || key != name {
			t.Fatalf("explicit key %q became %q, %v", name, key, err)
		}
	})
}
