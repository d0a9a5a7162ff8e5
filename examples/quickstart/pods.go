package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// podNodes is how many nodes the pods are spread over.
const podNodes = 8

// nameLetters are those that Kubernetes makes the ends of names of: no vowels, so
// that no words come out, and nothing that looks like something else.
// https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go
const nameLetters = "bcdfghjklmnpqrstvwxz2456789"

func randomName(random *rand.Rand, length int) string {
	var name strings.Builder
	for range length {
		name.WriteByte(nameLetters[random.IntN(len(nameLetters))])
	}
	return name.String()
}

// randomUID has the form of a version 4 UUID.
func randomUID(random *rand.Rand) types.UID {
	a, b := random.Uint64(), random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

// newPod is a pod of a deployment as the scheduler leaves it: bound to a node, and
// not running yet.
func newPod(random *rand.Rand, d *deployment, now time.Time) *unstructured.Unstructured {
	node := 1 + random.IntN(podNodes)
	replicaSet := d.name + "-" + d.hash
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata": map[string]any{
			"namespace":         d.namespace,
			"name":              replicaSet + "-" + randomName(random, 5),
			"uid":               string(randomUID(random)),
			"creationTimestamp": stamp(now),
			"labels": map[string]any{
				"app":               d.name,
				"tier":              d.tier,
				"pod-template-hash": d.hash,
			},
			"ownerReferences": []any{map[string]any{
				"apiVersion":         "apps/v1",
				"kind":               "ReplicaSet",
				"name":               replicaSet,
				"uid":                string(d.replicaSetUID),
				"controller":         true,
				"blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"nodeName":           fmt.Sprintf("node-%d", node),
			"serviceAccountName": d.name,
			"restartPolicy":      "Always",
			"containers":         []any{d.container()},
		},
		"status": map[string]any{
			"phase":  "Pending",
			"hostIP": fmt.Sprintf("10.0.0.%d", 10+node),
			"conditions": []any{
				condition("PodScheduled", "True", now),
				condition("Ready", "False", now),
			},
		},
	}}
}

// container is the one that all pods of the deployment run now.
func (d *deployment) container() map[string]any {
	return map[string]any{
		"name":  d.name,
		"image": d.image(),
		"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080), "protocol": "TCP"}},
		"env": []any{
			map[string]any{"name": "LOG_LEVEL", "value": "info"},
			map[string]any{"name": "GOMAXPROCS", "value": "2"},
		},
		"resources": map[string]any{
			"requests": map[string]any{"cpu": d.cpu, "memory": d.memory},
			"limits":   map[string]any{"memory": d.memory},
		},
	}
}

// nowRunning is the pod some time later: its container has come up.
func nowRunning(random *rand.Rand, pod *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	running := pod.DeepCopy()
	status := running.Object["status"].(map[string]any)
	status["phase"] = "Running"
	if status["podIP"] == nil {
		status["podIP"] = fmt.Sprintf("10.244.%d.%d", random.IntN(podNodes), 2+random.IntN(250))
		status["startTime"] = stamp(now)
	}
	setReadiness(running, true, restarts(running), now)
	return running
}

// nowCrashed is the pod with its container down, about to be started again.
func nowCrashed(pod *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	crashed := pod.DeepCopy()
	setReadiness(crashed, false, restarts(crashed)+1, now)
	return crashed
}

// withImage is the pod with its container running another image.
func withImage(pod *unstructured.Unstructured, image string) *unstructured.Unstructured {
	patched := pod.DeepCopy()
	spec := patched.Object["spec"].(map[string]any)
	spec["containers"].([]any)[0].(map[string]any)["image"] = image
	return patched
}

func setReadiness(pod *unstructured.Unstructured, ready bool, restarted int64, now time.Time) {
	status := pod.Object["status"].(map[string]any)
	said := "False"
	if ready {
		said = "True"
	}
	status["conditions"] = []any{
		condition("PodScheduled", "True", pod.GetCreationTimestamp().Time),
		condition("Ready", said, now),
	}
	spec := pod.Object["spec"].(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	status["containerStatuses"] = []any{map[string]any{
		"name":         container["name"],
		"image":        container["image"],
		"ready":        ready,
		"restartCount": restarted,
	}}
}

func condition(kind, status string, since time.Time) map[string]any {
	return map[string]any{"type": kind, "status": status, "lastTransitionTime": stamp(since)}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
