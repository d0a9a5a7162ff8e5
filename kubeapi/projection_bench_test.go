package kubeapi

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reported returns a carp with the usual status of a kubelet, and usual labels, owners and
// managers. Carps have no containers, and are a third as large as pods.
func reported(i int) carp.Carp {
	yes := true
	object := carp.Carp{
		TypeMeta: carpType,
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-7d4b9c-", i), GenerateName: "web-7d4b9c-", Namespace: "shop",
			ResourceVersion:   fmt.Sprint(4_000_000 + i),
			UID:               "0f8fad5b-d9cb-469f-a165-70867728950e",
			CreationTimestamp: metav1.Unix(1_700_000_000, 0),
			Labels: map[string]string{
				"app": "web", "tier": "front", "pod-template-hash": "7d4b9c",
			},
			Annotations: map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": texts[5],
				"example.com/checksum":                             "0a1b2c3d4e5f",
			},
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "apps/v1",
					Kind:       "ReplicaSet",
					Name:       "web-7d4b9c",
					UID:        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
					Controller: &yes,
				},
			},
		},
		Spec: carp.CarpSpec{
			NodeName: fmt.Sprint("node-", i%200), RestartPolicy: "Always",
			ServiceAccountName: "web", SchedulerName: "default-scheduler",
			NodeSelector: map[string]string{
				"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			},
		},
		Status: carp.CarpStatus{
			Phase:  "Running",
			HostIP: "10.0.0.7",
			CarpIP: fmt.Sprintf("10.1.2.%d", i%256),
		},
	}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			Time: &object.CreationTimestamp,
			FieldsV1: metav1.NewFieldsV1(
				`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:nodeName":{},"f:restartPolicy":{},"f:schedulerName":{}}}`,
			),
		})
	}
	for _, condition := range []carp.CarpConditionType{
		"Initialized", "Ready", "ContainersReady", "Scheduled",
	} {
		object.Status.Conditions = append(
			object.Status.Conditions,
			carp.CarpCondition{
				Type:               condition,
				Status:             "True",
				LastTransitionTime: object.CreationTimestamp,
			},
		)
	}
	return object
}

// BenchmarkProjection lists whole and cut objects. An operation is one object, including its part
// of the request and the list.
func BenchmarkProjection(b *testing.B) {
	carps := make([]carp.Carp, 500)
	for i := range carps {
		carps[i] = reported(i)
	}
	for _, encoding := range []Encoding{Protobuf, JSON, CBOR} {
		api := apiOf(b, carps, encoding)
		for name, options := range map[string]Options{
			"Carp": {ObjectType: &carp.Carp{}},
			"CarpOfFields": {
				ObjectType: &carp.Carp{},
				Fields:     []string{"spec.nodeName", "status.phase"},
			},
			"Unstructured":         {},
			"UnstructuredOfFields": {Fields: []string{"spec.nodeName", "status.phase"}},
		} {
			if options.ObjectType == nil && encoding == Protobuf {
				continue
			}
			options.Encodings = []Encoding{encoding}
			b.Run(fmt.Sprint(encoding[len("application/"):], "/", name), func(b *testing.B) {
				source := newSourceOf(b, api, options)
				b.ReportAllocs()
				for left := b.N; left > 0; {
					_, err := source.ListItems(
						b.Context(),
						metav1.ListOptions{},
						func(metav1.ListMeta, runtime.Object) error {
							left--
							return nil
						},
					)
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
