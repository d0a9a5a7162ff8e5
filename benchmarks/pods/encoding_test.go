package pods

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// some pods: the first and last of a namespace, one with a long number, and one of each
// shape.
func some() []int {
	numbers := []int{0, 999, 1000, 99_999, 314_159}
	for shape := range shapes {
		numbers = append(numbers, 7*shapes+shape)
	}
	return numbers
}

func TestAnEncodedPodIsThePodEncoded(t *testing.T) {
	t.Parallel()
	asText, asProtobuf := JSON(), Protobuf()
	for _, i := range some() {
		pod := Pod(i, uint64(i)+5)
		want, err := json.Marshal(pod)
		require.NoError(t, err)
		require.Equal(t, string(want), string(asText.Append(nil, i, uint64(i)+5)))
		want, err = pod.Marshal()
		require.NoError(t, err)
		require.Equal(t, want, asProtobuf.Append(nil, i, uint64(i)+5))
		require.Equal(t, len(want), asProtobuf.Len(i))
	}
}

func TestAPodIsAsLargeAsClaimed(t *testing.T) {
	t.Parallel()
	asText, asProtobuf := JSON(), Protobuf()
	var jsonBytes, protobufBytes int
	for i := range shapes {
		require.InDelta(t, 10<<10, asText.Len(i), 1<<10, "bytes of JSON of shape %d", i)
		require.InDelta(t, 6<<10, asProtobuf.Len(i), 1<<10, "bytes of protobuf of shape %d", i)
		jsonBytes += asText.Len(i)
		protobufBytes += asProtobuf.Len(i)
	}
	t.Logf("on average %d bytes of JSON, %d of protobuf", jsonBytes/shapes, protobufBytes/shapes)
}

func TestPodsHaveNamesAndVersionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	names, uids, addresses := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range 2 * PerNamespace {
		id := identityOf(i, 1)
		names[id.texts["namespace"]+"/"+id.texts["suffix"]] = true
		uids[id.texts["uid"]] = true
		addresses[id.texts["podIP"]] = true
		require.Len(t, id.texts["uid"], 36)
	}
	require.Len(t, names, 2*PerNamespace)
	require.Len(t, uids, 2*PerNamespace)
	require.Len(t, addresses, 2*PerNamespace)
	require.Equal(t, "team-00001", Pod(PerNamespace, 1).Namespace)
	require.Less(t, Version(99_999), Version(100_000))
}

func TestStrippedPodsKeepWhatTheyAreFoundBy(t *testing.T) {
	t.Parallel()
	pod := Pod(7, 1)
	content, err := json.Marshal(pod)
	require.NoError(t, err)
	untyped := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, utiljson.Unmarshal(content, &untyped.Object))
	for _, object := range []any{pod.DeepCopy(), untyped} {
		stripped, err := Strip(object)
		require.NoError(t, err)
		values, err := ByNamespace(stripped)
		require.NoError(t, err)
		require.Equal(t, []string{pod.Namespace}, values)
	}
	require.Empty(t, untyped.GetManagedFields())
	require.Empty(t, untyped.GetAnnotations())
	require.Equal(t, pod.Labels, untyped.GetLabels())
	node, _, _ := unstructured.NestedString(untyped.Object, "spec", "nodeName")
	require.Equal(t, pod.Spec.NodeName, node)
}
