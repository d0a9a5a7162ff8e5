package pods

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PerNamespace is how many pods a namespace has.
const PerNamespace = 1000

// shapes is how many different pods there are, apart from each pod's own fields. A
// cluster of 100,000 pods has more deployments than that, but not in the 500 pods that
// are next to one another.
const shapes = 64

// document is a pod as an API server has it when a scheduler and a kubelet have done their
// part. ${NAME} is a text of its shape or of its identity.
//
//go:embed pod.json
var document []byte

// compacted is the document without white space, which managedFields would keep.
var compacted = sync.OnceValue(func() string {
	var text bytes.Buffer
	if err := json.Compact(&text, document); err != nil {
		panic(fmt.Sprintf("pod.json: %v", err))
	}
	return text.String()
})

var (
	services = []string{"checkout", "catalogue", "payments", "inventory", "session", "search", "shipping", "ledger"}
	roles    = []string{"api", "worker", "consumer", "gateway"}
	teams    = []string{"storefront", "fulfilment", "platform", "risk"}
)

// shapeOf is what all pods of one deployment have in common.
func shapeOf(number int) map[string]string {
	random := noise(1_000_003 * (number + 1))
	service := services[number%len(services)]
	return map[string]string{
		"service":     service,
		"app":         service + "-" + roles[number/2%len(roles)],
		"team":        teams[number/len(services)%len(teams)],
		"hash":        random.hex(5),
		"owner":       random.uid(),
		"build":       random.hex(4),
		"checksum":    random.hex(32),
		"digest":      random.hex(32),
		"proxyDigest": random.hex(32),
	}
}

// Pod makes pod i as it is at a resource version. The same arguments give the same pod,
// in every run.
func Pod(i int, version uint64) *corev1.Pod { return newPod(i%shapes, identityOf(i, version)) }

func newPod(shape int, id identity) *corev1.Pod {
	texts := shapeOf(shape)
	text := os.Expand(compacted(), func(name string) string {
		switch name {
		case "created":
			return id.created.Format(time.RFC3339)
		case "ready":
			return id.ready.Format(time.RFC3339)
		}
		return texts[name] + id.texts[name]
	})
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		panic(fmt.Sprintf("pod.json: %v", err))
	}
	return pod
}
