// Package pods makes the objects of the measurements: pods as clusters have them, of a
// deployment, with a sidecar, scheduled, running, reported on by a kubelet, and with the
// managedFields of their two managers. They take about 10 KiB in JSON, 7 KiB in protobuf,
// 17 KiB as a *corev1.Pod and 58 KiB unstructured; Strip leaves 2 and 4 KiB of these.
//
// Pod i is the same in every run. There are 64 shapes (deployments) of pod.json; of its own a pod
// has its names, UID, version, node, addresses, container IDs and times. Encodings are made of
// templates of the shapes, by writing these over: in some microseconds, so that a server's own work
// is small beside what a client does with the answer.
package pods
