package clientgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

func TestEncodingsAreThoseThatTheConfigNamesAndTheTypeAllows(t *testing.T) {
	const (
		protobuf = "application/vnd.kubernetes.protobuf"
		json     = "application/json"
		cbor     = "application/cbor"
	)
	type encodings = []kubeapi.Encoding
	for _, test := range []struct {
		accept, content string
		object          runtime.Object
		want            encodings
	}{
		{"", "", &corev1.Pod{}, nil},
		{"", json, &corev1.Pod{}, encodings{kubeapi.JSON}},
		{"", protobuf, &corev1.Pod{}, encodings{kubeapi.Protobuf}},
		{"", protobuf, &metav1.PartialObjectMetadata{}, encodings{kubeapi.Protobuf}},
		{"", protobuf, &unstructured.Unstructured{}, nil},
		{"", protobuf, nil, nil},
		{protobuf + "," + json, json, &corev1.Pod{}, encodings{kubeapi.Protobuf, kubeapi.JSON}},
		{protobuf + "," + json, protobuf, nil, encodings{kubeapi.JSON}},
		{
			json + ";q=0.9, " + protobuf, "", &corev1.Pod{},
			encodings{kubeapi.Protobuf, kubeapi.JSON},
		},
		{json + ", " + protobuf + ";q=0", "", &corev1.Pod{}, encodings{kubeapi.JSON}},
		{json + ", " + protobuf + ";q=loud", "", &corev1.Pod{}, encodings{kubeapi.JSON}},
		{
			protobuf + ";as=Table;g=meta.k8s.io;v=v1," + protobuf, "", &corev1.Pod{},
			encodings{kubeapi.Protobuf},
		},
		{cbor, protobuf, &corev1.Pod{}, encodings{kubeapi.CBOR}},
		{"APPLICATION/JSON", "", nil, encodings{kubeapi.JSON}},
		{"application/yaml, */*, application/cbor-seq", "", &corev1.Pod{}, nil},
		{",;,", "", &corev1.Pod{}, nil},
	} {
		content := rest.ContentConfig{AcceptContentTypes: test.accept, ContentType: test.content}
		assert.Equal(t, test.want, encodingsOf(content, test.object), "%+v", test)
	}
}
