package clientgo_test

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchmirror/cache/kubeapi"
)

// podServer lists one pod, and a watch delivers that it was modified. It uses the encoding that is
// requested first, written by client-go's codecs as an API server does.
type podServer struct {
	t      *testing.T
	wanted kubeapi.Encoding // the encoding that must be requested first
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       "shop",
			Name:            name,
			ResourceVersion: version,
			Labels:          map[string]string{"app": name},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "image:" + version,
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			},
		}}},
	}
}

func (s podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	media, parameters, err := mime.ParseMediaType(first)
	assert.NoError(s.t, err)
	assert.Equal(s.t, string(s.wanted), media)
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	assert.True(s.t, ok, media)

	w.Header().Set("Content-Type", media)
	metadataOnly := strings.HasPrefix(parameters["as"], "PartialObjectMetadata")
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, info, metadataOnly)
		return
	}
	assert.NoError(
		s.t, encoder(info, metadataOnly).Encode(listOf(pod("web-0", "5"), metadataOnly), w))
}

// encoder writes pods with the scheme's types. The scheme has no lists of metadata; those have
// their own TypeMeta.
func encoder(info runtime.SerializerInfo, metadataOnly bool) runtime.Encoder {
	if metadataOnly {
		return info.Serializer
	}
	return scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
}

func (s podServer) watch(w io.Writer, info runtime.SerializerInfo, metadataOnly bool) {
	raw, err := runtime.Encode(encoder(info, metadataOnly), podAs(pod("web-0", "6"), metadataOnly))
	assert.NoError(s.t, err)
	stream := streaming.NewEncoder(
		info.StreamSerializer.Framer.NewFrameWriter(w), info.StreamSerializer.Serializer)
	assert.NoError(
		s.t,
		stream.Encode(&metav1.WatchEvent{
			Type:   string(watch.Modified),
			Object: runtime.RawExtension{Raw: raw},
		}),
	)
}

// podAs returns a pod, or its metadata, with its type, as each object in a watch has.
func podAs(pod *corev1.Pod, metadataOnly bool) runtime.Object {
	if metadataOnly {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "meta.k8s.io/v1",
				Kind:       "PartialObjectMetadata",
			},
			ObjectMeta: pod.ObjectMeta,
		}
	}
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return pod
}

// listOf returns a list like an API server's, in which the pods have no type.
func listOf(pod *corev1.Pod, metadataOnly bool) runtime.Object {
	about := metav1.ListMeta{ResourceVersion: "5"}
	if metadataOnly {
		return &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "meta.k8s.io/v1",
				Kind:       "PartialObjectMetadataList",
			},
			ListMeta: about,
			Items: []metav1.PartialObjectMetadata{
				*podAs(pod, true).(*metav1.PartialObjectMetadata),
			},
		}
	}
	return &corev1.PodList{ListMeta: about, Items: []corev1.Pod{*pod}}
}
