package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// patience is how long a cache may take to converge.
const patience = time.Minute

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// rig is a namespace with pods.
type rig struct {
	*cluster
	namespace string
	client    kubernetes.Interface
	pods      typed.PodInterface
}

func newRig(t *testing.T, namespace string, count int) *rig {
	r := &rig{cluster: running, namespace: namespace, client: running.client(t)}
	_, err := r.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.pods = r.client.CoreV1().Pods(namespace)
	for i := range count {
		_, err := r.pods.Create(t.Context(), pod(i), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return r
}

func pod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", i), Labels: map[string]string{"app": fmt.Sprint("app-", i%7)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.test/main:1"}}},
	}
}

// paint changes a label.
func (r *rig) paint(t *testing.T, i int, color string) *corev1.Pod {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"color":%q}}}`, color)
	painted, err := r.pods.Patch(t.Context(), pod(i).Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	require.NoError(t, err)
	return painted
}

// churn changes, deletes and creates pods until stop is called. A server that is away does not
// matter.
func (r *rig) churn(t *testing.T, count int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	var done sync.WaitGroup
	done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			i := random.IntN(count)
			limited, end := context.WithTimeout(context.Background(), 10*time.Second)
			switch random.IntN(5) {
			case 0:
				_ = r.pods.Delete(limited, pod(i).Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			case 1:
				_, _ = r.pods.Create(limited, pod(i), metav1.CreateOptions{})
			default:
				_, _ = r.pods.Patch(limited, pod(i).Name, "application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n), metav1.PatchOptions{})
			}
			end()
			time.Sleep(2 * time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return stop
}

// mediaTypes notes what the server declares of its answers.
type mediaTypes struct {
	base http.RoundTripper
	mu   sync.Mutex
	seen map[string]int
}

func (m *mediaTypes) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.base.RoundTrip(r)
	if err == nil {
		m.mu.Lock()
		m.seen[response.Header.Get("Content-Type")]++
		m.mu.Unlock()
	}
	return response, err
}

// source is kubeapi's, of the pods in the namespace, as the administrator.
func (r *rig) source(t *testing.T, change func(*kubeapi.Options)) (*kubeapi.ListerWatcher, *mediaTypes) {
	client, err := kubeapi.ClientWithCA(r.ca())
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	types := &mediaTypes{base: client.Transport, seen: map[string]int{}}
	options := kubeapi.Options{
		BaseURL: r.url(), Resource: pods, Namespace: r.namespace, ObjectType: &corev1.Pod{}, HTTPClient: &http.Client{Transport: types},
		Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+adminToken); return nil },
	}
	if change != nil {
		change(&options)
	}
	source, err := kubeapi.New(options)
	require.NoError(t, err)
	return source, types
}

func start[T cache.Object](t *testing.T, source cache.Source, options cache.ReflectorOptions) *cache.Informer[T] {
	options.ErrorHandler = func(context.Context, *cache.Reflector, error) {} // the status counts them
	informer := cache.NewTypedInformer[T](source, cache.InformerConfig[T]{ReflectorOptions: options})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- informer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return informer
}

// requireEqual waits until the cache equals the server object by object, and returns how long that
// took.
func (r *rig) requireEqual(t *testing.T, informer *cache.Informer[*corev1.Pod]) time.Duration {
	t.Helper()
	begin, difference := time.Now(), ""
	for time.Since(begin) < patience {
		list, err := r.pods.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		if difference = differs(informer, list.Items); difference == "" {
			return time.Since(begin)
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Empty(t, difference, "%s", informer.Status())
	return 0
}

func differs(informer *cache.Informer[*corev1.Pod], items []corev1.Pod) string {
	if informer.Len() != len(items) {
		return fmt.Sprintf("%d pods instead of %d", informer.Len(), len(items))
	}
	for i := range items {
		want := &items[i]
		want.ManagedFields = nil
		have, err := informer.Get(want.Namespace + "/" + want.Name)
		if err != nil || !equality.Semantic.DeepEqual(have, want) {
			return want.Name + " differs"
		}
	}
	return ""
}

func waitPhase(t *testing.T, informer *cache.Informer[*corev1.Pod], phase cache.Phase) time.Duration {
	t.Helper()
	begin := time.Now()
	for status := range informer.StatusChanges(within(t, patience)) {
		if status.Phase == phase {
			return time.Since(begin)
		}
	}
	t.Fatalf("never %s: %s", phase, informer.Status())
	return 0
}

func TestPodsInEachEncodingAndWayOfListing(t *testing.T) {
	const count = 500
	r := newRig(t, "pods", count)
	for _, test := range []struct {
		name, types string
		encodings   []kubeapi.Encoding
		strategy    cache.ListStrategy
	}{
		{"protobuf, streamed", "application/vnd.kubernetes.protobuf;stream=watch", nil, cache.ListStreaming},
		{"protobuf, in pages", "application/vnd.kubernetes.protobuf", nil, cache.ListPaged},
		{"protobuf, whole", "application/vnd.kubernetes.protobuf", nil, cache.ListUnpaged},
		{"JSON, streamed", "application/json", []kubeapi.Encoding{kubeapi.JSON}, cache.ListStreaming},
		{"JSON, in pages", "application/json", []kubeapi.Encoding{kubeapi.JSON}, cache.ListPaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			source, types := r.source(t, func(o *kubeapi.Options) { o.Encodings = test.encodings })
			begin := time.Now()
			informer := start[*corev1.Pod](t, source, cache.ReflectorOptions{Strategy: test.strategy, PageSize: 100})
			require.NoError(t, informer.WaitSynced(within(t, patience)))
			synced := time.Since(begin)
			r.requireEqual(t, informer)
			stop := r.churn(t, count)
			time.Sleep(2 * time.Second)
			stop()
			after := r.requireEqual(t, informer)
			status := informer.Status()
			t.Logf("K | %s | %d pods synced in %.2f s, equal %.2f s after churn, media types %v, managed fields %s",
				test.name, count, synced.Seconds(), after.Seconds(), types.seen, status.Source["managedFields"])
			require.Empty(t, status.Failures)
			require.NotZero(t, types.seen[test.types])
			require.Equal(t, "dropped by the client, the server sends them", status.Source["managedFields"])
			require.NoError(t, informer.Verify(within(t, patience)))
		})
	}
}

func TestMetadataAloneAndNamedFieldsOfPods(t *testing.T) {
	r := newRig(t, "parts", 50)
	for name, change := range map[string]func(*kubeapi.Options){
		"metadata in protobuf": func(o *kubeapi.Options) { o.ObjectType = &metav1.PartialObjectMetadata{} },
		"fields in protobuf":   func(o *kubeapi.Options) { o.Fields = []string{"spec.nodeName", "status.phase"} },
		"a label selector":     func(o *kubeapi.Options) { o.LabelSelector = "app=app-1" },
		"a field selector":     func(o *kubeapi.Options) { o.FieldSelector = "metadata.name=pod-0001" },
	} {
		t.Run(name, func(t *testing.T) {
			source, types := r.source(t, change)
			informer := start[metav1.Object](t, source, cache.ReflectorOptions{})
			require.NoError(t, informer.WaitSynced(within(t, patience)))
			last := r.paint(t, 1, fmt.Sprint(len(name)))
			require.NoError(t, informer.WaitForResourceVersion(within(t, patience), last.ResourceVersion))
			have, err := informer.Get(r.namespace + "/pod-0001")
			require.NoError(t, err)
			require.Equal(t, last.ResourceVersion, have.GetResourceVersion())
			t.Logf("K | %s | %d objects, media types %v", name, informer.Len(), types.seen)
			require.Empty(t, informer.Status().Failures)
		})
	}
}

// account is a service account that may read pods of its namespace, with a token in a file.
func (r *rig) account(t *testing.T) (token string) {
	ctx := t.Context()
	_, err := r.client.CoreV1().ServiceAccounts(r.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.client.RbacV1().Roles(r.namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.bind(t, "reader")
	token = filepath.Join(t.TempDir(), "token")
	r.writeToken(t, token, "first")
	return token
}

// bind grants a role to the account.
func (r *rig) bind(t *testing.T, role string) {
	_, err := r.client.RbacV1().RoleBindings(r.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: r.namespace}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// writeToken puts a new token of the account into the file. It is valid as long as the Secret of
// that name.
func (r *rig) writeToken(t *testing.T, file, secret string) {
	bound, err := r.client.CoreV1().Secrets(r.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	require.NoError(t, err)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret, UID: bound.UID},
	}}
	answer, err := r.client.CoreV1().ServiceAccounts(r.namespace).CreateToken(t.Context(), "reader", request, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".new", []byte(answer.Status.Token), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// asReader is an informer with the account's token. Its watches are short: one that is open is not
// checked again.
func (r *rig) asReader(t *testing.T, token string) *cache.Informer[*corev1.Pod] {
	source, _ := r.source(t, func(o *kubeapi.Options) { o.Authorize = kubeapi.BearerTokenFile(token) })
	informer := start[*corev1.Pod](t, source, cache.ReflectorOptions{MinWatchTimeout: 3 * time.Second, MaxWatchTimeout: 4 * time.Second})
	require.NoError(t, informer.WaitSynced(within(t, patience)))
	return informer
}

func TestAccessThatIsWithdrawnAndGranted(t *testing.T) {
	r := newRig(t, "withdrawn", 20)
	informer := r.asReader(t, r.account(t))
	r.requireEqual(t, informer)
	require.NoError(t, r.client.RbacV1().RoleBindings(r.namespace).Delete(t.Context(), "reader", metav1.DeleteOptions{}))
	noticed := waitPhase(t, informer, cache.PhaseForbidden)
	require.Equal(t, 20, informer.Len(), "its content stays")
	require.Error(t, informer.Fresh(within(t, 10*time.Second)))
	r.paint(t, 3, "red")
	r.bind(t, "reader")
	equal := r.requireEqual(t, informer)
	watching := waitPhase(t, informer, cache.PhaseWatching)
	status := informer.Status()
	t.Logf("K | RBAC withdrawn and granted | forbidden after %.1f s, equal %.1f s after it was granted, watching %.1f s later, failures %v",
		noticed.Seconds(), equal.Seconds(), watching.Seconds(), status.Failures)
	require.Equal(t, status.Failures[cache.CauseForbidden], sum(status.Failures), "nothing else failed")
}

func TestATokenThatIsReplaced(t *testing.T) {
	r := newRig(t, "replaced", 20)
	token := r.account(t)
	informer := r.asReader(t, token)
	r.writeToken(t, token, "second") // both are valid
	require.NoError(t, r.client.CoreV1().Secrets(r.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}))
	time.Sleep(12 * time.Second) // an API server may remember for 10 s that a token was valid
	r.paint(t, 1, "red")
	equal := r.requireEqual(t, informer)
	require.Empty(t, informer.Status().Failures, "the file is read for each request")

	require.NoError(t, r.client.CoreV1().Secrets(r.namespace).Delete(t.Context(), "second", metav1.DeleteOptions{}))
	begin := time.Now()
	for informer.Status().Failures[cache.CauseUnauthorized] == 0 {
		require.Less(t, time.Since(begin), patience)
		time.Sleep(50 * time.Millisecond)
	}
	refused := time.Since(begin)
	r.paint(t, 2, "red")
	r.writeToken(t, token, "third")
	again := r.requireEqual(t, informer)
	t.Logf("K | token replaced | before it expired: equal in %.1f s, no failure; after it was revoked: refused after %.1f s, equal %.1f s after the new one",
		equal.Seconds(), refused.Seconds(), again.Seconds())
	require.Equal(t, informer.Status().Failures[cache.CauseUnauthorized], sum(informer.Status().Failures), "nothing else failed")
}

func sum(failures map[cache.Cause]int64) (all int64) {
	for _, count := range failures {
		all += count
	}
	return all
}

func TestFreshAndVerifyOfAnIdleType(t *testing.T) {
	r := newRig(t, "idle", 20)
	source, _ := r.source(t, nil)
	informer := start[*corev1.Pod](t, source, cache.ReflectorOptions{})
	require.NoError(t, informer.WaitSynced(within(t, patience)))
	var fresh, verify time.Duration
	for range 5 {
		time.Sleep(time.Second)
		begin := time.Now()
		require.NoError(t, informer.Fresh(within(t, patience)))
		fresh = max(fresh, time.Since(begin))
		begin = time.Now()
		require.NoError(t, informer.Verify(within(t, patience)))
		verify = max(verify, time.Since(begin))
	}
	t.Logf("K | idle type | Fresh at most %.2f s, Verify at most %.2f s", fresh.Seconds(), verify.Seconds())
	require.Empty(t, informer.Status().Failures)
}

func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	r := newRig(t, "killed", 200)
	source, _ := r.source(t, nil)
	informer := start[*corev1.Pod](t, source, cache.ReflectorOptions{})
	require.NoError(t, informer.WaitSynced(within(t, patience)))
	stop := r.churn(t, 200)
	time.Sleep(time.Second)
	require.NoError(t, r.stop())
	time.Sleep(2 * time.Second)
	require.NoError(t, r.cluster.start())
	time.Sleep(time.Second)
	stop()
	equal := r.requireEqual(t, informer)
	t.Logf("K | killed and started under load | equal %.1f s after the churn, failures %v", equal.Seconds(), informer.Status().Failures)
	require.NoError(t, informer.Verify(within(t, patience)))
}

// The quickstart, through a proxy that authenticates, as kubectl proxy does.
func TestTheQuickstartMirrorsPods(t *testing.T) {
	r := newRig(t, "quickstart", 50)
	authority, err := os.ReadFile(r.ca())
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	target, err := url.Parse(r.url())
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Set("Authorization", "Bearer "+adminToken)
		},
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
	})
	defer proxy.Close()
	program := filepath.Join(t.TempDir(), "quickstart")
	build := exec.Command("go", "build", "-o", program, "./examples/quickstart")
	build.Dir = "../.."
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	stop := r.churn(t, 50)
	time.AfterFunc(2*time.Second, stop)
	begin := time.Now()
	output, err = exec.CommandContext(within(t, patience), program, "-server", proxy.URL, "-for", "3s", "-namespace", r.namespace).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "the mirror equals the source")
	t.Logf("K | quickstart behind a proxy | %.1f s, %d bytes printed", time.Since(begin).Seconds(), len(output))
}
