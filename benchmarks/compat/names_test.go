package compat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// keyed is what a function made of its input.
type keyed struct {
	text   string
	failed bool
}

func keyedBy(text string, err error) keyed {
	if err != nil {
		return keyed{failed: true}
	}
	return keyed{text: text}
}

func TestKeysAndNamesAreThoseOfClientGo(t *testing.T) {
	cases := []struct {
		name string
		call func(side) keyed
		want keyed
	}{
		{"key with a namespace", func(s side) keyed { return keyedBy(s.keyOf(at("x", ""))) }, keyed{text: "ns/x"}},
		{"key without one", func(s side) keyed { return keyedBy(s.keyOf(in("", at("x", "")))) }, keyed{text: "x"}},
		{"key of what has no metadata", func(s side) keyed { return keyedBy(s.keyOf("x")) }, keyed{failed: true}},
		{"key of nil", func(s side) keyed { return keyedBy(s.keyOf(nil)) }, keyed{failed: true}},
		{"explicit key", func(s side) keyed { return keyedBy(s.explicitKey("a/b/c")) }, keyed{text: "a/b/c"}},
		{"key of a tombstone", func(s side) keyed { return keyedBy(s.tombstoneKey("ns/deleted")) }, keyed{text: "ns/deleted"}},
		{"name with a namespace", func(s side) keyed { return keyedBy(s.toName(at("x", ""))) }, keyed{text: "ns/x"}},
		{"name of what has no metadata", func(s side) keyed { return keyedBy(s.toName(struct{}{})) }, keyed{failed: true}},
		{"joined", func(s side) keyed { return keyed{text: s.join("ns", "x")} }, keyed{text: "ns/x"}},
		{"joined without a namespace", func(s side) keyed { return keyed{text: s.join("", "x")} }, keyed{text: "x"}},
		{"one index value as key", func(s side) keyed { return keyedBy(s.singleKey("a")) }, keyed{text: "a"}},
		{"two index values as key", func(s side) keyed { return keyedBy(s.singleKey("a", "b")) }, keyed{failed: true}},
		{"no index value as key", func(s side) keyed { return keyedBy(s.singleKey()) }, keyed{failed: true}},
	}
	for _, tc := range cases {
		for _, s := range sides {
			t.Run(tc.name+"/"+s.name, func(t *testing.T) { require.Equal(t, tc.want, tc.call(s)) })
		}
	}
}

func TestSplittingAndParsingAreThoseOfClientGo(t *testing.T) {
	cases := []struct {
		key, namespace, name, text string
		failed                     bool
	}{
		{key: "ns/x", namespace: "ns", name: "x", text: "ns/x"},
		{key: "x", name: "x", text: "x"},
		{key: "", text: ""},
		{key: "/x", name: "x", text: "x"},
		{key: "ns/", namespace: "ns", text: "ns/"},
		{key: "a/b/c", failed: true},
	}
	for _, tc := range cases {
		for _, s := range sides {
			t.Run(tc.key+"/"+s.name, func(t *testing.T) {
				namespace, name, err := s.split(tc.key)
				require.Equal(t, tc.failed, err != nil)
				require.Equal(t, [2]string{tc.namespace, tc.name}, [2]string{namespace, name})
				text, namespace, name, err := s.parse(tc.key)
				require.Equal(t, tc.failed, err != nil)
				require.Equal(t, [3]string{tc.text, tc.namespace, tc.name}, [3]string{text, namespace, name})
			})
		}
	}
}

func TestTheNamespaceIndexIsClientGos(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			values, err := s.namespaceFunc(at("x", ""))
			require.NoError(t, err)
			require.Equal(t, []string{"ns"}, values)
			values, err = s.namespaceFunc(in("", at("x", "")))
			require.NoError(t, err)
			require.Equal(t, []string{""}, values)
			_, err = s.namespaceFunc("x")
			require.Error(t, err)
		})
	}
}
