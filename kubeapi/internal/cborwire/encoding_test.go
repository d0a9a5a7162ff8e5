package cborwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// custom is a type like those of custom resources.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec  runtime.RawExtension `json:"spec"`
	Inner *ownJSON             `json:"inner,omitempty"`
}

func (c *custom) DeepCopyObject() runtime.Object { return nil }

// ownJSON decodes itself, by the function that was set last.
type ownJSON struct{}

var unmarshalOwn func([]byte) error

func (*ownJSON) UnmarshalJSON(data []byte) error { return unmarshalOwn(data) }

func TestObjectsAreDecodedAsApimachineryDoes(t *testing.T) {
	object := &carps(1).Items[0]
	object.TypeMeta = metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "Carp"}
	data := served(t, object)

	want := &carp.Carp{}
	_, _, err := theirs(t).Decode(data, nil, want)
	require.NoError(t, err)
	got := &carp.Carp{}
	require.NoError(t, Encoding.Into(data, roomy, got))
	require.Equal(t, want, got)
	require.Equal(t, object, got)

	into := &unstructured.Unstructured{}
	_, _, err = theirs(t).Decode(data, nil, into)
	require.NoError(t, err)
	content, err := Encoding.Unstructured(data, roomy)
	require.NoError(t, err)
	require.Equal(t, into.Object, content)

	again := &unstructured.Unstructured{}
	require.NoError(t, Encoding.Into(data, roomy, again))
	require.Equal(t, into, again)
}

func TestRawJSONInsideOfTypesIsJSON(t *testing.T) {
	data := mapping("kind", "Custom", "unknown", 1, "spec", map[string]any{"a": []any{int64(1), "x"}},
		"metadata", map[string]any{"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:a": map[string]any{}}}}})
	object := &custom{}
	require.NoError(t, Encoding.Into(data, roomy, object))
	require.Equal(t, "Custom", object.Kind)
	require.JSONEq(t, `{"a":[1,"x"]}`, string(object.Spec.Raw))
	require.JSONEq(t, `{"f:a":{}}`, object.ManagedFields[0].FieldsV1.GetRawString())
}

func TestObjectsNeedNotSayWhatTheyAre(t *testing.T) {
	for _, data := range [][]byte{
		mapping("metadata", map[string]any{"name": "n"}),
		mapping("metadata", map[string]any{"name": "n"}, "kind", nil, "apiVersion", nil),
		mapping("metadata", map[string]any{"name": "n"}, "unknown", 5),
	} {
		object := &carp.Carp{}
		require.NoError(t, Encoding.Into(data, roomy, object))
		require.Equal(t, &carp.Carp{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, object)
		into := &unstructured.Unstructured{}
		require.NoError(t, Encoding.Into(data, roomy, into))
		require.Equal(t, "n", into.GetName())
	}
	object := &carp.Carp{}
	require.NoError(t, Encoding.Into(mapping("apiVersion", "other/v1", "kind", "Other"), roomy, object))
	require.Equal(t, metav1.TypeMeta{APIVersion: "other/v1", Kind: "Other"}, object.TypeMeta, "it is for the caller to refuse")
}

func TestDecodedObjectsDoNotReferToTheirBytes(t *testing.T) {
	object := widget(strings.Repeat("n", 100))
	data := served(t, &object)
	got, err := Encoding.Unstructured(data, roomy)
	require.NoError(t, err)
	typed := &custom{}
	require.NoError(t, Encoding.Into(data, roomy, typed))
	spec := string(typed.Spec.Raw)
	id := Encoding.Identify(data)
	for i := range data {
		data[i] = 'z'
	}
	require.Equal(t, object.Object, got)
	require.Equal(t, object.GetName(), typed.Name)
	require.Equal(t, spec, string(typed.Spec.Raw))
	require.Equal(t, object.GetName(), id.Name)
}

func TestMalformedObjectsAreRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing":              nil,
		"null":                 of(nil),
		"a tagged null":        tagged(55799, of(nil)),
		"a string":             of("x"),
		"an array":             array(),
		"a tag alone":          {0xd9, 0xd9, 0xf7},
		"an object with a tag": tagged(22, mapping()),
		"cut off":              mapping("metadata", map[string]any{})[:15],
		"more behind it":       append(mapping(), 0),
		"a field twice":        mapping("kind", "A", "kind", "A"),
		"bad text":             mapping("kind", raw(textString("\xff"))),
		"half a field":         join([]byte{0xbf}, of("kind"), []byte{0xff}),
		"a float that is none": mapping("kind", raw{0xf9, 0x7e, 0}),
		"too large a number":   mapping("kind", raw(head8(0, 1<<63))),
		"a reserved form":      mapping("kind", raw{0x1c}),
	} {
		_, err := Encoding.Unstructured(data, roomy)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		require.ErrorIs(t, Encoding.Into(data, roomy, &carp.Carp{}), wire.ErrMalformed, name)
		require.ErrorIs(t, Encoding.Into(data, roomy, &unstructured.Unstructured{}), wire.ErrMalformed, name)
	}
	_, err := Encoding.Unstructured(mapping(5, 5), roomy)
	require.ErrorIs(t, err, wire.ErrMalformed, "a field name that is no string")
	wrong := mapping("metadata", map[string]any{"name": 5})
	require.ErrorIs(t, Encoding.Into(wrong, roomy, &carp.Carp{}), wire.ErrMalformed)
}

func TestObjectsUpToTheNestingLimitPass(t *testing.T) {
	limits := roomy
	limits.Nesting = 10
	for _, deep := range []func(int) []byte{
		nested,
		func(levels int) []byte { return mapping("a", raw(strings.Repeat("\x81", levels-2)), []any{}) },
		func(levels int) []byte {
			return tagged(55799, mapping("a", raw(strings.Repeat("\x9f", levels-1)+strings.Repeat("\xff", levels-1))))
		},
	} {
		_, err := Encoding.Unstructured(deep(10), limits)
		require.NoError(t, err)
		require.NoError(t, Encoding.Into(deep(10), limits, &carp.Carp{}))
		want := &wire.LimitError{What: wire.LimitNesting, Limit: 10}
		_, err = Encoding.Unstructured(deep(11), limits)
		require.Equal(t, want, err)
		require.Equal(t, want, Encoding.Into(deep(11), limits, &carp.Carp{}))
	}
	limits.Nesting = 1 << 30
	_, err := Encoding.Unstructured(nested(maxLevels), limits)
	require.NoError(t, err)
	_, err = Encoding.Unstructured(nested(maxLevels+1), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: maxLevels}, err)
}

func TestErrorsOfTypesThatDecodeThemselves(t *testing.T) {
	data := mapping("inner", map[string]any{"a": "b"})

	var saw []byte
	unmarshalOwn = func(data []byte) error { saw = bytes.Clone(data); return nil }
	require.NoError(t, Encoding.Into(data, roomy, &custom{}))
	require.True(t, json.Valid(saw))

	cause := errors.New(strings.Repeat("loud\n\x1b", 10_000))
	unmarshalOwn = func([]byte) error { return cause }
	err := Encoding.Into(data, roomy, &custom{})
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.NotErrorIs(t, err, cause, "which may hold the object")
	require.Less(t, len(err.Error()), 1000)
	require.NotContains(t, err.Error(), "\x1b")

	unmarshalOwn = func([]byte) error { panic(cause) }
	err = Encoding.Into(data, roomy, &custom{})
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, "panicked: loud")
	require.Less(t, len(err.Error()), 1000)
}

func TestBrokenObjectsAreIdentifiedAsFarAsTheyCanBeRead(t *testing.T) {
	metadata := map[string]any{"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7", "x": []any{"y"}}
	id := wire.Identity{
		TypeMeta:  metav1.TypeMeta{APIVersion: "v1", Kind: "Widget"},
		Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7",
	}
	whole := []any{"spec", raw(nested(2000)), "metadata", metadata, "kind", "Widget", "apiVersion", "v1"}
	for name, c := range map[string]struct {
		data []byte
		want wire.Identity
	}{
		"nothing":                         {nil, wire.Identity{}},
		"no map":                          {array(whole...), wire.Identity{}},
		"a whole object":                  {mapping(whole...), id},
		"with tags":                       {tagged(55799, mapping(whole...)), id},
		"of indefinite length":            {openMapping(whole...), id},
		"with a field twice":              {mapping(append([]any{"a", 1, "a", 2}, whole...)...), id},
		"with bad text before":            {mapping(append([]any{"a", raw(textString("\xff"))}, whole...)...), id},
		"cut off behind":                  {openMapping(append(whole, "x", "y")...)[:len(openMapping(whole...))+2], id},
		"broken before":                   {mapping(append([]any{"a", raw{0x1c}}, whole...)...), wire.Identity{}},
		"metadata of another type":        {mapping("metadata", "n", "kind", "Widget"), wire.Identity{TypeMeta: metav1.TypeMeta{Kind: "Widget"}}},
		"a name of another type":          {mapping("metadata", map[string]any{"name": 5, "namespace": "ns"}), wire.Identity{Namespace: "ns"}},
		"a name too long":                 {mapping("metadata", map[string]any{"name": strings.Repeat("n", wire.MaxName+1), "namespace": "ns"}), wire.Identity{Namespace: "ns"}},
		"a namespace of another type":     {mapping("metadata", map[string]any{"name": "n", "namespace": 5}), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace too long":            {mapping("metadata", map[string]any{"name": "n", "namespace": strings.Repeat("n", wire.MaxName+1)}), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace of bad text":         {mapping("metadata", raw(mapping("name", "n", "namespace", raw(textString("\xff"))))), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace that is null":        {mapping("metadata", map[string]any{"name": "n", "namespace": nil}), wire.Identity{Name: "n"}},
		"a namespace that is empty":       {mapping("metadata", map[string]any{"name": "n", "namespace": ""}), wire.Identity{Name: "n"}},
		"metadata with half a field":      {openMapping("metadata", raw(join([]byte{0xbf}, of("name"), of("n"), of("uid"), []byte{0xff})), "kind", "Widget"), wire.Identity{TypeMeta: metav1.TypeMeta{Kind: "Widget"}, Name: "n"}},
		"a field name of 5 in metadata":   {mapping("metadata", raw(mapping("name", "n", 5, 5)), "kind", "Widget"), wire.Identity{TypeMeta: metav1.TypeMeta{Kind: "Widget"}, Name: "n"}},
		"a field name of 5 in the object": {mapping("kind", "Widget", 5, 5, "apiVersion", "v1"), wire.Identity{TypeMeta: metav1.TypeMeta{Kind: "Widget"}}},
	} {
		require.Equal(t, c.want, Encoding.Identify(c.data), name)
	}
	longest := strings.Repeat("n", wire.MaxName)
	require.Equal(t, longest, Encoding.Identify(mapping("metadata", map[string]any{"name": longest})).Name)
}
