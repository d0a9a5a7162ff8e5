package flow_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
)

// optionsFor are options that keep some fields of pods.
func optionsFor(url, typeName string, fields []string) kubeapi.Options {
	options := kubeapi.Options{
		BaseURL:  url,
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Fields:   fields,
	}
	if typeName == podType {
		options.ObjectType = &corev1.Pod{}
	}
	return options
}

func TestKubeapiAcceptsTheListOfEachConstruct(t *testing.T) {
	directories, err := os.ReadDir(programDir)
	require.NoError(t, err)
	for _, directory := range directories {
		content, err := os.ReadFile(filepath.Join(programDir, directory.Name(), "p.go"))
		require.NoError(t, err)
		typeName := typeIn(string(content))
		result := analyzePackage(t, directory.Name(), typeName)
		fields := flow.Fields(result.Uses[0].Object, withoutWhole(result.Uses))
		_, err = kubeapi.New(optionsFor("http://localhost", typeName, fields))
		require.NoError(t, err, "%s: %v", directory.Name(), fields)
	}
}

// withoutWhole leaves out escapes of whole objects, with which the list is empty.
func withoutWhole(uses []flow.Use) []flow.Use {
	var parts []flow.Use
	for _, use := range uses {
		if use.Path != "" {
			parts = append(parts, use)
		}
	}
	return parts
}

const podList = `{
	"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
	"items": [{
		"metadata": {
			"name": "a", "generateName": "b", "namespace": "c", "uid": "d", "resourceVersion": "2",
			"generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
			"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 4,
			"labels": {"e": "f"}, "annotations": {"g": "h"}, "ownerReferences": [{"name": "i"}],
			"finalizers": ["j"], "managedFields": [{"manager": "k"}]
		},
		"spec": {"nodeName": "l", "securityContext": {"fsGroup": 1}},
		"status": {"conditions": [{"reason": "m"}, {"reason": "n"}]}
	}]
}`

// decodedPod is the pod with some fields.
func decodedPod(t *testing.T, fields ...string) *corev1.Pod {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, podList)
	}))
	defer server.Close()
	source, err := kubeapi.New(optionsFor(server.URL, podType, fields))
	require.NoError(t, err)
	var pod *corev1.Pod
	collect := func(_ metav1.ListMeta, item runtime.Object) error {
		pod = item.(*corev1.Pod)
		return nil
	}
	_, err = source.ListItems(context.Background(), metav1.ListOptions{}, collect)
	require.NoError(t, err)
	return pod
}

func TestTheMetadataThatIsAlwaysKeptIsThatOfKubeapi(t *testing.T) {
	pod := decodedPod(t, "metadata.name")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	require.NoError(t, err)
	metadata, _ := content["metadata"].(map[string]any)
	require.Len(t, metadata, 13, "12 fields, and the mark among the annotations")
	for name := range metadata {
		require.Equal(t, name != "annotations", flow.IsAlwaysKept("metadata."+name), name)
	}
	notKept := []string{"metadata", "metadata.annotations", "metadata.managedFields", "spec"}
	for _, dropped := range notKept {
		require.False(t, flow.IsAlwaysKept(dropped), dropped)
	}
}

func TestAFieldBelowAValueKeepsThatTheValueExists(t *testing.T) {
	pod := decodedPod(t, "spec.securityContext.runAsUser", "status.conditions.type")
	require.NotNil(t, pod.Spec.SecurityContext)
	require.Len(t, pod.Status.Conditions, 2)
	require.Empty(t, pod.Status.Conditions[0].Reason)
}
