package jsonwire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// podJSON returns a pod of about 10 KiB as a cluster has it: annotations of tools, two containers,
// four conditions, and the field sets of its managers.
func podJSON(number int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	hex := func(n int) string {
		var s strings.Builder
		for range n {
			s.WriteByte("0123456789abcdef"[random.IntN(16)])
		}
		return s.String()
	}
	uid := func() string { return fmt.Sprintf("%s-%s-4%s-a%s-%s", hex(8), hex(4), hex(3), hex(3), hex(12)) }
	at := func(s int) string {
		return fmt.Sprintf("2026-03-%02dT%02d:%02d:%02dZ", 1+number%28, number%24, s%60, s%60)
	}
	type object = map[string]any
	name := fmt.Sprintf("checkout-%s-%s", hex(10), hex(5))
	ip := fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256))
	hash := hex(10)

	container := func(name, image string, port int) object {
		env := []any{
			object{"name": "POD_NAME", "valueFrom": object{"fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.name"}}},
			object{"name": "POD_NAMESPACE", "valueFrom": object{"fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
			object{"name": "DATABASE_PASSWORD", "valueFrom": object{"secretKeyRef": object{"name": "checkout-database", "key": "password"}}},
		}
		for _, variable := range []string{"LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "FEATURES", "JAVA_TOOL_OPTIONS"} {
			env = append(env, object{"name": variable, "value": "http://collector.observability.svc.cluster.local:4317/" + strings.ToLower(variable)})
		}
		probe := object{"httpGet": object{"path": "/healthz?full=1", "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 15,
			"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
		return object{
			"name": name, "image": image, "args": []any{"--config=/etc/app/config.yaml", "--listen=:" + fmt.Sprint(port), "--drain=30s"},
			"ports": []any{object{"name": "http", "containerPort": port, "protocol": "TCP"}, object{"name": "metrics", "containerPort": port + 1, "protocol": "TCP"}},
			"env":   env, "resources": object{"limits": object{"cpu": "2", "memory": "1Gi"}, "requests": object{"cpu": "250m", "memory": "512Mi"}},
			"volumeMounts":  []any{object{"name": "config", "readOnly": true, "mountPath": "/etc/app"}, object{"name": "kube-api-access-" + hex(5), "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"livenessProbe": probe, "readinessProbe": probe, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			"imagePullPolicy": "IfNotPresent", "securityContext": object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 10001, "capabilities": object{"drop": []any{"ALL"}}},
		}
	}
	status := func(name, image string) object {
		return object{"name": name, "state": object{"running": object{"startedAt": at(9)}}, "lastState": object{}, "ready": true, "restartCount": number % 3,
			"image": image, "imageID": "registry.example.com/shop/" + name + "@sha256:" + hex(64), "containerID": "containerd://" + hex(64), "started": true,
			"volumeMounts": []any{object{"name": "config", "mountPath": "/etc/app", "readOnly": true, "recursiveReadOnly": "Disabled"}}}
	}
	condition := func(name string, second int) object {
		return object{"type": name, "status": "True", "lastProbeTime": nil, "lastTransitionTime": at(second), "observedGeneration": 1}
	}
	const app, proxy = "registry.example.com/shop/checkout:v4.17.2", "registry.example.com/mesh/proxy:1.29.1"
	pod := object{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": object{
			"name": name, "generateName": name[:len(name)-5], "namespace": fmt.Sprintf("shop-%d", number/1000), "uid": uid(),
			"resourceVersion": fmt.Sprint(1_000_000 + number), "generation": 1, "creationTimestamp": at(1),
			"labels":          object{"app": "checkout", "app.kubernetes.io/part-of": "shop", "pod-template-hash": hash, "tier": "backend"},
			"annotations":     object{"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": hex(64), "kubectl.kubernetes.io/restartedAt": at(0), "sidecar/status": `{"version":"` + hex(16) + `","containers":["proxy"]}`},
			"ownerReferences": []any{object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-" + hash, "uid": uid(), "controller": true, "blockOwnerDeletion": true}},
			"managedFields": []any{
				object{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": at(1), "fieldsType": "FieldsV1", "fieldsV1": object{
					"f:metadata": object{"f:annotations": owned(".", "f:checksum/config", "f:prometheus.io/port", "f:prometheus.io/scrape"), "f:generateName": object{},
						"f:labels": owned(".", "f:app", "f:pod-template-hash", "f:tier"), "f:ownerReferences": object{".": object{}, `k:{"uid":"` + uid() + `"}`: object{}}},
					"f:spec": object{"f:containers": object{`k:{"name":"checkout"}`: ownedContainer(), `k:{"name":"proxy"}`: ownedContainer()},
						"f:dnsPolicy": object{}, "f:enableServiceLinks": object{}, "f:restartPolicy": object{}, "f:schedulerName": object{}, "f:securityContext": object{}, "f:terminationGracePeriodSeconds": object{},
						"f:volumes": object{".": object{}, `k:{"name":"config"}`: object{".": object{}, "f:configMap": owned(".", "f:defaultMode", "f:name"), "f:name": object{}}}}}},
				object{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": at(12), "fieldsType": "FieldsV1", "subresource": "status", "fieldsV1": object{
					"f:status": object{"f:conditions": object{
						`k:{"type":"ContainersReady"}`: owned(".", "f:lastProbeTime", "f:lastTransitionTime", "f:status", "f:type"),
						`k:{"type":"Initialized"}`:     owned(".", "f:lastProbeTime", "f:lastTransitionTime", "f:status", "f:type"),
						`k:{"type":"Ready"}`:           owned(".", "f:lastProbeTime", "f:lastTransitionTime", "f:status", "f:type")},
						"f:containerStatuses": object{}, "f:hostIP": object{}, "f:phase": object{}, "f:podIP": object{}, "f:podIPs": object{".": object{}, `k:{"ip":"` + ip + `"}`: owned(".", "f:ip")}, "f:startTime": object{}}}},
			},
		},
		"spec": object{
			"volumes": []any{object{"name": "config", "configMap": object{"name": "checkout", "defaultMode": 420}},
				object{"name": "kube-api-access-" + hex(5), "projected": object{"defaultMode": 420, "sources": []any{
					object{"serviceAccountToken": object{"expirationSeconds": 3607, "path": "token"}},
					object{"configMap": object{"name": "kube-root-ca.crt", "items": []any{object{"key": "ca.crt", "path": "ca.crt"}}}}}}}},
			"containers":    []any{container("checkout", app, 8080), container("proxy", proxy, 15001)},
			"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "checkout", "serviceAccount": "checkout",
			"nodeName": fmt.Sprintf("node-%d.eu-central.example.com", number%200), "securityContext": object{"fsGroup": 10001, "seccompProfile": object{"type": "RuntimeDefault"}},
			"schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
			"tolerations": []any{object{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
				object{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}},
		},
		"status": object{"phase": "Running", "conditions": []any{condition("Initialized", 2), condition("Ready", 10), condition("ContainersReady", 10), condition("PodScheduled", 1)},
			"hostIP": "10.0.0.7", "podIP": ip, "podIPs": []any{object{"ip": ip}}, "startTime": at(2), "qosClass": "Burstable",
			"containerStatuses": []any{status("checkout", app), status("proxy", proxy)}},
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	return raw
}

// owned returns a set of managed fields.
func owned(fields ...string) map[string]any {
	set := map[string]any{}
	for _, field := range fields {
		set[field] = map[string]any{}
	}
	return set
}

func ownedContainer() map[string]any {
	set := owned(".", "f:args", "f:image", "f:imagePullPolicy", "f:name", "f:terminationMessagePath", "f:terminationMessagePolicy")
	set["f:env"] = map[string]any{".": map[string]any{}, `k:{"name":"LOG_LEVEL"}`: owned(".", "f:name", "f:value"),
		`k:{"name":"POD_NAME"}`: map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:valueFrom": owned(".", "f:fieldRef")}}
	set["f:livenessProbe"] = map[string]any{".": map[string]any{}, "f:failureThreshold": map[string]any{}, "f:httpGet": owned(".", "f:path", "f:port", "f:scheme"),
		"f:periodSeconds": map[string]any{}, "f:successThreshold": map[string]any{}, "f:timeoutSeconds": map[string]any{}}
	set["f:resources"] = map[string]any{".": map[string]any{}, "f:limits": owned(".", "f:cpu", "f:memory"), "f:requests": owned(".", "f:cpu", "f:memory")}
	set["f:volumeMounts"] = map[string]any{".": map[string]any{}, `k:{"mountPath":"/etc/app"}`: owned(".", "f:mountPath", "f:name", "f:readOnly")}
	return set
}
