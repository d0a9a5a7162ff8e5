package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (s *shape) spec(id identity) corev1.PodSpec {
	spec := corev1.PodSpec{
		Volumes:                       s.volumes(),
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: pointer[int64](30),
		DNSPolicy:                     corev1.DNSClusterFirst,
		ServiceAccountName:            s.app,
		DeprecatedServiceAccount:      s.app,
		NodeName:                      id.node,
		SecurityContext:               &corev1.PodSecurityContext{RunAsUser: pointer[int64](10001), RunAsNonRoot: pointer(true), FSGroup: pointer[int64](10001)},
		ImagePullSecrets:              []corev1.LocalObjectReference{{Name: "registry-credentials"}},
		SchedulerName:                 "default-scheduler",
		Tolerations: []corev1.Toleration{
			{Key: "node.example.com/pool", Operator: corev1.TolerationOpEqual, Value: "general", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/memory-pressure", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: pointer[int64](300)},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: pointer[int64](300)},
		},
		PriorityClassName:  "production",
		Priority:           pointer[int32](100000),
		EnableServiceLinks: pointer(false),
		PreemptionPolicy:   pointer(corev1.PreemptLowerPriority),
	}
	spec.Containers = []corev1.Container{s.worker(s.app), s.proxy()}
	return spec
}

func (s *shape) volumes() []corev1.Volume {
	mode := pointer[int32](420)
	return []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.app + "-config"}, DefaultMode: mode}}},
		{Name: accessVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: pointer[int64](3607), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		}}}},
	}
}

// accessVolume is the one that admission adds to every pod.
const accessVolume = "kube-api-access-7xk2p"

var accessMount = corev1.VolumeMount{Name: accessVolume, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}

func (s *shape) worker(name string) corev1.Container {
	return corev1.Container{
		Name:                     name,
		Image:                    s.image(name),
		Args:                     []string{"--config=/etc/" + name + "/config.yaml", "--listen=:8080", "--metrics=:9102"},
		Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:                      s.environment(1 + s.number%3),
		Resources:                resources("500m", "1Gi", "2", "2Gi"),
		VolumeMounts:             []corev1.VolumeMount{{Name: "config", ReadOnly: true, MountPath: "/etc/" + name}, accessMount},
		LivenessProbe:            probe("/healthz", 8080, 30),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy:          corev1.PullIfNotPresent,
	}
}

func (s *shape) proxy() corev1.Container {
	return corev1.Container{
		Name:                     "proxy",
		Image:                    "registry.example.com/mesh/proxy:1.24.3",
		Args:                     []string{"--service-cluster", s.app, "--concurrency=2"},
		VolumeMounts:             []corev1.VolumeMount{accessMount},
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy:          corev1.PullIfNotPresent,
	}
}

var settings = []string{"DATABASE_URL", "CACHE_ADDRESS", "QUEUE_BROKERS", "LOG_LEVEL", "REGION", "FEATURE_FLAGS_URL",
	"HTTP_TIMEOUT", "MAX_CONNECTIONS", "TRACING_ENDPOINT", "TRACING_RATIO", "BUCKET", "CURRENCY", "RETRY_LIMIT", "PROFILE"}

// environment has settings as they are given to services: most by value, some from a
// secret.
func (s *shape) environment(count int) []corev1.EnvVar {
	var variables []corev1.EnvVar
	for n, name := range settings[:count] {
		if n%5 == 0 {
			variables = append(variables, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.app + "-credentials"}, Key: name}}})
			continue
		}
		variables = append(variables, corev1.EnvVar{Name: name,
			Value: fmt.Sprintf("%s-%d.%s.svc.cluster.local:%d", s.service, s.random.below(10), s.team, 1024+s.random.below(60000))})
	}
	return variables
}

func resources(cpu, memory, cpuLimit, memoryLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuLimit), corev1.ResourceMemory: resource.MustParse(memoryLimit)},
	}
}

func probe(path string, port int32, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds:   2,
		PeriodSeconds:    period,
		SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}
