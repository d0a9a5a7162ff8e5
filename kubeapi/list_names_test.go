package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// A damaged byte in the name of one of a list's fields would make a full list empty, or remove its
// version and token. Fails if such a name is skipped as unknown.
func TestAListWhoseFieldNamesCannotBeReadIsMalformed(t *testing.T) {
	for name, test := range map[string]struct{ body, text string }{
		"control character in items": {
			"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"ite\x01ms\":[{}]}",
			"ite ms",
		},
		"control character in metadata": {
			"{\"kind\":\"PodList\",\"meta\x02data\":{\"resourceVersion\":\"7\"},\"items\":[{}]}",
			"meta data",
		},
		"line break": {"{\"kind\":\"PodList\",\"ite\nms\":[{}]}", "ite ms"},
		"no UTF-8": {
			"{\"kind\":\"PodList\",\"ite\xedms\":[{}]}", "ite\uFFFDms",
		},
		"no UTF-8 in metadata": {
			"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersi\xefn\":\"7\"},\"items\":[]}",
			"metadata",
		},
		"no UTF-8 in a token": {
			"{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"a\xef\"},\"items\":[]}", "metadata",
		},
		"no escape":      {`{"kind":"PodList","ite\qms":[{}]}`, `ite\qms`},
		"half an escape": {`{"kind":"PodList","ite\u00ms":[{}]}`, `ite\u00ms`},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := newSource(t, respondWith(200, test.body)).List(metav1.ListOptions{})
			require.Nil(t, list)
			require.ErrorIs(t, err, ErrMalformed)
			require.ErrorContains(t, err, test.text)
		})
	}
	list := listed(t, `{"kind":"PodList","\u0069tems":[{}],"neu\u00e9\n":1,"meta\/":2,"ü😀":3}`)
	require.Len(t, list.Items, 1, "names that are JSON are read, whether they are known or not")
}

func TestACBORListWhoseFieldNamesCannotBeReadIsMalformed(t *testing.T) {
	list := func(items string) []byte {
		body, err := direct.Marshal(
			map[string]any{"kind": "PodList", items: []any{map[string]any{}}})
		require.NoError(t, err)
		return body
	}
	for what, body := range map[string][]byte{"byte string": list("ite\xedms")} {
		t.Run(what, func(t *testing.T) {
			source := newSourceOf(
				t, respondWith(200, string(body), "Content-Type", "application/cbor"),
				Options{Encodings: []Encoding{CBOR}})
			_, err := source.List(metav1.ListOptions{})
			require.ErrorIs(t, err, ErrMalformed)
			require.ErrorContains(t, err, "ite\uFFFDms")
		})
	}
}
