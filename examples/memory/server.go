package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/examples/memory/inventory"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// server is a small Kubernetes-style API with pods.
type server struct {
	*cachetest.Server
	pods *cachetest.Source
}

// servedPod is a pod in the server. Its specification and status are encoded, and pods share them,
// so that the server needs little memory beside that of the mirrors.
type servedPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec"`
	Status            json.RawMessage `json:"status"`
}

// DeepCopyObject implements runtime.Object. Nobody changes what the copies share.
func (p *servedPod) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

func startServer(count int) (*server, error) {
	source := cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		NewObject:        func() runtime.Object { return &servedPod{} },
	})
	variants, err := newVariants()
	if err != nil {
		return nil, err
	}
	for i := range count {
		pod := variants[i%len(variants)]
		pod.Name = fmt.Sprintf("web-%06d", i)
		pod.Namespace = fmt.Sprintf("team-%02d", i%40)
		pod.UID = types.UID(fmt.Sprintf("8a5d0c9e-0f0f-4b6b-9d57-%012d", i))
		if err := source.Apply(&pod); err != nil {
			return nil, fmt.Errorf("fill the server: %w", err)
		}
	}
	handler := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: source}},
	})
	return &server{cachetest.NewServer(handler), source}, nil
}

func (s *server) stop() {
	s.pods.Close()
	s.Server.Close()
}

// newVariants returns 200 pods of one deployment on 200 nodes.
func newVariants() ([]servedPod, error) {
	variants := make([]servedPod, 200)
	for i := range variants {
		pod := inventory.Pod{Spec: newSpec(i), Status: newStatus(i)}
		spec, err := json.Marshal(pod.Spec)
		if err != nil {
			return nil, fmt.Errorf("encode a pod: %w", err)
		}
		status, err := json.Marshal(pod.Status)
		if err != nil {
			return nil, fmt.Errorf("encode a pod: %w", err)
		}
		variants[i] = servedPod{ObjectMeta: newMeta(i, spec), Spec: spec, Status: status}
	}
	return variants, nil
}

func newMeta(i int, spec []byte) metav1.ObjectMeta {
	managed := `{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{}}}`
	return metav1.ObjectMeta{
		Labels: map[string]string{"app": "web", "tier": "front", "release": fmt.Sprint("r-", i%3)},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": string(spec),
			"prometheus.io/scrape":                             "true",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1",
			Kind:       "ReplicaSet",
			Name:       fmt.Sprint("web-", i%7),
			UID:        types.UID(fmt.Sprintf("1c2e0c9e-0f0f-4b6b-9d57-%012d", i%7)),
		}},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager:    "kube-controller-manager",
			Operation:  metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1",
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(managed),
		}},
	}
}

func newSpec(i int) inventory.PodSpec {
	seconds := int64(300)
	spec := inventory.PodSpec{
		NodeName:       fmt.Sprintf("node-%03d.example.com", i),
		NodeSelector:   map[string]string{"disk": "ssd"},
		ServiceAccount: "web",
		Containers:     []inventory.Container{newContainer("web", i), newContainer("proxy", i)},
		Volumes:        []inventory.Volume{{Name: "settings", ConfigMap: &inventory.ConfigMapItems{Name: "web-settings"}}},
	}
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		spec.Tolerations = append(spec.Tolerations, inventory.Toleration{
			Key:               key,
			Operator:          "Exists",
			Effect:            "NoExecute",
			TolerationSeconds: &seconds,
		})
	}
	if i%50 == 0 {
		spec.NodeName = ""
	}
	return spec
}

func newContainer(name string, i int) inventory.Container {
	needed := map[string]resource.Quantity{
		"cpu":    *resource.NewMilliQuantity(int64(100+i%3*100), resource.DecimalSI),
		"memory": *resource.NewQuantity(256<<20, resource.BinarySI),
	}
	container := inventory.Container{
		Name:      name,
		Image:     fmt.Sprintf("registry.example.com/team/%s:1.%d.0", name, i%9),
		Command:   []string{"/bin/" + name},
		Args:      []string{"--verbose", "--listen=:8080", "--config=/etc/settings/" + name + ".yaml"},
		Resources: inventory.Resources{Limits: needed, Requests: needed},
		VolumeMounts: []inventory.VolumeMount{
			{Name: "settings", MountPath: "/etc/settings", ReadOnly: true},
		},
	}
	for n := range 12 {
		container.Env = append(container.Env, inventory.EnvVar{
			Name:  fmt.Sprint(strings.ToUpper(name), "_SETTING_", n),
			Value: fmt.Sprintf("the value of setting %d", n),
		})
	}
	return container
}

func newStatus(i int) inventory.PodStatus {
	started := metav1.Unix(1_793_000_000, 0)
	status := inventory.PodStatus{
		Phase:     "Running",
		PodIP:     fmt.Sprintf("10.1.0.%d", i),
		StartTime: &started,
	}
	if i%20 == 1 {
		status.Phase = "Succeeded"
	}
	for _, condition := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		status.Conditions = append(status.Conditions, inventory.Condition{
			Type:               condition,
			Status:             "True",
			LastTransitionTime: started,
		})
	}
	for _, name := range []string{"web", "proxy"} {
		image := fmt.Sprintf("registry.example.com/team/%s:1.%d.0", name, i%9)
		status.Containers = append(status.Containers, inventory.Started{
			Name:        name,
			Image:       image,
			ImageID:     image + "@sha256:" + strings.Repeat("0a", 32),
			ContainerID: "containerd://" + strings.Repeat("1b", 32),
			Ready:       true,
		})
	}
	return status
}
