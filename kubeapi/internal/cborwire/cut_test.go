package cborwire

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// wanted are the fields that the tests request.
var wanted = &wire.Fields{Names: wiretest.NamesOf(
	[]string{"kind"}, []string{"metadata", "name"}, []string{"metadata", "annotations", "a/b"},
	[]string{"spec", "nodeName"}, []string{"status", "conditions", "type"}, []string{"a"}, []string{"b", "a"},
)}

func decodedCut(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	cut, err := Encoding.Cut([]byte("before"), raw, wanted, roomy)
	require.NoError(t, err)
	content, err := Encoding.Unstructured(cut[len("before"):], roomy)
	require.NoError(t, err)
	return content
}

func TestOnlyWantedFieldsAreLeftOfAMap(t *testing.T) {
	type object = map[string]any
	for name, test := range map[string]struct {
		raw  []byte
		want object
	}{
		"empty":            {mapping(), object{}},
		"of other fields":  {mapping("x", mapping("a", 1), "y", array(1)), object{}},
		"of both":          {mapping("x", 1, "a", 2, "b", mapping("x", 3, "a", 4)), object{"a": int64(2), "b": object{"a": int64(4)}}},
		"of no length":     {openMapping("b", openArray(openMapping("a", 1, "x", 2), 5), "x", openArray(1)), object{"b": []any{object{"a": int64(1)}, nil}}},
		"lists":            {mapping("b", array(mapping("x", 1), array(mapping("a", 2)), "s", array())), object{"b": []any{object{}, []any{object{"a": int64(2)}}, nil, []any{}}}},
		"neither":          {mapping("b", "text", "a", nil), object{"a": nil, "b": nil}},
		"self-described":   {tagged(tagSelfDescribed, mapping("b", tagged(tagSelfDescribed, mapping("a", 1)))), object{"b": object{"a": int64(1)}}},
		"tagged otherwise": {mapping("b", tagged(21, mapping("a", "x"))), object{"b": nil}},
		"text as names":    {join(head8(majorMap, 2), textString("a"), of(1), textString("x"), of(2)), object{"a": int64(1)}},
	} {
		require.Equal(t, test.want, decodedCut(t, test.raw), name)
	}
}

func TestAWholeObjectOfAServerIsCut(t *testing.T) {
	object := &carps(1).Items[0]
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Carp"}
	object.Annotations = map[string]string{"a/b": "c", "x": "y"}
	object.Status.Conditions = []carp.CarpCondition{{Type: "t", Message: "m"}, {Message: "n"}}
	cut, err := Encoding.Cut(nil, served(t, object), wanted, roomy)
	require.NoError(t, err)
	got := &carp.Carp{}
	require.NoError(t, Encoding.Into(cut, roomy, got))
	require.Equal(t, &carp.Carp{
		TypeMeta:   metav1.TypeMeta{Kind: "Carp"},
		ObjectMeta: metav1.ObjectMeta{Name: object.Name, Annotations: map[string]string{"a/b": "c"}},
		Spec:       carp.CarpSpec{NodeName: object.Spec.NodeName},
		Status:     carp.CarpStatus{Conditions: []carp.CarpCondition{{Type: "t"}, {}}},
	}, got)
}

func TestFaultsOnThePathOfACutAreErrors(t *testing.T) {
	whole := mapping("b", array(mapping("a", 1)), "x", array(1, 2), "a", "text")
	for end := range whole {
		_, err := Encoding.Cut(nil, whole[:end], wanted, roomy)
		require.ErrorIs(t, err, wire.ErrMalformed, end)
	}
	for name, raw := range map[string][]byte{
		"a list":                            array(1),
		"a number":                          of(1),
		"more behind it":                    append(mapping("a", 1), 0),
		"a name that is none":               mapping(5, 1),
		"a reserved head":                   mapping("b", []any{}, "a", 1)[:3],
		"a length of a map that nobody has": head8(majorMap, 1<<63),
		"a break in a map of two":           {majorMap<<5 | 1, 0xff},
		"no break":                          openMapping("a", 1)[:len(openMapping("a", 1))-1],
	} {
		_, err := Encoding.Cut(nil, raw, wanted, roomy)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
}

func TestACutDescendsNoDeeperThanTheLimitOnNesting(t *testing.T) {
	limits := roomy
	limits.Nesting = 10
	nested := func(name string, arrays int) []byte {
		return join(head8(majorMap, 1), of(name), bytes.Repeat([]byte{majorArray<<5 | 1}, arrays), of(0))
	}
	_, err := Encoding.Cut(nil, nested("b", 9), wanted, limits)
	require.NoError(t, err)
	_, err = Encoding.Cut(nil, nested("b", 10), wanted, limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: 10}, err)
	_, err = Encoding.Cut(nil, nested("x", 1000), wanted, limits)
	require.NoError(t, err, "what nobody wants may be as deep as it likes")
}

// FuzzCBORCut compares an object that is cut and then decoded with one that is decoded and then
// cut.
func FuzzCBORCut(f *testing.F) {
	object := &carps(1).Items[0]
	f.Add(served(f, object))
	f.Add(mapping("a", 1, "b", array(mapping("a", 1, "x", 2), "s", nil), "x", openArray(1)))
	f.Add(openMapping("b", openMapping("a", 1.5), "a", true))
	f.Add(tagged(tagSelfDescribed, mapping("b", tagged(21, mapping("a", 1)))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		cut, err := Encoding.Cut(nil, raw, wanted, roomy)
		require.Equal(t, before, string(raw))
		require.LessOrEqual(t, len(cut), 3*len(raw))
		whole, wholeErr := Encoding.Unstructured(raw, roomy)
		// apimachinery's decoder reads a null as an empty name.
		if wholeErr == nil && !errors.Is(err, errFieldNameType) {
			require.NoError(t, err)
		}
		if err != nil {
			return
		}
		got, gotErr := Encoding.Unstructured(cut, roomy)
		if wholeErr == nil && !mayHaveTags(raw) {
			require.NoError(t, gotErr)
			require.Equal(t, wiretest.Pruned(whole, wanted.Names), any(got))
		}
		if gotErr == nil && got != nil {
			require.Equal(t, wiretest.Pruned(got, wanted.Names), any(got), "something is left that nobody wants")
		}
	})
}

// mayHaveTags reports whether a byte may be the head of a tag that changes how the following value
// is read.
func mayHaveTags(raw []byte) bool {
	described := []byte{0xd9, 0xd9, 0xf7}
	return slices.ContainsFunc(bytes.ReplaceAll(raw, described, nil), func(b byte) bool { return b>>5 == majorTag })
}
