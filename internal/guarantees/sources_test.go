package guarantees

import (
	"context"
	"errors"
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

// fixedMirror is a mirror of a fixedSource, in which bad objects cannot be applied.
type fixedMirror struct {
	held   *heard
	status func() cache.Status
	shown  func() map[string]string
	stop   func()
}

func fixedOptions(h *heard) cache.ReflectorOptions {
	return cache.ReflectorOptions{Strategy: cache.ListUnpaged, ErrorHandler: h.handle, Random: func() float64 { return 0 }}
}

func fixedInformer(t *testing.T, source *fixedSource, change func(*cache.InformerConfig[*object])) *fixedMirror {
	h := &heard{}
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

// regressions are those that were reported.
func (m *fixedMirror) regressions() []cache.VersionRegressionError {
	r := &restoredRig{&rig{heard: m.held}}
	return r.regressions()
}

func (m *fixedMirror) quarantine() map[string]string { return heldVersions(m.status()) }

// fixedSource answers what it receives to: each list with the next state of one object, the
// last one again and again, and its watches with the events sent to them.
type fixedSource struct {
	scripted
	lists []*object
	asked []string
	open  *probe
}

func newFixedSource(lists ...*object) *fixedSource {
	f := &fixedSource{lists: lists}
	f.list = func(options metav1.ListOptions) (apiruntime.Object, error) {
		answer := f.lists[min(len(f.asked), len(f.lists)-1)]
		f.asked = append(f.asked, options.ResourceVersion)
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: answer.ResourceVersion}, Items: []metav1.PartialObjectMetadata{*answer},
		}, nil
	}
	f.watch = func(context.Context, int) (watch.Interface, error) {
		f.open = newProbe()
		return f.open, nil
	}
	return f
}

func (f *fixedSource) send(obj *object) {
	f.open.events <- watch.Event{Type: watch.Modified, Object: obj}
	synctest.Wait()
}

// scripted is a source made of functions; without a list it answers an empty one
// at version 5.
type scripted struct {
	list  func(metav1.ListOptions) (apiruntime.Object, error)
	watch func(ctx context.Context, n int) (watch.Interface, error)
	calls int
}

func (s *scripted) List(o metav1.ListOptions) (apiruntime.Object, error) {
	if s.list == nil {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
	}
	return s.list(o)
}

func (s *scripted) Watch(metav1.ListOptions) (watch.Interface, error) { panic("has a context") }

func (s *scripted) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.calls++
	return s.watch(ctx, s.calls)
}

// probe is a watch that says when it was stopped.
type probe struct {
	events  chan watch.Event
	stopped time.Time
	onStop  func()
	onChan  func() (<-chan watch.Event, bool)
}

func newProbe(events ...watch.Event) *probe {
	p := &probe{events: make(chan watch.Event, len(events)+1)}
	for _, e := range events {
		p.events <- e
	}
	return p
}

func (p *probe) Stop() {
	if p.stopped.IsZero() {
		p.stopped = time.Now()
	}
	if p.onStop != nil {
		p.onStop()
	}
}

func (p *probe) ResultChan() <-chan watch.Event {
	if p.onChan != nil {
		if ch, mine := p.onChan(); mine {
			return ch
		}
	}
	return p.events
}

func errorEvent(err error) watch.Event {
	status := err.(interface{ Status() metav1.Status }).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// byItem makes a rig's source list item by item.
func byItem(s *itemSource) func(*cache.Config) {
	return func(c *cache.Config) { c.ListerWatcher = s }
}

func filledSource(t *testing.T, objects int) *cachetest.Source {
	source := newSource(t)
	for i := range objects {
		require.NoError(t, source.Apply(pod("a", itoa(i))))
	}
	return source
}

// restoredRig is a mirror of a source that is at version 13 and can be applied back to 3,
// before the last of its objects.
type restoredRig struct{ *rig }

func newRestoredRig(t *testing.T, strategy cache.ListStrategy, jitter float64) *restoredRig {
	source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"), pod("b", "2"))
	for i := range 9 {
		require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
	}
	r := &restoredRig{}
	r.rig = newRig(t, source, func(c *cache.Config) {
		tuned(strategy, jitter)(c)
		c.ReflectorOptions.ErrorHandler = func(ctx context.Context, reflector *cache.Reflector, err error) {
			if regression := new(cache.VersionRegressionError); errors.As(err, &regression) {
				assert.Equal(t, regression.Current, r.indexer.LastStoreSyncResourceVersion(), "it is reported before it happens")
				assert.Equal(t, regression.Current, receivedOf(r.get("a/1")).ResourceVersion)
			}
			r.heard.handle(ctx, reflector, err)
		}
	})
	r.run()
	sleep(healthy)
	require.Equal(t, "13", r.ctlr.LastSyncResourceVersion())
	return r
}

// regressions are those that the mirror has reported.
func (r *restoredRig) regressions() []cache.VersionRegressionError {
	var all []cache.VersionRegressionError
	for _, err := range r.heard.all() {
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

// isMirrored fails the test unless the restored state is there, was reported, and is
// followed from then on.
func (r *restoredRig) isMirrored() {
	r.Helper()
	r.equalsSource()
	assert.Equal(r, "3", r.ctlr.LastSyncResourceVersion())
	assert.Equal(r, []cache.VersionRegressionError{{Kind: "list", Current: "13", Received: "3"}}, r.regressions(), "once, and never silently")
	assert.Zero(r, r.status().ConsecutiveFailures)
	requests := len(r.source.Requests())
	assert.NoError(r, r.source.Apply(pod("c", "1")))
	synctest.Wait()
	r.equalsSource()
	assert.Len(r, r.source.Requests(), requests, "by the watch that is open")
}

// recovery is what a restored source is asked, from the first watch on.
func recovery(strategy cache.ListStrategy) []string {
	if strategy == cache.ListStreaming {
		return []string{`watch "13" version-too-large`, `stream ""`}
	}
	return []string{`watch "13" version-too-large`, `list ""`, `watch "3"`}
}

// forgets has the source call every version expired, for d and then until the list at "" is
// answered so once more. That is when it is well again: the next request is a pause away.
func (r *restoredRig) forgets(d time.Duration) {
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
