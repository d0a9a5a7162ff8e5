package compat

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs compare these texts in their tests.
func TestErrorsOfKeysAndIndexesReadAsClientGos(t *testing.T) {
	refuses := func(any) ([]string, error) { return nil, errors.New("refused") }
	for name, fail := range map[string]func(t *testing.T, s side) error{
		"a key with two slashes":      func(_ *testing.T, s side) error { _, _, err := s.split("a/b/c"); return err },
		"a key with odd letters":      func(_ *testing.T, s side) error { _, _, err := s.split("a/\"b\"/\n"); return err },
		"a name with two slashes":     func(_ *testing.T, s side) error { _, _, _, err := s.parse("a/b/c"); return err },
		"a tombstone's bad key":       func(_ *testing.T, s side) error { _, err := s.tombstoneName("a/b/c"); return err },
		"the key of a string":         func(_ *testing.T, s side) error { _, err := s.keyOf("no metadata"); return err },
		"the key of a struct":         func(_ *testing.T, s side) error { _, err := s.keyOf(struct{ Name string }{"x"}); return err },
		"the key of nil":              func(_ *testing.T, s side) error { _, err := s.keyOf(nil); return err },
		"the name of a string":        func(_ *testing.T, s side) error { _, err := s.toName("no metadata"); return err },
		"the name of nil":             func(_ *testing.T, s side) error { _, err := s.toName(nil); return err },
		"the namespace of a string":   func(_ *testing.T, s side) error { _, err := s.namespaceFunc("no metadata"); return err },
		"the namespace of nil":        func(_ *testing.T, s side) error { _, err := s.namespaceFunc(nil); return err },
		"a key of no value":           func(_ *testing.T, s side) error { _, err := s.singleKey(); return err },
		"a key of two values":         func(_ *testing.T, s side) error { _, err := s.singleKey("a", "b"); return err },
		"ByIndex of an unknown index": func(_ *testing.T, s side) error { _, err := s.newIndexer(nil).ByIndex("none", "x"); return err },
		"Index of an unknown index":   func(_ *testing.T, s side) error { _, err := s.newIndexer(nil).Index("none", at("x", "")); return err },
		"IndexKeys of an unknown one": func(_ *testing.T, s side) error { _, err := s.newIndexer(nil).IndexKeys("none", "x"); return err },
		"IndexKeys of an unknown one, by keys": func(_ *testing.T, s side) error {
			_, err := s.newThreadSafe().IndexKeys("none", "x")
			return err
		},
		"Index with a function that fails": func(t *testing.T, s side) error {
			x := s.newIndexer(nil)
			require.NoError(t, s.addIndex(x, "refuses", refuses))
			_, err := x.Index("refuses", at("x", ""))
			return err
		},
		"one index that exists": func(_ *testing.T, s side) error { return s.addIndex(s.newIndexer(nil), "namespace", byLabel) },
		"several indexes, of which two exist": func(t *testing.T, s side) error {
			x := s.newIndexer(nil)
			require.NoError(t, s.addIndex(x, "letter", byLabel))
			return s.addIndexes(x, map[string]func(any) ([]string, error){"namespace": byLabel, "new": byLabel, "letter": byLabel})
		},
		"an index that exists, of a store of keys": func(t *testing.T, s side) error {
			x := s.newThreadSafe()
			require.NoError(t, s.addIndex(x, "letter", byLabel))
			return s.addIndex(x, "letter", byLabel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := fail(t, theirsSide)
			require.Error(t, want)
			require.EqualError(t, fail(t, oursSide), want.Error())
		})
	}
}
