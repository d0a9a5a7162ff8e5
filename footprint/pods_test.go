package footprint_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pod has the fields of a Pod that matter for its memory. The root module does not require its API.
type pod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              podSpec   `json:"spec,omitempty"`
	Status            podStatus `json:"status,omitempty"`
}

func (p *pod) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

type podSpec struct {
	NodeName     string            `json:"nodeName,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	HostPID      bool              `json:"hostPID,omitempty"`
	GracePeriod  *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	Containers   []container       `json:"containers"`
}

type container struct {
	Name      string                                  `json:"name"`
	Image     string                                  `json:"image,omitempty"`
	Args      []string                                `json:"args,omitempty"`
	Env       []environment                           `json:"env,omitempty"`
	Resources map[string]map[string]resource.Quantity `json:"resources,omitempty"`
	Security  *security                               `json:"securityContext,omitempty"`
}

type environment struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type security struct {
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	ReadOnly  *bool  `json:"readOnlyRootFilesystem,omitempty"`
}

type podStatus struct {
	Phase      string       `json:"phase,omitempty"`
	PodIP      string       `json:"podIP,omitempty"`
	StartTime  *metav1.Time `json:"startTime,omitempty"`
	Conditions []condition  `json:"conditions,omitempty"`
}

type condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	Message            string      `json:"message,omitempty"`
}

// podJSON returns a pod of about 5 KiB. Every fifth has a second container.
func podJSON(i int) []byte {
	containers := containerJSON(i)
	if i%5 == 0 {
		containers += "," + containerJSON(i+1)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-%06d-%05x",
"namespace":"team-%02d","uid":"8a5d0c9e-0f0f-4b6b-9d57-%012d","resourceVersion":"%d",
"creationTimestamp":"2026-11-01T10:00:00Z",
"labels":{"app":"web","pod-template-hash":"%x","tier":"front","release":"blue-green-%d"},
"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q,"checksum/config":"%064x"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-%06d","uid":"8a5d0c9e-%d",
"controller":true,"blockOwnerDeletion":true}],
"managedFields":[%s]},
"spec":{"nodeName":"node-%04d.example.com","nodeSelector":{"disk":"ssd"},
"terminationGracePeriodSeconds":3600,"containers":[%s]},
"status":{"phase":"Running","podIP":"10.1.%d.%d","startTime":"2026-11-01T10:00:03Z","conditions":[
{"type":"Ready","status":"True","lastTransitionTime":"2026-11-01T10:00:07Z","message":""},
{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-01T10:00:02Z"}]}}`,
		i, i*7919%1048576, i%37, i, 1000+i, i*31, i%3,
		`{"apiVersion":"v1","kind":"Pod","spec":"`+strings.Repeat("applied ", 60+i%20)+`"}`, i,
		i/3, i/3, managedFieldsJSON(i), i%211, containers, i/256%256, i%256)
}

func containerJSON(i int) string {
	var env []string
	for n := range 8 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_NUMBER_%d","value":"value-%d-of-%d"}`, n, n, i))
	}
	return fmt.Sprintf(`{"name":"main-%d","image":"registry.example.com/team/web:%d.%d",
"args":["--verbose","--listen=:8080","--name=web-%d"],"env":[%s],
"resources":{"limits":{"cpu":"2","memory":"512Mi"},"requests":{"cpu":"250m","memory":"128Mi"}},
"securityContext":{"runAsUser":1000,"readOnlyRootFilesystem":true}}`,
		i%9, i%7, i%13, i, strings.Join(env, ","))
}

func managedFieldsJSON(i int) string {
	names := `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}},"f:ownerReferences":{}},
"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{},"f:image":{},"f:name":{}}}}}`
	names = strings.ReplaceAll(names, "\n", "")
	one := `{"manager":"%s","operation":"Update","apiVersion":"v1","time":"2026-11-01T10:00:00Z",
"fieldsType":"FieldsV1","fieldsV1":%s}`
	return fmt.Sprintf(one, fmt.Sprint("controller-manager-", i%3), names) + "," +
		fmt.Sprintf(one, "kubelet", names)
}
