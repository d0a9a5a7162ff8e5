package mutation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// machine has a field of each kind in Kubernetes types.
type machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec machineSpec `json:"spec"`

	reads int
}

type machineSpec struct {
	Replicas  *int32                       `json:"replicas,omitempty"`
	Parts     []machinePart                `json:"parts,omitempty"`
	Size      resource.Quantity            `json:"size"`
	Limits    map[string]resource.Quantity `json:"limits,omitempty"`
	Blob      []byte                       `json:"blob,omitempty"`
	Since     metav1.Time                  `json:"since"`
	Port      intstr.IntOrString           `json:"port"`
	Extension apiruntime.RawExtension      `json:"extension"`
	Values    map[string]any               `json:"values,omitempty"`
	Ratio     float64                      `json:"ratio"`
	Next      *machineSpec                 `json:"next,omitempty"`
}

type machinePart struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

func newMachine(name string) *machine {
	return &machine{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: "7",
			Labels:            map[string]string{"app": "web", "tier": "front"},
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			ManagedFields: []metav1.ManagedFieldsEntry{
				{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
			},
		},
		Spec: machineSpec{
			Replicas:  new(int32(3)),
			Parts:     []machinePart{{"a", "image-a"}, {"b", "image-b"}},
			Size:      resource.MustParse("1536Mi"),
			Limits:    map[string]resource.Quantity{"cpu": resource.MustParse("2")},
			Blob:      []byte("blob"),
			Since:     metav1.NewTime(time.Unix(1_600_000_000, 0)),
			Port:      intstr.FromInt32(80),
			Extension: apiruntime.RawExtension{Raw: []byte(`{}`)},
			Values: map[string]any{
				"depth": int64(1), "list": []any{"x", map[string]any{"y": true}},
			},
			Next: &machineSpec{},
		},
	}
}
