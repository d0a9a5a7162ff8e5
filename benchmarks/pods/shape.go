package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// shapes is how many different pods there are, apart from each pod's own fields. A
// cluster of 100,000 pods has more deployments than that, but not in the 500 pods that
// are next to one another.
const shapes = 64

var (
	services = []string{"checkout", "catalogue", "payments", "inventory", "session", "search", "shipping", "ledger"}
	roles    = []string{"api", "worker", "consumer", "gateway"}
	teams    = []string{"storefront", "fulfilment", "platform", "risk"}
)

// shape is what all pods of one deployment have in common.
type shape struct {
	number  int
	random  noise
	app     string // of the deployment
	hash    string // of its pod template
	owner   types.UID
	service string
	team    string
}

func newShape(number int) *shape {
	s := &shape{number: number, random: noise(1_000_003 * (number + 1))}
	s.service = services[number%len(services)]
	s.team = teams[number/len(services)%len(teams)]
	s.app = fmt.Sprintf("%s-%s", s.service, roles[number/2%len(roles)])
	s.hash = s.random.hex(5)
	s.owner = types.UID(fmt.Sprintf("%s-%s-4%s-a%s-%s", s.random.hex(4), s.random.hex(2), s.random.hex(2)[:3], s.random.hex(2)[:3], s.random.hex(6)))
	return s
}

// pod makes one of the deployment's pods, as an API server has it when a scheduler and
// a kubelet have done their part.
func (s *shape) pod(id identity) *corev1.Pod {
	// The same numbers in every pod of the shape.
	own := *s
	pod := &corev1.Pod{ObjectMeta: own.metadata(id), Spec: own.spec(id)}
	pod.Status = own.status(id, pod.Spec)
	pod.ManagedFields = managedFields(pod, id)
	return pod
}

func (s *shape) metadata(id identity) metav1.ObjectMeta {
	yes := true
	replicas := s.app + "-" + s.hash
	return metav1.ObjectMeta{
		Name:              replicas + "-" + id.suffix,
		GenerateName:      replicas + "-",
		Namespace:         id.namespace,
		UID:               types.UID(id.uid),
		ResourceVersion:   id.version,
		CreationTimestamp: metav1.Time{Time: id.created},
		Labels: map[string]string{
			"app.kubernetes.io/name":     s.app,
			"app.kubernetes.io/instance": s.service + "-production",
			"app.kubernetes.io/version":  fmt.Sprintf("2.%d.%d", 10+s.random.below(30), s.random.below(10)),
			"pod-template-hash":          s.hash,
			"team":                       s.team,
		},
		Annotations: map[string]string{
			"checksum/config":                   s.random.hex(32),
			"kubectl.kubernetes.io/restartedAt": "2026-02-27T14:03:11+01:00",
			"prometheus.io/port":                "9102",
			"prometheus.io/scrape":              "true",
			"sidecar.example.com/status":        s.injection(),
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicas, UID: s.owner,
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}

// injection is what webhooks that add a container leave behind: a small document as
// text.
func (s *shape) injection() string {
	return fmt.Sprintf(`{"initContainers":["proxy-init"],"containers":["proxy"],"volumes":["proxy-socket","proxy-certs"],`+
		`"imagePullSecrets":null,"revision":"stable-%d"}`, s.random.below(10))
}

func (s *shape) image(name string) string {
	return fmt.Sprintf("registry.example.com/%s/%s:2.%d.%d-%s", s.team, name, 10+s.random.below(30), s.random.below(10), s.random.hex(4))
}

func pointer[T any](value T) *T { return &value }
