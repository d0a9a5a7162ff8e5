package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/integration/apiserver"
	"github.com/watchmirror/cache/integration/faultproxy"
	"github.com/watchmirror/cache/kubeapi"
)

// recorder notes the queries of requests.
type recorder struct {
	base http.RoundTripper
	mu   sync.Mutex
	all  []url.Values
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.all = append(r.all, request.URL.Query())
	r.mu.Unlock()
	return r.base.RoundTrip(request)
}

// with counts the requests that have a parameter.
func (r *recorder) with(parameter string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, query := range r.all {
		if query.Get(parameter) != "" {
			n++
		}
	}
	return n
}

func TestEachWayOfListingGivesTheServersObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, "widgets")
	r.create(t, 0, 30)
	for name, test := range map[string]struct {
		options cache.ReflectorOptions
		streams int
	}{
		"streamed":  {options: cache.ReflectorOptions{Strategy: cache.ListStreaming}, streams: 1},
		"automatic": {streams: 1}, // kubeapi streams
		// The first list may be of any age. A server answers it from its cache, and ignores the
		// limit.
		"in pages": {options: cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: 7}},
		"whole":    {options: cache.ReflectorOptions{Strategy: cache.ListUnpaged}},
	} {
		t.Run(name, func(t *testing.T) {
			requests := &recorder{base: r.httpClient(t).Transport}
			source := r.source(t, func(o *kubeapi.Options) { o.HTTPClient = &http.Client{Transport: requests} })
			m := overKubeapi(t, source, func(c *cache.InformerConfig[metav1.Object]) {
				handler := c.ReflectorOptions.ErrorHandler
				c.ReflectorOptions = test.options
				c.ReflectorOptions.ErrorHandler = handler
			}).start(t)
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
			require.Zero(t, requests.with("continue"))
			require.Equal(t, test.streams, requests.with("sendInitialEvents"))

			r.paint(t, 3, "red")
			r.delete(t, 4)
			r.create(t, 4, 5) // with another UID
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
			require.Equal(t, "no failure", m.lastFailure())
		})
	}
}

func TestAListAfterAnExpiredVersionComesInPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, "paged")
	r.create(t, 0, 30)
	mirrors, proxies := behind(t, r, reading{pages: 7})
	for _, m := range mirrors {
		m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	}
	for _, p := range proxies {
		require.NoError(t, p.Turn(faultproxy.Fault{Watches: true, Then: faultproxy.Error, Code: http.StatusGone}))
	}
	r.paint(t, 7, "red")
	for i, p := range proxies {
		waitHits(t, p, 1)
		require.NoError(t, p.Turn())
		mirrors[i].requireEqual(t, r.objects(t, metav1.ListOptions{}))
		require.GreaterOrEqual(t, p.Counts().Pages, 4, mirrors[i].name)
	}
}

// This version of the server ignores the parameter. Fails if it answers 406, or if the status says
// something else.
func TestManagedFieldsAreDroppedBesideAServerThatIgnoresTheParameter(t *testing.T) {
	t.Parallel()
	r := newRig(t, "managed")
	r.create(t, 0, 5)
	for name, change := range map[string]func(*kubeapi.Options){
		"dropped":  nil,
		"metadata": func(o *kubeapi.Options) { o.ObjectType = &metav1.PartialObjectMetadata{} },
		"fields":   func(o *kubeapi.Options) { o.Fields = []string{"spec.color"} },
		"kept":     func(o *kubeapi.Options) { o.KeepManagedFields = true },
	} {
		t.Run(name, func(t *testing.T) {
			requests := &recorder{base: r.httpClient(t).Transport}
			source := r.source(t, func(o *kubeapi.Options) {
				if o.HTTPClient = (&http.Client{Transport: requests}); change != nil {
					change(o)
				}
			})
			informer := cache.NewTypedInformer(source, cache.InformerConfig[metav1.Object]{})
			run(t, informer)
			require.NoError(t, informer.WaitSynced(within(t, patience)))
			last := r.paint(t, 1, name)
			require.NoError(t, informer.WaitForResourceVersion(within(t, patience), last.GetResourceVersion()))
			entries := 0
			for _, obj := range informer.All() {
				entries += len(obj.GetManagedFields())
			}
			status := informer.Status()
			t.Logf("%s: %d entries in %d objects, %v, %d requests", name, entries, informer.Len(), status.Source, len(requests.all))
			require.Empty(t, status.Failures)
			if name == "kept" {
				require.GreaterOrEqual(t, entries, 5)
				require.Equal(t, "kept", status.Source["managedFields"])
				return
			}
			require.Zero(t, entries)
			require.Equal(t, "dropped by the client, the server sends them", status.Source["managedFields"])
		})
	}
}

func TestTheAdapterAndClientGoSeeTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, "adapted")
	r.create(t, 0, 30)
	mirrors := readers(t, r, reading{}, direct(r))
	stop := r.churn(t, 60, time.Millisecond)
	time.Sleep(2 * time.Second)
	stop()
	for _, m := range mirrors {
		m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	}
}

func TestSelectorsAndMetadataAloneFollowObjectsInAndOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, "selected")
	r.create(t, 0, 10)
	for name, how := range map[string]reading{
		"label":                 {labels: "color=red"},
		"field":                 {fields: "spec.color=red"},
		"name":                  {fields: "metadata.name=" + name(2)},
		"metadata":              {metadata: true},
		"metadata with a label": {metadata: true, labels: "color=red"},
	} {
		t.Run(name, func(t *testing.T) {
			r.paint(t, 1, "red")
			mirrors := readers(t, r, how, direct(r))
			requireEqual := func() {
				for _, m := range mirrors {
					m.requireEqual(t, how.wanted(t, r))
				}
			}
			requireEqual()
			r.paint(t, 1, "blue")
			r.paint(t, 2, "red")
			r.paint(t, 3, "red")
			requireEqual()
			r.paint(t, 2, "blue")
			r.delete(t, 3)
			requireEqual()
			r.create(t, 3, 4)
		})
	}
}

func TestMetadataAloneComesInEachEncoding(t *testing.T) {
	t.Parallel()
	r := newRig(t, "labelled")
	r.create(t, 0, 10)
	for _, encoding := range []kubeapi.Encoding{kubeapi.JSON, kubeapi.Protobuf} {
		t.Run(string(encoding), func(t *testing.T) {
			source := r.source(t, func(o *kubeapi.Options) {
				o.ObjectType, o.Encodings = &metav1.PartialObjectMetadata{}, []kubeapi.Encoding{encoding}
			})
			informer := cache.NewTypedInformer(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{})
			run(t, informer)
			require.NoError(t, informer.WaitSynced(within(t, patience)))
			for range 2 {
				for key, want := range r.objects(t, metav1.ListOptions{}) {
					have, err := informer.Get(key)
					require.NoError(t, err)
					require.Equal(t, want.GetUID(), have.UID)
					require.Equal(t, want.GetResourceVersion(), have.ResourceVersion)
					require.Equal(t, want.GetLabels(), have.Labels)
					require.Empty(t, have.ManagedFields)
				}
				require.Equal(t, 10, informer.Len())
				painted := r.paint(t, 5, string(encoding[len(encoding)-4:]))
				require.NoError(t, informer.WaitForResourceVersion(within(t, patience), painted.GetResourceVersion()))
			}
		})
	}
}

// Custom resources are not served in protobuf or CBOR: a client that prefers these has to accept
// JSON.
func TestATypeThatTheServerHasOnlyInJSONIsReadWithAnyPreference(t *testing.T) {
	t.Parallel()
	r := newRig(t, "json-only")
	r.create(t, 0, 5)
	for _, preferred := range []kubeapi.Encoding{kubeapi.Protobuf, kubeapi.CBOR} {
		t.Run(string(preferred), func(t *testing.T) {
			source := r.source(t, func(o *kubeapi.Options) {
				// Some type with protobuf. Its kind would be ConfigMap.
				o.ObjectType = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{
					APIVersion: r.resource.GroupVersion().String(), Kind: apiserver.Kind(r.resource),
				}}
				o.Encodings = []kubeapi.Encoding{preferred}
			})
			informer := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.ConfigMap]{})
			run(t, informer)
			require.NoError(t, informer.WaitSynced(within(t, patience)))
			require.Equal(t, 5, informer.Len())
			painted := r.paint(t, 1, string(preferred[len(preferred)-4:]))
			require.NoError(t, informer.WaitForResourceVersion(within(t, patience), painted.GetResourceVersion()))
			have, err := informer.Get(r.key(1))
			require.NoError(t, err)
			require.Equal(t, painted.GetLabels(), have.Labels)
		})
	}
}

// thing is a Go type of a custom resource.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Color string `json:"color"`
		Count int    `json:"count"`
	} `json:"spec"`
}

func (t *thing) DeepCopyObject() runtime.Object {
	c := *t
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func TestGoTypesAreReadFromJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, "things")
	r.create(t, 0, 5)
	source := r.source(t, func(o *kubeapi.Options) { o.ObjectType = &thing{} })
	things := cache.NewTypedInformer(source, cache.InformerConfig[*thing]{
		Indexes: cache.TypedIndexers[*thing]{"color": func(obj *thing) ([]string, error) { return []string{obj.Spec.Color}, nil }},
	})
	run(t, things)
	require.NoError(t, things.WaitSynced(within(t, patience)))
	painted := r.paint(t, 1, "red")
	require.NoError(t, things.WaitForResourceVersion(within(t, patience), painted.GetResourceVersion()))
	red, err := things.ByIndex("color", "red")
	require.NoError(t, err)
	require.Len(t, red, 1)
	require.Equal(t, painted.GetUID(), red[0].UID)
	blue, err := things.ByIndex("color", "blue")
	require.NoError(t, err)
	require.Len(t, blue, 4)
}

func TestAnObjectWithNamedFieldsOnlyIsRefusedByTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, "parts")
	r.create(t, 0, 3)
	source := r.source(t, func(o *kubeapi.Options) { o.Fields = []string{"spec.color"} })
	parts := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
	run(t, parts)
	require.NoError(t, parts.WaitSynced(within(t, patience)))
	part, err := parts.Get(r.key(1))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"color": "blue"}, part.Object["spec"])
	_, err = r.client.Update(t.Context(), part.DeepCopy(), metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestBookmarksMoveTheVersionOfAQuietType(t *testing.T) {
	t.Parallel()
	quiet, busy := newRig(t, "quiet"), other.in(t, "busy")
	quiet.create(t, 0, 1)
	mirrors := readers(t, quiet, reading{watches: 5 * time.Second}, direct(quiet)) // a server sends a bookmark shortly before a watch ends
	for _, m := range mirrors {
		m.requireEqual(t, quiet.objects(t, metav1.ListOptions{}))
	}
	busy.create(t, 0, 1)
	written := version(busy.paint(t, 0, "red").GetResourceVersion())
	for _, m := range mirrors {
		require.Eventually(t, func() bool { return version(m.version()) >= written }, patience, 10*time.Millisecond, m.name)
		if m.ours {
			require.Equal(t, "no failure", m.lastFailure(), m.name)
		}
	}
}

// A reflector relies on what this suite checks of a source.
func TestTheServerKeepsThePromisesOfASource(t *testing.T) {
	t.Parallel()
	r := ownRig(t) // some checks compare versions, which move with each write
	checks := 0
	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Quiet: 200 * time.Millisecond, Patience: patience,
		New: func(tb testing.TB) conformance.ListerWatcherRig {
			checks++
			own := r.in(t, fmt.Sprint("check-", checks))
			write := func(write func(context.Context, *object) error) func(name, mark string) error {
				return func(name, mark string) error {
					obj := r.object(name, map[string]any{})
					obj.SetAnnotations(map[string]string{conformance.MarkAnnotation: mark})
					return write(context.Background(), obj)
				}
			}
			return conformance.ListerWatcherRig{
				Source: own.source(t, nil),
				Create: write(func(ctx context.Context, obj *object) error {
					_, err := own.client.Create(ctx, obj, metav1.CreateOptions{})
					return err
				}),
				Update: write(func(ctx context.Context, obj *object) error {
					have, err := own.client.Get(ctx, obj.GetName(), metav1.GetOptions{})
					if err != nil {
						return err
					}
					have.SetAnnotations(obj.GetAnnotations())
					_, err = own.client.Update(ctx, have, metav1.UpdateOptions{})
					return err
				}),
				Label: func(name, value string) error {
					ctx := context.Background()
					have, err := own.client.Get(ctx, name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					have.SetLabels(map[string]string{conformance.SelectedLabel: value})
					_, err = own.client.Update(ctx, have, metav1.UpdateOptions{})
					return err
				},
				Delete: func(name string) error { return own.client.Delete(context.Background(), name, metav1.DeleteOptions{}) },
			}
		},
	})
	t.Log(checks, "checks")
}
