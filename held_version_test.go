package cache

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

	"github.com/watchmirror/cache/cachetest"
)

// While a state of an object is held back, another is shown, and the two may stand in
// either order: the source may have been restored between them. What comes next is compared
// with both.

// fixedMirror is a mirror of a fixedSource, in which bad objects cannot be taken.
type fixedMirror struct {
	held   *heard
	status func() Status
	shown  func() map[string]string
	stop   func()
}

// fixedMirrors have the object held back by a store, a store behind a queue, a queue, or
// whoever consumes from one.
var fixedMirrors = map[string]func(*testing.T, *fixedSource) *fixedMirror{
	"a store": func(t *testing.T, source *fixedSource) *fixedMirror {
		h, indexer := &heard{}, NewIndexer(MetaNamespaceKeyFunc, failingIndex)
		r := NewReflectorWithOptions(source, &object{}, indexer, fixedOptions(h))
		return &fixedMirror{h, r.Status, func() map[string]string { return contents(indexer) }, runReflector(t, r)}
	},
	"an informer's store": func(t *testing.T, source *fixedSource) *fixedMirror {
		return fixedInformer(t, source, func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"fails": func(obj *object) ([]string, error) { return nil, failIfBad(obj) }}
		})
	},
	"an informer's queue": func(t *testing.T, source *fixedSource) *fixedMirror {
		return fixedInformer(t, source, func(c *InformerConfig[*object]) {
			c.Transform = func(obj *object) (*object, error) { return obj, failIfBad(obj) }
		})
	},
	"a controller's store": func(t *testing.T, source *fixedSource) *fixedMirror {
		return runFixed(newRig(t, newSource(t), func(c *Config) {
			c.ListerWatcher = source
			require.NoError(t, c.Store.(Indexer).AddIndexers(failingIndex))
		}))
	},
	"a Process": func(t *testing.T, source *fixedSource) *fixedMirror {
		r := refusingRigs["a Process"](t, newSource(t), func(c *Config) { c.ListerWatcher = source })
		return runFixed(r)
	},
}

var failingIndex = Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }}

func fixedOptions(h *heard) ReflectorOptions {
	return ReflectorOptions{Strategy: ListWhole, ErrorHandler: h.handle, Random: func() float64 { return 0 }}
}

func fixedInformer(t *testing.T, source *fixedSource, change func(*InformerConfig[*object])) *fixedMirror {
	h := &heard{}
	config := InformerConfig[*object]{Name: "test", ReflectorOptions: fixedOptions(h)}
	change(&config)
	inf := NewInformerFor(source, config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- inf.Run(ctx) }()
	synctest.Wait()
	return &fixedMirror{
		h, inf.Status, func() map[string]string { return contents(inf.Shared().GetIndexer()) },
		func() { cancel(); assert.NoError(t, <-done) },
	}
}

func runFixed(r *rig) *fixedMirror {
	r.run()
	synctest.Wait()
	return &fixedMirror{r.heard, r.status, r.versions, r.stop}
}

// regressions are those that were reported.
func (m *fixedMirror) regressions() []RegressionError {
	r := &restoredRig{&rig{heard: m.held}}
	return r.regressions()
}

func (m *fixedMirror) quarantine() map[string]string { return heldVersions(m.status()) }

// fixedSource answers what it is told to: each list with the next state of one object, the
// last one again and again, and its watches with what is sent to them.
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

// G2, G11, B15: an event that is older than what is shown of its object is a regression
// also while a state that is newer than both is held back. Fails if an object of which
// anything is held back is not compared.
func TestG2AnEventOlderThanWhatIsShownIsNotTakenWhileANewerStateIsHeldBack(t *testing.T) {
	for name, mirrorOf := range fixedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newFixedSource(podAt("a", "1", "10"), podAt("a", "1", "12"))
				m := mirrorOf(t, source)
				source.send(bad(podAt("a", "1", "11")))
				require.Equal(t, map[string]string{"a/1": "11"}, m.quarantine())
				source.send(podAt("a", "1", "7"))
				assert.Equal(t, []RegressionError{{What: "event", Key: "a/1", Have: "11", Got: "7"}}, m.regressions())
				assert.Equal(t, map[string]string{"a/1": "10"}, m.shown())
				assert.Equal(t, map[string]string{"a/1": "11"}, m.quarantine())
				assert.Equal(t, "11", m.status().AppliedVersion)
				sleep(time.Minute)
				assert.Equal(t, []string{"0", ""}, source.asked)
				assert.Equal(t, map[string]string{"a/1": "12"}, m.shown())
				assert.Empty(t, m.quarantine())
				m.stop()
			})
		})
	}
}

// G2, G11: where a source that was restored, and did not say so, has an object in a bad
// state only, the one from before stays in the mirror. An event between the two is newer
// than what the source has said last, and taken. Fails if it is compared with what is shown
// alone: then no event of that object is taken until it has passed the old version.
func TestG2AnEventBetweenARestoredStateThatIsHeldBackAndTheOneShownIsTaken(t *testing.T) {
	for name, mirrorOf := range fixedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newFixedSource(podAt("a", "1", "10"), bad(podAt("a", "1", "5")))
				m := mirrorOf(t, source)
				source.open.events <- errorEvent(cachetest.ErrExpired())
				sleep(time.Minute)
				require.Equal(t, []string{"0", "10", ""}, source.asked)
				reported := []RegressionError{{What: "list", Have: "10", Got: "5"}}
				require.Equal(t, reported, m.regressions())
				require.Equal(t, map[string]string{"a/1": "5"}, m.quarantine())
				require.Equal(t, map[string]string{"a/1": "10"}, m.shown())
				source.send(podAt("a", "1", "7"))
				assert.Equal(t, map[string]string{"a/1": "7"}, m.shown())
				assert.Empty(t, m.quarantine())
				assert.Equal(t, reported, m.regressions())
				assert.Equal(t, "7", m.status().AppliedVersion)
				sleep(time.Minute)
				assert.Len(t, source.asked, 3, "nothing is listed because of it")
				m.stop()
			})
		})
	}
}

// G2, G11: a state without a version says nothing of when it was. Fails if it counts as
// older than everything: then the store goes back, and nobody hears of it.
func TestG2AnEventOlderThanWhatIsShownIsNotTakenWhileAStateWithoutAVersionIsHeldBack(t *testing.T) {
	for name, mirrorOf := range fixedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newFixedSource(podAt("a", "1", "10"), podAt("a", "1", "12"))
				m := mirrorOf(t, source)
				source.send(bad(podAt("a", "1", "")))
				require.Equal(t, map[string]string{"a/1": ""}, m.quarantine())
				source.send(podAt("a", "1", "7"))
				assert.Equal(t, []RegressionError{{What: "event", Key: "a/1", Have: "10", Got: "7"}}, m.regressions())
				assert.Equal(t, map[string]string{"a/1": "10"}, m.shown())
				sleep(time.Minute)
				assert.Equal(t, map[string]string{"a/1": "12"}, m.shown())
				m.stop()
			})
		})
	}
}
