package inventory

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod is a Pod as far as this example needs it. A program uses that of k8s.io/api/core/v1.
type Pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PodSpec   `json:"spec,omitempty"`
	Status            PodStatus `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object. The copies share what no code of this example changes.
func (p *Pod) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

// PodSpec is what a user wants.
type PodSpec struct {
	NodeName       string            `json:"nodeName,omitempty"`
	NodeSelector   map[string]string `json:"nodeSelector,omitempty"`
	ServiceAccount string            `json:"serviceAccountName,omitempty"`
	Containers     []Container       `json:"containers"`
	Volumes        []Volume          `json:"volumes,omitempty"`
	Tolerations    []Toleration      `json:"tolerations,omitempty"`
}

// Container is a container of a pod.
type Container struct {
	Name         string        `json:"name"`
	Image        string        `json:"image,omitempty"`
	Command      []string      `json:"command,omitempty"`
	Args         []string      `json:"args,omitempty"`
	Env          []EnvVar      `json:"env,omitempty"`
	Resources    Resources     `json:"resources,omitempty"`
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
}

// EnvVar is a variable of a container's environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Resources are what a container may use, and what it needs.
type Resources struct {
	Limits   map[string]resource.Quantity `json:"limits,omitempty"`
	Requests map[string]resource.Quantity `json:"requests,omitempty"`
}

// VolumeMount is where a container has a volume.
type VolumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// Volume is a volume of a pod.
type Volume struct {
	Name      string          `json:"name"`
	ConfigMap *ConfigMapItems `json:"configMap,omitempty"`
}

// ConfigMapItems are what a volume has of a ConfigMap.
type ConfigMapItems struct {
	Name string `json:"name"`
}

// Toleration is a taint of a node that a pod accepts.
type Toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          string `json:"operator,omitempty"`
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// PodStatus is what the node has made of it.
type PodStatus struct {
	Phase      string       `json:"phase,omitempty"`
	PodIP      string       `json:"podIP,omitempty"`
	StartTime  *metav1.Time `json:"startTime,omitempty"`
	Conditions []Condition  `json:"conditions,omitempty"`
	Containers []Started    `json:"containerStatuses,omitempty"`
}

// Condition is a condition of a pod.
type Condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	Reason             string      `json:"reason,omitempty"`
	Message            string      `json:"message,omitempty"`
}

// Started is the status of a container.
type Started struct {
	Name         string `json:"name"`
	Image        string `json:"image"`
	ImageID      string `json:"imageID"`
	ContainerID  string `json:"containerID,omitempty"`
	RestartCount int32  `json:"restartCount"`
	Ready        bool   `json:"ready"`
}
