package clientgo_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
)

// fixed responds to every request with the same body.
type fixed struct {
	body      []byte
	mediaType kubeapi.Encoding
}

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {string(f.mediaType)}}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     header,
		Body:       io.NopCloser(bytes.NewReader(f.body)),
	}, nil
}

// listed returns the objects that a source lists from these bytes.
func listed(t *testing.T, api fixed, options kubeapi.Options) (objects []runtime.Object) {
	t.Helper()
	options.Encodings = []kubeapi.Encoding{api.mediaType}
	source, err := clientgo.NewSource(&rest.Config{Host: "api.test", Transport: api}, options)
	require.NoError(t, err)
	_, err = source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(_ metav1.ListMeta, item runtime.Object) error {
			objects = append(objects, item)
			return nil
		},
	)
	require.NoError(t, err)
	return objects
}

// bodyOf returns the list of some objects as an API server encodes it.
func bodyOf(
	t testing.TB, kind schema.GroupVersionKind, objects []runtime.Object, encoding kubeapi.Encoding,
) []byte {
	t.Helper()
	list, err := scheme.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	require.NoError(t, err)
	require.NoError(t, meta.SetList(list, objects))
	list.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	info, _ := runtime.SerializerInfoForMediaType(
		scheme.Codecs.SupportedMediaTypes(), string(encoding))
	encoder := runtime.Encoder(info.Serializer)
	if encoding == kubeapi.Protobuf {
		encoder = protobuf.NewSerializer(nil, nil)
	}
	var body bytes.Buffer
	require.NoError(t, encoder.Encode(list, &body))
	return body.Bytes()
}

// Fails if, for any Kubernetes type in either encoding, a named field is lost or another field is
// kept.
func TestProjectedObjectsOfEveryTypeAreWholeOnesWithoutTheFieldsThatAreNotNamed(t *testing.T) {
	tried := 0
	types := scheme.Scheme.AllKnownTypes()
	// The order is fixed, so each type always has the same objects and fields.
	kinds := slices.SortedFunc(
		maps.Keys(types),
		func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	for _, kind := range kinds {
		of := types[kind]
		object, ok := reflect.New(of).Interface().(runtime.Object)
		_, isObject := object.(metav1.Object)
		if !ok || !isObject ||
			!scheme.Scheme.Recognizes(kind.GroupVersion().WithKind(kind.Kind+"List")) {
			continue
		}
		tried++
		chance := rand.New(rand.NewPCG(1, uint64(tried)))
		all := pathsOf(of, nil, nil)
		objects := randomObjects(t, of, 2, int64(tried))
		for _, encoding := range []kubeapi.Encoding{kubeapi.JSON, kubeapi.Protobuf} {
			api := fixed{bodyOf(t, kind, objects, encoding), encoding}
			for range 3 {
				var fields []string
				for range 1 + chance.IntN(4) {
					fields = append(fields, strings.Join(all[chance.IntN(len(all))], "."))
				}
				var kept [][]string
				for _, path := range append(alwaysKept, fields...) {
					kept = append(kept, strings.Split(path, "."))
				}
				options := kubeapi.Options{
					Resource: kind.GroupVersion().WithResource("things"), ObjectType: object,
					KeepManagedFields: true,
				}
				whole := listed(t, api, options)
				options.Fields = fields
				for i, got := range listed(t, api, options) {
					named, projected := kubeapi.ProjectedFields(got)
					require.True(t, projected, "%s: %T", kind, got)
					require.Equal(t, fields, named)
					delete(got.(metav1.Object).GetAnnotations(), kubeapi.ProjectionMark)
					zeroed(reflect.ValueOf(whole[i]), kept)
					if !equality.Semantic.DeepEqual(whole[i], got) {
						require.Equal(t, whole[i], got, "%s: %s in %s", kind, fields, encoding)
					}
				}
			}
		}
	}
	require.Greater(t, tried, 100)
}

func TestFieldsBehindEmbeddedStructsAndKeysOfMapsCanBeNamed(t *testing.T) {
	object := pod("web-0", "5")
	object.Spec.Volumes = []corev1.Volume{
		{
			Name: "a",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "config"},
					DefaultMode:          new(int32),
				},
			},
		},
		{
			Name: "b",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"},
			},
		},
	}
	object.Spec.Containers[0].Resources.Limits["cpu"] = object.Spec.Containers[0].Resources.Limits["memory"]
	fields := []string{"spec.volumes.configMap.name", "spec.containers.resources.limits[memory]"}
	want := &corev1.Pod{ObjectMeta: object.ObjectMeta, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "config"},
					},
				},
			},
			{},
		},
		Containers: []corev1.Container{
			{
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{
						"memory": object.Spec.Containers[0].Resources.Limits["memory"],
					},
				},
			},
		},
	}}
	want.Annotations = map[string]string{kubeapi.ProjectionMark: strings.Join(fields, ",")}
	for _, encoding := range []kubeapi.Encoding{kubeapi.JSON, kubeapi.Protobuf} {
		api := fixed{
			bodyOf(
				t, corev1.SchemeGroupVersion.WithKind("Pod"), []runtime.Object{object}, encoding),
			encoding,
		}
		got := listed(
			t, api, kubeapi.Options{Resource: pods, ObjectType: &corev1.Pod{}, Fields: fields})
		require.Len(t, got, 1)
		require.True(t, equality.Semantic.DeepEqual(want, got[0]), fmt.Sprint(encoding, got[0]))
	}
}
