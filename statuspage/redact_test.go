package statuspage

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Secret is like the Go type of the Kubernetes API: its objects have no kind.
type Secret struct {
	Data map[string][]byte `json:"data"`
	Type string            `json:"type"`
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("data of the object") }

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("data of the object") }

func shown(t *testing.T, object any, pointers ...string) string {
	text, err := objectJSON(object, pointers)
	require.NoError(t, err)
	return string(text)
}

// Fails if the content of a Secret is shown, whatever the type of the cached object.
func TestTheContentOfSecretsIsRedacted(t *testing.T) {
	assert.JSONEq(t, `{"data":"(redacted)","type":"Opaque"}`, shown(t, &Secret{Data: map[string][]byte{"password": []byte("x")}, Type: "Opaque"}))
	for _, kind := range []string{"Secret", "SopsSecret", "secretcopy"} {
		object := map[string]any{"kind": kind, "data": map[string]any{"a": "x"}, "stringData": map[string]any{"b": "y"}, "type": "Opaque"}
		want := `{"kind":"` + kind + `","data":"(redacted)","stringData":"(redacted)","type":"Opaque"}`
		assert.JSONEq(t, want, shown(t, object))
	}
	assert.JSONEq(t, `{"kind":"ConfigMap","data":{"a":"x"}}`, shown(t, map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "x"}}))
	assert.JSONEq(t,
		`{"kind":"PartialObjectMetadata","metadata":{"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"(redacted)"}}}`,
		shown(t, map[string]any{"kind": "PartialObjectMetadata", "metadata": map[string]any{"annotations": map[string]any{
			"a": "b", "kubectl.kubernetes.io/last-applied-configuration": `{"data":{"a":"x"}}`,
		}}}))
}

func TestFieldsAreRedactedByPointers(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{"a": map[string]any{"b/c": 1, "d~e": 2}, "list": []any{map[string]any{"x": 1, "y": 2}, map[string]any{"x": 3}}}
	}
	for pointer, want := range map[string]string{
		"/a":         `{"a":"(redacted)","list":[{"x":1,"y":2},{"x":3}]}`,
		"a":          `{"a":"(redacted)","list":[{"x":1,"y":2},{"x":3}]}`,
		"/a/b~1c":    `{"a":{"b/c":"(redacted)","d~e":2},"list":[{"x":1,"y":2},{"x":3}]}`,
		"/a/d~0e":    `{"a":{"b/c":1,"d~e":"(redacted)"},"list":[{"x":1,"y":2},{"x":3}]}`,
		"/list/*/x":  `{"a":{"b/c":1,"d~e":2},"list":[{"x":"(redacted)","y":2},{"x":"(redacted)"}]}`,
		"/list/1/x":  `{"a":{"b/c":1,"d~e":2},"list":[{"x":1,"y":2},{"x":"(redacted)"}]}`,
		"/*":         `{"a":"(redacted)","list":"(redacted)"}`,
		"/":          `"(redacted)"`,
		"":           `"(redacted)"`,
		"/none/of/x": `{"a":{"b/c":1,"d~e":2},"list":[{"x":1,"y":2},{"x":3}]}`,
		"/a/b~1c/x":  `{"a":{"b/c":1,"d~e":2},"list":[{"x":1,"y":2},{"x":3}]}`,
	} {
		assert.JSONEq(t, want, shown(t, object(), pointer), pointer)
	}
	original := object()
	shown(t, original, "/a", "/list/*")
	assert.Equal(t, object(), original, "the stored object was changed")
}

// Fails if an error has a part of the object, or if a panic of the object's code ends the request.
func TestAnObjectWithoutAJSONFormIsAnErrorThatDoesNotShowIt(t *testing.T) {
	for _, object := range []any{panicking{}, failing{}, map[string]any{"a": make(chan int)}} {
		_, err := objectJSON(object, nil)
		require.EqualError(t, err, "the object cannot be shown as JSON")
	}
	assert.Equal(t, "12345678901234567890", shown(t, json.Number("12345678901234567890")), "a long number must keep its digits")
}
