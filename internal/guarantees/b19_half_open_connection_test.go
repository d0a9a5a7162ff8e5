package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// B19: after its first state a stream has the whole timeout of a watch. Fails if the deadline
// counts from the request for the stream.
func TestB19TheTimeoutOfAStreamBeginsAfterItsFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := newRecordedWatch(), &errorRecorder{}
		source := &funcSource{watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n == 1 {
				return p, nil
			}
			return newRecordedWatch(), nil
		}, list: func(metav1.ListOptions) (apiruntime.Object, error) { // a check of the version
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}, nil
		}}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Strategy: cache.ListStreaming, ErrorHandler: h.handle, MinWatchTimeout: time.Minute, MaxWatchTimeout: time.Minute,
		}))
		for i := range 20 {
			p.events <- watch.Event{Type: watch.Added, Object: podAt("a", itoa(i), itoa(i+1))}
			sleep(9 * time.Second)
		}
		p.events <- watch.Event{Type: watch.Bookmark, Object: &object{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "20", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}}
		sleep(time.Minute + watchGrace - time.Second)
		assert.Empty(t, h.all())
		sleep(2 * time.Second)
		assert.Equal(t, []cache.Cause{cache.CauseOverdueWatch}, h.causes())
		stop()
	})
}

// B19: a watch that is still open 30 s past its timeout is ended, reported, and resumed from the
// last version without a list. Fails if the wait is unbounded, or if a list follows.
func TestB19AHalfOpenWatchIsEndedAndResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), func(c *cache.Config) {
			c.ReflectorOptions.MinWatchTimeout, c.ReflectorOptions.MaxWatchTimeout = time.Minute, time.Minute
		})
		r.source.Silence()
		r.run()
		synctest.Wait()
		require.NoError(t, r.source.Apply(pod("a", "2")))
		sleep(89 * time.Second)
		assert.Empty(t, r.errors.all())
		assert.Len(t, r.indexer.ListKeys(), 1)
		sleep(2 * time.Second)
		assert.Equal(t, 2, r.source.WatchCalls())
		assert.Equal(t, []cache.Cause{cache.CauseOverdueWatch}, r.errors.causes())
		r.source.Resume()
		sleep(2 * time.Minute)
		assert.Equal(t, 1, listsOf(r.source))
		r.assertEqualsSource()
		r.stop()
	})
}

// B19: the same if the request for the watch is never answered.
func TestB19AWatchRequestThatIsNeverAnsweredIsEndedAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), nil)
		r.source.HangWatches(1)
		r.run()
		sleep(11 * time.Minute)
		assert.Equal(t, []cache.Cause{cache.CauseOverdueWatch}, r.errors.causes())
		var watches []cachetest.Request
		for _, request := range r.source.Requests() {
			if request.Verb == cachetest.VerbWatch {
				watches = append(watches, request)
			}
		}
		timeout := time.Duration(*watches[0].Options.TimeoutSeconds) * time.Second
		assert.InDelta(t, timeout+watchGrace, watches[1].Time.Sub(watches[0].Time), float64(time.Second))
		require.NoError(t, r.source.Apply(pod("a", "2")))
		synctest.Wait()
		r.assertEqualsSource()
		r.stop()
	})
}

// httpRig is a controller whose source is an HTTP server.
type httpRig struct {
	*rig
	server *cachetest.Server
}

func newHTTPRig(t *testing.T, change func(*cache.Config, *kubeapi.Options)) *httpRig {
	source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
	for i := range 1200 {
		require.NoError(t, source.Apply(unstructuredPod("ns-"+itoa(i%7), itoa(i), "first")))
	}
	server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: source}},
	}))
	options := kubeapi.Options{BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client()}
	h := &httpRig{server: server}
	h.rig = newRig(t, source, func(c *cache.Config) {
		c.ObjectType = unstructuredPod("", "", "")
		if change != nil {
			change(c, &options)
		}
		c.ListerWatcher = nil
		if len(c.Namespaces) > 0 {
			return
		}
		api, err := kubeapi.New(options)
		require.NoError(t, err)
		c.ListerWatcher = api
	})
	return h
}

func (h *httpRig) stop() {
	h.rig.stop()
	h.server.Close()
}

// B19: a half-open connection (no more data, no end) is abandoned 30 s after the watch's timeout.
func TestB19AFrozenConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTPRig(t, func(c *cache.Config, o *kubeapi.Options) {
			c.ReflectorOptions.Strategy = cache.ListPaged
			c.ReflectorOptions.MinWatchTimeout, c.ReflectorOptions.MaxWatchTimeout = time.Minute, time.Minute
		})
		h.run()
		sleep(time.Second)
		h.server.Listener.Freeze()
		require.NoError(t, h.source.Apply(unstructuredPod("ns-1", "meanwhile", "x")))
		sleep(88 * time.Second)
		assert.Empty(t, h.errors.all())
		sleep(2 * time.Second)
		assert.Equal(t, []cache.Cause{cache.CauseOverdueWatch}, h.errors.causes())
		h.server.Listener.CutConnections()
		h.server.Listener.Thaw()
		sleep(2 * time.Minute)
		h.assertEqualsSource()
		h.stop()
	})
}

// B19, for lists: a list that stalls is abandoned and repeated. Fails without kubeapi's
// StallTimeout: the list would wait until the context ends.
func TestB19AListOnAFrozenConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTPRig(t, func(c *cache.Config, o *kubeapi.Options) { c.ReflectorOptions.Strategy = cache.ListPaged })
		h.server.Listener.Freeze()
		h.run()
		sleep(2*time.Minute - time.Second)
		assert.Empty(t, h.errors.all())
		sleep(2 * time.Second)
		require.Len(t, h.errors.all(), 1)
		assert.ErrorIs(t, h.errors.all()[0], kubeapi.ErrStalled)
		h.server.Listener.CutConnections()
		h.server.Listener.Thaw()
		sleep(time.Minute)
		require.True(t, h.ctlr.HasSynced())
		h.assertEqualsSource()
		h.stop()
	})
}

// listsOf counts the list requests to a source, each page, but no checks of its version.
func listsOf(source *cachetest.Source) (n int) {
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList && !isVersionCheck(request.Options) {
			n++
		}
	}
	return n
}
