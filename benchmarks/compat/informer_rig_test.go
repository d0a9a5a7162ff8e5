package compat

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

// listening is a handler, for either package, that remembers its calls.
type listening struct{ recorder }

func (l *listening) OnAdd(obj any, initial bool) {
	if initial {
		l.note("add " + show(obj) + " (initial)")
		return
	}
	l.note("add " + show(obj))
}

func (l *listening) OnUpdate(older, newer any) {
	l.note("update " + show(older) + " to " + show(newer))
}
func (l *listening) OnDelete(obj any) { l.note("delete " + show(obj)) }

// gated is a handler that waits before each Add until it is opened.
type gated struct {
	listening
	open chan struct{}
}

func newGated() *gated { return &gated{open: make(chan struct{})} }

func (h *gated) OnAdd(obj any, initial bool) {
	<-h.open
	h.listening.OnAdd(obj, initial)
}

// thingSource is a source of objects x@1 and y@2 that cannot stream its first state,
// so that both packages list it.
func thingSource(t *testing.T) *cachetest.Source {
	t.Helper()
	from := cachetest.NewSource(cachetest.Options{
		GroupVersionKind:     schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
		WatchListUnsupported: true,
		BookmarkInterval:     -1,
	})
	require.NoError(t, from.Apply(at("x", ""), at("y", "")))
	return from
}

// scene is a script's view of one informer of one package, in virtual time.
type scene struct {
	*testing.T
	side informerSide
	from *cachetest.Source
	inf  informer

	stop   context.CancelFunc
	ended  sync.WaitGroup
	runCtx context.Context
}

// played runs a script against an informer of each package. At its end the informer is
// stopped, if the script has not done so, and must leave no goroutine.
func played(t *testing.T, o informerOptions, script func(s *scene)) {
	for _, side := range informerSides {
		t.Run(side.name, func(t *testing.T) { play(t, side, o, script) })
	}
}

func play(t *testing.T, side informerSide, o informerOptions, script func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, side: side, from: thingSource(t)}
		s.inf = side.newInformer(s.from, o)
		s.runCtx, s.stop = context.WithCancel(t.Context())
		defer func() {
			s.stop()
			s.ended.Wait()
			s.from.Close()
		}()
		script(s)
	})
}

// start runs the informer and waits until nothing moves.
func (s *scene) start() {
	s.run(s.inf)
	synctest.Wait()
}

// run runs something until the end of the scene.
func (s *scene) run(runner interface{ RunWithContext(context.Context) }) {
	s.ended.Go(func() { runner.RunWithContext(s.runCtx) })
}

// end stops what runs, and waits for it.
func (s *scene) end() {
	s.stop()
	s.ended.Wait()
}

// listens adds a handler that remembers.
func (s *scene) listens(resync ...time.Duration) (*listening, registration) {
	s.Helper()
	calls := &listening{}
	return calls, s.adds(calls, resync...)
}

func (s *scene) adds(h handler, resync ...time.Duration) registration {
	s.Helper()
	r, err := s.inf.add(h, resync...)
	require.NoError(s, err)
	return r
}

// apply and remove change the source, and wait until that has walked through.
func (s *scene) apply(objects ...*object) {
	s.Helper()
	for _, o := range objects {
		require.NoError(s, s.from.Apply(o))
	}
	synctest.Wait()
}

func (s *scene) remove(names ...string) {
	s.Helper()
	for _, name := range names {
		_, err := s.from.Delete("ns", name)
		require.NoError(s, err)
	}
	synctest.Wait()
}

// relists has the informer list anew, after what silently happened meanwhile: the
// history that its watch would need is dropped.
func (s *scene) relists(meanwhile func()) {
	s.Helper()
	s.from.Silence()
	if meanwhile != nil {
		meanwhile()
	}
	s.from.Advance(1)
	s.from.CompactAll()
	s.from.CloseWatches() // at once: what happened meanwhile does not come as events
	s.from.Resume()
	s.passes(5 * time.Minute)
}

// passes lets virtual time pass and everything settle.
func (s *scene) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// changed is another state of an object.
func changed(o *object, label string) *object {
	o.Labels = map[string]string{"v": label}
	return o
}

// labelValues is an index function.
func labelValues(obj any) ([]string, error) { return []string{obj.(*object).Labels["v"]}, nil }

// canceled is a context that has ended.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
