package guarantees

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// fixedMirror is a mirror of a fixedSource that refuses bad objects.
type fixedMirror struct {
	errors   *errorRecorder
	status   func() cache.Status
	versions func() map[string]string
	stop     func()
}

func fixedOptions(h *errorRecorder) cache.ReflectorOptions {
	return cache.ReflectorOptions{Strategy: cache.ListUnpaged, ErrorHandler: h.handle, Random: func() float64 { return 0 }}
}

func fixedInformer(t *testing.T, source *fixedSource, change func(*cache.InformerConfig[*object])) *fixedMirror {
	h := &errorRecorder{}
	config := cache.InformerConfig[*object]{Name: "test", ReflectorOptions: fixedOptions(h)}
	change(&config)
	inf := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- inf.Run(ctx) }()
	synctest.Wait()
	return &fixedMirror{
		h, inf.Status, func() map[string]string { return contents(inf.Shared().GetIndexer()) },
		func() { cancel(); assert.NoError(t, <-done) },
	}
}

// regressions returns the reported version regressions.
func (m *fixedMirror) regressions() []cache.VersionRegressionError {
	r := &restoredRig{rig: &rig{errors: m.errors}}
	return r.regressions()
}

func (m *fixedMirror) quarantine() map[string]string { return quarantinedVersions(m.status()) }

// fixedSource has one object. Each list returns its next state, of which the last one
// repeats; the watches send the events passed to send.
type fixedSource struct {
	funcSource
	lists             []*object
	requestedVersions []string
	open              *recordedWatch
}

func newFixedSource(lists ...*object) *fixedSource {
	f := &fixedSource{lists: lists}
	f.list = func(options metav1.ListOptions) (apiruntime.Object, error) {
		answer := f.lists[min(len(f.requestedVersions), len(f.lists)-1)]
		f.requestedVersions = append(f.requestedVersions, options.ResourceVersion)
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: answer.ResourceVersion}, Items: []metav1.PartialObjectMetadata{*answer},
		}, nil
	}
	f.watch = func(context.Context, int) (watch.Interface, error) {
		f.open = newRecordedWatch()
		return f.open, nil
	}
	return f
}

func (f *fixedSource) send(obj *object) {
	f.open.events <- watch.Event{Type: watch.Modified, Object: obj}
	synctest.Wait()
}

// funcSource is a source made of functions. Without a list function it returns an empty
// list at version 5; watch receives the number of the call, from 1.
type funcSource struct {
	list       func(metav1.ListOptions) (apiruntime.Object, error)
	watch      func(ctx context.Context, n int) (watch.Interface, error)
	watchCalls int
}

func (s *funcSource) List(o metav1.ListOptions) (apiruntime.Object, error) {
	if s.list == nil {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
	}
	return s.list(o)
}

func (s *funcSource) Watch(metav1.ListOptions) (watch.Interface, error) {
	panic("must be called with a context")
}

func (s *funcSource) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.watchCalls++
	return s.watch(ctx, s.watchCalls)
}

// recordedWatch is a watch that records when it was stopped.
type recordedWatch struct {
	events       chan watch.Event
	stopped      time.Time
	onStop       func()
	onResultChan func() (<-chan watch.Event, bool)
}

func newRecordedWatch(events ...watch.Event) *recordedWatch {
	p := &recordedWatch{events: make(chan watch.Event, len(events)+1)}
	for _, e := range events {
		p.events <- e
	}
	return p
}

func (p *recordedWatch) Stop() {
	if p.stopped.IsZero() {
		p.stopped = time.Now()
	}
	if p.onStop != nil {
		p.onStop()
	}
}

func (p *recordedWatch) ResultChan() <-chan watch.Event {
	if p.onResultChan != nil {
		if ch, mine := p.onResultChan(); mine {
			return ch
		}
	}
	return p.events
}

func errorEvent(err error) watch.Event {
	status := err.(interface{ Status() metav1.Status }).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// withItemSource sets the source of a Config.
func withItemSource(s *itemSource) func(*cache.Config) {
	return func(c *cache.Config) { c.ListerWatcher = s }
}

func filledSource(t *testing.T, objects int) *cachetest.Source {
	source := newSource(t)
	for i := range objects {
		require.NoError(t, source.Apply(pod("a", itoa(i))))
	}
	return source
}

// restoredRig is a mirror at version 13 of a source that can be restored to version 3,
// before its last object existed.
type restoredRig struct {
	*rig
	strategy cache.ListStrategy
}

// withRestoredRigs runs a test with each strategy and jitter, and with outages of several durations.
func withRestoredRigs(t *testing.T,
	test func(t *testing.T, r *restoredRig, away time.Duration)) {
	for name, strategy := range strategies {
		for _, away := range []time.Duration{2 * time.Second, 50 * time.Second, 20 * time.Minute} {
			for _, jitter := range jitters {
				t.Run(fmt.Sprintf("%s, away %s, jitter %v", name, away, jitter), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						test(t, newRestoredRig(t, strategy, jitter), away)
					})
				})
			}
		}
	}
}

func newRestoredRig(t *testing.T, strategy cache.ListStrategy, jitter float64) *restoredRig {
	source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"), pod("b", "2"))
	for i := range 9 {
		require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
	}
	r := &restoredRig{strategy: strategy}
	r.rig = newRig(t, source, func(c *cache.Config) {
		deterministic(strategy, jitter)(c)
		c.ReflectorOptions.ErrorHandler = func(ctx context.Context, reflector *cache.Reflector, err error) {
			if regression := new(cache.VersionRegressionError); errors.As(err, &regression) {
				assert.Equal(t, regression.Current, r.indexer.LastStoreSyncResourceVersion(), "a regression is reported before it is applied")
				assert.Equal(t, regression.Current, receivedOf(r.get("a/1")).ResourceVersion)
			}
			r.errors.handle(ctx, reflector, err)
		}
	})
	r.run()
	sleep(healthyTime)
	require.Equal(t, "13", r.ctlr.LastSyncResourceVersion())
	return r
}

// regressions returns the version regressions that the mirror reported.
func (r *restoredRig) regressions() []cache.VersionRegressionError {
	var all []cache.VersionRegressionError
	for _, err := range r.errors.all() {
		if regression := new(cache.VersionRegressionError); errors.As(err, &regression) {
			all = append(all, *regression)
		}
	}
	return all
}

func (r *restoredRig) get(key string) any {
	obj, _, err := r.indexer.GetByKey(key)
	assert.NoError(r, err)
	return obj
}

// assertMirrored fails the test unless the mirror has the restored state, reported the
// regression once, and applies later changes.
func (r *restoredRig) assertMirrored() {
	r.Helper()
	r.assertEqualsSource()
	assert.Equal(r, "3", r.ctlr.LastSyncResourceVersion())
	assert.Equal(r, []cache.VersionRegressionError{{Kind: "list", Current: "13", Received: "3"}}, r.regressions(), "reported once")
	assert.Zero(r, r.status().ConsecutiveFailures)
	requests := len(r.source.Requests())
	assert.NoError(r, r.source.Apply(pod("c", "1")))
	synctest.Wait()
	r.assertEqualsSource()
	assert.Len(r, r.source.Requests(), requests, "no request: received on the open watch")
}

// recoveryRequests are the requests to a restored source, from the first watch on.
func recoveryRequests(strategy cache.ListStrategy) []string {
	if strategy == cache.ListStreaming {
		return []string{`watch "13" version-too-large`, `stream ""`}
	}
	return []string{`watch "13" version-too-large`, `list ""`, `watch "3"`}
}

// expireVersions makes the source answer all requests with "expired" for d, and the first
// list at "" after that. It then recovers: the next request follows after a pause.
func (r *restoredRig) expireVersions(d time.Duration) {
	r.Helper()
	over := make(chan struct{})
	end := time.Now().Add(d)
	r.source.OnWatch(func(metav1.ListOptions) error { return cachetest.ErrExpired() })
	r.source.OnList(func(options metav1.ListOptions) error {
		if options.ResourceVersion == "" && !time.Now().Before(end) {
			r.source.Heal()
			close(over)
		}
		return cachetest.ErrExpired()
	})
	r.source.CloseWatches()
	<-over
	synctest.Wait()
}

func tooLargeRetryAfter(d time.Duration) error {
	err := cachetest.ErrTooLargeResourceVersion(13, 3)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.RetryAfterSeconds = int32(d / time.Second)
	}
	return err
}
