package kubeapi

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Fails if adding to such a limit, or doubling it, overflows.
func TestLimitsMayBeAsLargeAsNumbersAre(t *testing.T) {
	inCBOR, err := direct.Marshal(
		map[string]any{"kind": "PodList", "items": []any{map[string]any{}, map[string]any{}}})
	require.NoError(t, err)
	inProtobuf := protobufOf(
		t, &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 2)},
		"meta.k8s.io/v1", "PartialObjectMetadataList")
	for _, limit := range []int{math.MaxInt, math.MaxInt - 1, math.MaxInt/2 + 1, math.MaxInt / 2} {
		limits := Limits{ItemBytes: limit, TokenBytes: limit, ErrorBytes: limit, Objects: limit}
		for encoding, body := range map[Encoding]string{
			JSON: podList(podJSON("a", 1), podJSON("b", 2)), CBOR: string(inCBOR),
			Protobuf: string(inProtobuf),
		} {
			options := Options{
				Limits:     limits,
				ObjectType: &metav1.PartialObjectMetadata{},
				Encodings:  []Encoding{encoding},
			}
			items := 0
			_, err := newSourceOf(
				t, respondWith(200, body, "Content-Type", string(encoding)), options).ListItems(
				t.Context(), metav1.ListOptions{},
				func(metav1.ListMeta, k8sruntime.Object) error { items++; return nil })
			require.NoError(t, err, "%s, %d", encoding, limit)
			require.Equal(t, 2, items)
		}
		source := newSourceOf(
			t, respondWith(200, frameJSON("ADDED", podJSON("a", 1))), Options{Limits: limits})
		w, err := source.Watch(metav1.ListOptions{})
		require.NoError(t, err)
		require.EqualValues(t, "ADDED", (<-w.ResultChan()).Type)
		w.Stop()
		_, err = newSourceOf(
			t, respondWith(403, statusJSON("403", "Forbidden", "")), Options{Limits: limits}).List(
			metav1.ListOptions{})
		require.ErrorContains(t, err, "said so")
	}
}

func TestAStatusWithoutAMessageIsNoEmptyError(t *testing.T) {
	for name, test := range map[string]struct {
		code        int
		status      string
		text, frame string
	}{
		"reason and code": {
			403, `"reason":"Forbidden","code":403`, "403 Forbidden", "403 Forbidden",
		},
		"other reason": {
			410, `"reason":"Expired","code":410`, "410 Gone: Expired", "410 Gone: Expired",
		},
		"code": {
			503, `"code":503`, "503 Service Unavailable", "503 Service Unavailable",
		},
		"unknown code": {599, `"code":599`, "code 599", "code 599"},
		"reason":       {403, `"reason":"Odd"`, "403 Forbidden: Odd", "Odd"},
		"nothing": {
			500, `"details":{}`, "500 Internal Server Error",
			"a failure without message, reason and code",
		},
		"blanks": {
			500, `"message":" \u0007"`, "500 Internal Server Error",
			"a failure without message, reason and code",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := `{"kind":"Status","apiVersion":"v1","status":"Failure",` + test.status + `}`
			_, refusal := newSource(t, respondWith(test.code, status)).List(metav1.ListOptions{})
			require.Equal(t, test.text, messageOf(t, refusal))
			_, body := newSource(t, respondWith(200, status)).List(metav1.ListOptions{})
			require.Equal(t, test.frame, messageOf(t, body))
			for _, sent := range []string{status, frameJSON("ERROR", status)} {
				events := watched(t, strings.NewReader(sent))
				require.Len(t, events, 1)
				require.Equal(t, test.frame, messageOf(t, apierrors.FromObject(events[0].Object)))
			}
		})
	}
}

func messageOf(t *testing.T, err error) string {
	t.Helper()
	var failure *apierrors.StatusError
	require.ErrorAs(t, err, &failure)
	return failure.Error()
}

// The rule is that of apimachinery's decoder of unstructured lists, which is the reference.
func TestItemsAreCompletedWhereBothKindAndVersionAreEmptyOnly(t *testing.T) {
	for name, object := range map[string]string{
		"neither":         `{"metadata":{"name":"a"}}`,
		"both empty":      `{"apiVersion":"","kind":"","metadata":{"name":"a"}}`,
		"empty and null":  `{"apiVersion":"","kind":null,"metadata":{"name":"a"}}`,
		"version alone":   `{"apiVersion":"y/v2","metadata":{"name":"a"}}`,
		"version, empty":  `{"apiVersion":"y/v2","kind":"","metadata":{"name":"a"}}`,
		"kind alone":      `{"kind":"Own","metadata":{"name":"a"}}`,
		"kind, empty":     `{"kind":"Own","apiVersion":"","metadata":{"name":"a"}}`,
		"both":            `{"kind":"Own","apiVersion":"y/v2","metadata":{"name":"a"}}`,
		"empty and none":  `{"kind":"","metadata":{"name":"a"}}`,
		"numbers, no use": `{"kind":1,"apiVersion":2,"metadata":{"name":"a"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{
				`{"apiVersion":"x/v1","kind":"WidgetList","items":[` + object + `]}`,
				`{"items":[` + object + `],"apiVersion":"x/v1","kind":"WidgetList"}`,
				`{"apiVersion":"x/v1","items":[` + object + `],"kind":"WidgetList"}`,
			} {
				decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(
					[]byte(body), nil, nil)
				require.NoError(t, err)
				want := decoded.(*unstructured.UnstructuredList).Items[0]
				require.Equal(t, want.Object, item(t, listed(t, body), 0).Object, body)
			}
		})
	}
}
