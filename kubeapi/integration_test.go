package kubeapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// rig is a source of kubeapi, the backend that it should show, and an HTTP server and client
// between them, all inside one bubble.
type rig struct {
	truth  *cachetest.Source
	server *cachetest.Server
	source *kubeapi.ListerWatcher
}

func inBubble(t *testing.T, change func(*kubeapi.Options), test func(*testing.T, rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		deployments := schema.GroupVersionResource{
			Group:    "apps",
			Version:  "v1",
			Resource: "deployments",
		}
		truth := cachetest.NewSource(cachetest.Options{
			GroupVersionKind: schema.GroupVersionKind{
				Group:   "apps",
				Version: "v1",
				Kind:    "Deployment",
			},
			Resource: deployments.GroupResource(),
		})
		defer truth.Close()
		server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
			Token:     "open sesame",
			Resources: []cachetest.Resource{{GroupVersionResource: deployments, Source: truth}},
		}))
		defer server.Close()
		options := kubeapi.Options{
			BaseURL: server.URL, Resource: deployments, HTTPClient: server.Client(),
			Authorize: bearer("open sesame"),
		}
		if change != nil {
			change(&options)
		}
		source, err := kubeapi.New(options)
		require.NoError(t, err)
		test(t, rig{truth, server, source})
	})
}

func bearer(token string) func(*http.Request) error {
	return func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+token); return nil }
}

func deployment(namespace, name, tier string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "labels": map[string]any{"tier": tier},
		},
		"spec": map[string]any{"replicas": int64(3)},
	}}
}

func (r rig) fill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, r.truth.Apply(deployment("shop", fmt.Sprintf("web-%02d", i), "front")))
	}
}

func (r rig) list(t *testing.T, options metav1.ListOptions) *internalversion.List {
	t.Helper()
	list, err := r.source.ListWithContext(t.Context(), options)
	require.NoError(t, err)
	return list.(*internalversion.List)
}

func (r rig) watch(t *testing.T, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := r.source.WatchWithContext(t.Context(), options)
	require.NoError(t, err)
	return w
}

func describe(event watch.Event) string {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("%s %T", event.Type, event.Object)
	}
	return fmt.Sprintf(
		"%s %s/%s@%s", event.Type, object.GetKind(), object.GetName(), object.GetResourceVersion())
}

func TestAMirrorSeesTheListAndEveryChangeAfterIt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 3)
		list := r.list(t, metav1.ListOptions{})
		require.Equal(t, r.truth.ResourceVersion(), list.GetResourceVersion())
		require.Len(t, list.Items, 3)
		for i, want := range r.truth.Objects() {
			require.Equal(t, want, list.Items[i])
		}

		w := r.watch(
			t,
			metav1.ListOptions{
				ResourceVersion:     list.GetResourceVersion(),
				AllowWatchBookmarks: true,
			},
		)
		require.NoError(t, r.truth.Apply(deployment("shop", "new", "back")))
		require.Equal(t, "ADDED Deployment/new@4", describe(<-w.ResultChan()))
		require.NoError(t, r.truth.Apply(deployment("shop", "new", "front")))
		require.Equal(t, "MODIFIED Deployment/new@5", describe(<-w.ResultChan()))
		_, err := r.truth.Delete("shop", "new")
		require.NoError(t, err)
		require.Equal(t, "DELETED Deployment/new@6", describe(<-w.ResultChan()))
		r.truth.SendBookmarks()
		require.Equal(t, "BOOKMARK Deployment/@6", describe(<-w.ResultChan()))

		w.Stop()
		synctest.Wait()
		require.Zero(t, r.server.Listener.Connections(), "a stopped watch gives its connection up")
	})
}

func TestPagesAreAskedForOneByOne(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 5)
		first := r.list(t, metav1.ListOptions{Limit: 3})
		require.Len(t, first.Items, 3)
		require.EqualValues(t, 2, *first.GetRemainingItemCount())
		rest := r.list(t, metav1.ListOptions{Limit: 3, Continue: first.GetContinue()})
		require.Len(t, rest.Items, 2)
		require.Empty(t, rest.GetContinue())
		require.Equal(t, 1, r.server.Listener.Connections(), "both came over one connection")

		r.truth.ExpireContinueTokens()
		_, err := r.source.List(metav1.ListOptions{Limit: 3, Continue: first.GetContinue()})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		var refused *apierrors.StatusError
		require.ErrorAs(t, err, &refused)
		require.NotEmpty(
			t, refused.ErrStatus.Continue, "what the server offers instead is not lost")
	})
}

func TestNamespaceAndSelectorsLimitListAndWatch(t *testing.T) {
	narrow := func(o *kubeapi.Options) {
		o.Namespace = "shop"
		o.LabelSelector = "tier=front"
		o.FieldSelector = "spec.replicas=3"
	}
	inBubble(t, narrow, func(t *testing.T, r rig) {
		require.NoError(t, r.truth.Apply(
			deployment(
				"shop", "yes", "front"),
			deployment("shop", "no", "back"),
			deployment("other", "no", "front"),
		))
		list := r.list(t, metav1.ListOptions{})
		require.Len(t, list.Items, 1)
		require.Equal(t, "yes", list.Items[0].(*unstructured.Unstructured).GetName())
		require.Empty(
			t, r.list(t, metav1.ListOptions{LabelSelector: "tier=back"}).Items,
			"nothing has both tiers")

		w := r.watch(t, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		defer w.Stop()
		require.NoError(
			t,
			r.truth.Apply(deployment("other", "yes", "front"), deployment("shop", "yes", "back")),
		)
		require.Equal(
			t, "DELETED Deployment/yes@5", describe(<-w.ResultChan()), "it left the selection")
	})
}

func TestAStreamingListEndsWithItsBookmark(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 2)
		w := r.watch(t, metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		defer w.Stop()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		end := <-w.ResultChan()
		require.Equal(t, "BOOKMARK Deployment/@2", describe(end))
		require.Equal(
			t, "true",
			end.Object.(*unstructured.Unstructured).GetAnnotations()[metav1.InitialEventsAnnotationKey],
		)
		require.NoError(t, r.truth.Apply(deployment("shop", "late", "front")))
		require.Equal(t, "ADDED Deployment/late@3", describe(<-w.ResultChan()))
	})
}

func TestRefusalsOfAWholeServerAreAPIErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 3)
		r.truth.FailLists(1, apierrors.NewTooManyRequests("slow down", 17))
		_, err := r.source.List(metav1.ListOptions{})
		require.True(t, apierrors.IsTooManyRequests(err))
		seconds, _ := apierrors.SuggestsClientDelay(err)
		require.Equal(t, 17, seconds)

		r.truth.CompactAll()
		_, err = r.source.Watch(metav1.ListOptions{ResourceVersion: "1"})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)

		_, err = r.source.List(metav1.ListOptions{
			ResourceVersion:      "99",
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		require.True(
			t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)

		r.truth.BreakNextWatches(1, 0, apierrors.NewInternalError(fmt.Errorf("etcd")))
		w := r.watch(t, metav1.ListOptions{ResourceVersion: "3"})
		event := <-w.ResultChan()
		require.True(t, apierrors.IsInternalError(apierrors.FromObject(event.Object)))
		require.False(
			t, apierrors.HasStatusCause(apierrors.FromObject(event.Object), kubeapi.CauseStreamCut))
		w.Stop()
	})
}

func TestWithoutTheTokenNothingIsShown(t *testing.T) {
	inBubble(t, func(o *kubeapi.Options) { o.Authorize = nil }, func(t *testing.T, r rig) {
		_, err := r.source.List(metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		_, err = r.source.Watch(metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	})
	inBubble(
		t,
		func(o *kubeapi.Options) { o.Resource.Resource = "deployment" },
		func(t *testing.T, r rig) {
			_, err := r.source.List(metav1.ListOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		},
	)
}

func TestTheServersTimeoutClosesAWatchWithoutAnError(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		start := time.Now()
		w := r.watch(t, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](300)})
		event, open := <-w.ResultChan()
		require.False(t, open, "%v", event)
		require.Equal(t, 5*time.Minute, time.Since(start))
		w.Stop()
		require.Empty(t, r.list(t, metav1.ListOptions{}).Items)
		require.Equal(
			t, 1, r.server.Listener.Connections(), "the list came over the watch's connection")
	})
}

func TestALostConnectionEndsAWatchWithStreamCutAndRefusesTheNext(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		w := r.watch(t, metav1.ListOptions{})
		synctest.Wait()
		r.server.Listener.RefuseConnections(true)
		r.server.Listener.CutConnections()
		event := <-w.ResultChan()
		require.Equal(t, watch.Error, event.Type)
		require.True(
			t, apierrors.HasStatusCause(apierrors.FromObject(event.Object), kubeapi.CauseStreamCut))
		_, open := <-w.ResultChan()
		require.False(t, open)

		_, err := r.source.List(metav1.ListOptions{})
		require.True(t, utilnet.IsConnectionRefused(err), "%v", err)
		_, err = r.source.Watch(metav1.ListOptions{})
		require.True(t, utilnet.IsConnectionRefused(err), "%v", err)
	})
}

func TestAHalfOpenConnectionBlocksNoCallBeyondItsContext(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 1)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := r.source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"})
		require.NoError(t, err)
		synctest.Wait()
		r.server.Listener.Freeze()
		r.fill(t, 1)
		event, open := <-w.ResultChan()
		require.False(t, open, "%v", event)
		w.Stop()
		require.Equal(t, time.Minute, time.Since(start))

		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = r.source.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Minute, time.Since(start))
	})
}

// Wherever a connection breaks, a list is complete or an error, and a watch delivers complete
// events and then an error that it was cut.
func TestATruncatedBodyNeverReturnsPartOfAnObject(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r rig) {
		r.fill(t, 5)
		const size = 2_500 // more than the list with its headers
		whole := 0
		for at := 0; at < size; at += 13 {
			r.server.Client().CloseIdleConnections()
			r.server.Listener.CutNext(1, at)
			list, err := r.source.List(metav1.ListOptions{})
			if err == nil {
				require.Len(t, list.(*internalversion.List).Items, 5)
				whole++
			}
		}
		require.Positive(t, whole)
		require.Less(t, whole, size/13, "no connection was cut: the test tests nothing")

		cuts := 0
		for at := 0; at < size; at += 13 {
			r.server.Client().CloseIdleConnections()
			r.server.Listener.CutNext(1, at)
			w, err := r.source.Watch(metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
			if err != nil {
				continue
			}
			events := 0
			for event := range w.ResultChan() {
				if event.Type == watch.Error {
					require.True(
						t,
						apierrors.HasStatusCause(
							apierrors.FromObject(event.Object), kubeapi.CauseStreamCut),
						"%v",
						event.Object,
					)
					events = -1
					cuts++
					break
				}
				require.Equal(
					t, fmt.Sprintf("ADDED Deployment/web-%02d@%d", events, events+1),
					describe(event))
				events++
			}
			w.Stop()
			require.Contains(t, []int{-1, 5}, events, "a good end comes after all events only")
		}
		require.Positive(t, cuts)
	})
}
