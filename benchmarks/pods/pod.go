package pods

import corev1 "k8s.io/api/core/v1"

// PerNamespace is how many pods a namespace has.
const PerNamespace = 1000

// Pod makes pod i as it is at a resource version. The same arguments give the same pod,
// in every run.
func Pod(i int, version uint64) *corev1.Pod {
	return newShape(i % shapes).pod(identityOf(i, version))
}
