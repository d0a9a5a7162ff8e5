package guarantees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/mutation"
)

func TestAnInformerMirrorsASourceAndNotifiesItsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		notified := newReplicaHandler(t)
		handle := r.handle(notified)
		assert.False(t, r.inf.HasSynced())
		assert.Empty(t, r.inf.ResourceVersion())
		r.run()
		require.NoError(t, r.inf.WaitSynced(t.Context()))
		require.NoError(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()))
		assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, notified.take())
		assert.Equal(t, 2, notified.initial)
		assert.Equal(t, "2", r.inf.ResourceVersion())
		must(t, r.source.Apply(labelled(pod("a", "1"), "x")), r.source.Apply(pod("a", "3")))
		_, err := r.source.Delete("a", "2")
		must(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"update a/1@3", "add a/3@4", "delete a/2"}, notified.take())
		assert.Equal(t, 2, notified.initial, "what comes by watch is not of the initial list")
		notified.assertEqualsStore(r.inf.Shared().GetStore())
		assert.Equal(t, "5", r.inf.ResourceVersion())
		r.stop()
		assert.True(t, r.inf.Shared().IsStopped())
		assert.Equal(t, 2, r.inf.Len(), "what was mirrored can still be read")
	})
}

// Mode, backlog, age, delivered, panics and sync of each handler are in the status, exact to the
// second. Fails if handlers are mixed up, or if the change that is being delivered counts as
// pending.
func TestTheStatusDescribesEachHandler(t *testing.T) {
	survivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
		slow, goOn := stalledReplica(t)
		r.handle(slow, cache.HandlerOptions{Name: "slow", Delivery: cache.OrderedUnbounded})
		r.handle(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("boom") }}, cache.HandlerOptions{Name: "panics", Delivery: cache.Coalesced})
		r.run()
		sleep(10 * time.Second)
		want := cache.HandlerStatus{Name: "slow", Delivery: cache.OrderedUnbounded, Backlog: 2, OldestAge: 10 * time.Second}
		assert.Equal(t, want, r.handlerStatus(0))
		assert.Equal(t, cache.HandlerStatus{Name: "panics", Delivery: cache.Coalesced, Merging: true, Delivered: 3, Panics: 3, Synced: true, NotifiedVersion: "3"}, r.handlerStatus(1))
		must(t, r.source.Apply(labelled(pod("a", "1"), "x")))
		sleep(5 * time.Second)
		want.Backlog, want.OldestAge = 3, 15*time.Second
		assert.Equal(t, want, r.handlerStatus(0))
		goOn()
		sleep(time.Second)
		assert.Equal(t, cache.HandlerStatus{Name: "slow", Delivery: cache.OrderedUnbounded, Delivered: 4, Synced: true, NotifiedVersion: "4"}, r.handlerStatus(0))
		assert.Equal(t, r.inf.Status(), r.inf.Shared().(cache.StatusReporter).Status())
		r.stop()
	})
}

func TestTheStatusSaysThatAHandlerWasLeftBehindAndHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		slow, goOn := stalledReplica(t)
		r.handle(slow)
		r.run()
		synctest.Wait()
		for i := range 1024 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		sleep(time.Second)
		assert.Equal(t, 1024, r.handlerStatus(0).Backlog)
		assert.False(t, r.handlerStatus(0).Merging)
		must(t, r.source.Apply(labelled(pod("a", "1"), "more")))
		sleep(time.Second)
		status := r.handlerStatus(0)
		assert.True(t, status.Merging)
		assert.Equal(t, 1, status.Backlog)
		assert.Equal(t, 2*time.Second, status.OldestAge, "since the oldest of what was merged")
		goOn()
		synctest.Wait()
		assert.False(t, r.handlerStatus(0).Merging)
		assert.Equal(t, []string{"add a/1@1", "update a/1@1026"}, slow.take())
		r.stop()
	})
}

// A new UID is delivered as OnDelete and OnAdd, with every delivery, also to a late handler;
// RecreateAsUpdate gives client-go's single OnUpdate.
func TestARecreatedObjectIsDeliveredAsADeletionAndAnAddition(t *testing.T) {
	for _, merge := range []bool{false, true} {
		for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprint(delivery, ", merged ", merge, ", late ", late), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { recreatedObject(t, merge, delivery, late) })
				})
			}
		}
	}
}

func recreatedObject(t *testing.T, merge bool, delivery cache.Delivery, late bool) {
	r := newInformerRig(t, newSource(t, withUID(pod("a", "1"), "first")), func(c *cache.InformerConfig[*object]) { c.RecreateAsUpdate = merge })
	notified := newReplicaHandler(t)
	r.handle(notified, cache.HandlerOptions{Delivery: delivery})
	r.run()
	synctest.Wait()
	notified.take()
	goOn := func() {}
	if late {
		gate := make(chan struct{})
		notified.before, goOn = func(string) { <-gate }, func() { close(gate) }
	}
	must(t, r.source.Apply(labelled(withUID(pod("a", "1"), "first"), "x")))
	synctest.Wait()
	_, err := r.source.DeleteSilently("a", "1")
	must(t, err)
	must(t, r.source.Apply(withUID(pod("a", "1"), "second")))
	r.relist()
	goOn()
	synctest.Wait()
	is, _ := r.inf.Lookup("a/1")
	version := versionOf(is)
	want := []string{"update a/1@2", "tombstone a/1", fmt.Sprint("add a/1@", version)}
	if merge {
		want = []string{"update a/1@2", fmt.Sprint("update a/1@", version)}
	}
	assert.Equal(t, want, notified.take())
	assert.Equal(t, 1, notified.initial, "what is created anew is not of the initial list")
	notified.assertEqualsStore(r.inf.Shared().GetStore())
	r.stop()
}

// badInput is a mistake and its expected error: a typed cause, if there is one, and words that
// the text contains, which name the mistake and the remedy.
type badInput struct {
	make  func(r *informerRig) error
	cause error
	words []string
}

// check makes the mistake. The error returns at once, and the informer continues.
func (b badInput) check(t *testing.T, phase string) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("b", "2")), func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}
		})
		notified := newReplicaHandler(t)
		r.handle(notified)
		if phase != "before" {
			r.run()
			synctest.Wait()
		}
		if phase == "after" {
			r.stop()
		}
		began := time.Now()
		err := b.make(r)
		assert.Zero(t, time.Since(began))
		require.Error(t, err)
		if b.cause != nil {
			assert.ErrorIs(t, err, b.cause)
		}
		for _, word := range b.words {
			assert.ErrorContains(t, err, word)
		}
		if phase == "before" {
			r.run()
		}
		if phase != "after" {
			synctest.Wait()
			must(t, r.source.Apply(pod("a", "3")))
			synctest.Wait()
			r.stop()
		}
		assert.Len(t, r.inf.Status().Handlers, 1, "no handler has come of it")
		assert.Len(t, r.inf.Shared().GetIndexer().GetIndexers(), 2, "and no index")
		notified.assertEqualsStore(r.inf.Shared().GetStore())
	})
}

func adding(options cache.HandlerOptions) func(*informerRig) error {
	return func(r *informerRig) error {
		handle, err := r.inf.Shared().AddEventHandlerWithOptions(&countingHandler{}, options)
		assert.Nil(r, handle)
		return err
	}
}

func indexing(indexers cache.Indexers) func(*informerRig) error {
	return func(r *informerRig) error { return r.inf.Shared().AddIndexers(indexers) }
}

func always(values []string, err error) cache.IndexFunc {
	return func(any) ([]string, error) { return values, err }
}

// Setting a field after the run has begun returns an error.
func TestFieldsThatMustBeSetBeforeTheRunAreRefusedAfterIt(t *testing.T) {
	setting := map[string]badInput{
		"transform": {
			make: func(r *informerRig) error {
				return r.inf.Shared().SetTransform(func(any) (any, error) { return nil, nil })
			},
			words: []string{"transform", "before the informer runs"},
		},
		"error handler": {
			make: func(r *informerRig) error {
				return r.inf.Shared().SetWatchErrorHandler(func(*cache.Reflector, error) {})
			},
			words: []string{"error handler", "before the informer runs"},
		},
	}
	for name, mistake := range setting {
		for _, phase := range []string{"during", "after"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
	stopped := map[string]badInput{
		"handler": {make: adding(cache.HandlerOptions{}), cause: cache.ErrInformerStopped, words: []string{"no handler was added"}},
		"typed handler": {make: func(r *informerRig) error {
			_, err := r.inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{})
			return err
		}, cause: cache.ErrInformerStopped},
		"index": {make: indexing(cache.Indexers{"new": always(nil, nil)}), cause: cache.ErrInformerStopped, words: []string{"no index was added"}},
	}
	for name, mistake := range stopped {
		t.Run(name+", after", func(t *testing.T) { mistake.check(t, "after") })
	}
}

// An index function that fails for a stored object cannot be added to a running
// informer: the error names the index and the object's key.
func TestAnIndexThatFailsForAStoredObjectIsNotAdded(t *testing.T) {
	// Fails for one object only: of several, any may be named.
	fails := func(fail func() error) cache.IndexFunc {
		return func(obj any) ([]string, error) {
			if name, _ := cache.ObjectToName(obj); name.Name == "1" {
				return nil, fail()
			}
			return nil, nil
		}
	}
	panics := fails(func() error { panic(errBoom) })
	badInput{make: indexing(cache.Indexers{"new": fails(func() error { return errBoom })}), cause: errBoom, words: []string{`"new"`, "a/1"}}.check(t, "during")
	badInput{make: indexing(cache.Indexers{"new": panics}), cause: errBoom, words: []string{`"new"`, "a/1", "panic"}}.check(t, "during")
}

// A default resync period that is too short is replaced by a second and reported, since the
// interface has no error.
func TestADefaultResyncPeriodBelowTheMinimumIsReportedAndASecondIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified, reported := newReplicaHandler(t), &errorRecorder{}
		inf := cache.NewSharedIndexInformerWithOptions(newSource(t, pod("a", "1")), &object{}, cache.SharedIndexInformerOptions{
			ResyncPeriod: time.Millisecond, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
		})
		_, err := inf.AddEventHandler(notified)
		must(t, err)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); inf.Run(stop) }()
		sleep(3500 * time.Millisecond)
		assert.Equal(t, []string{"add a/1@1", "resync a/1@1", "resync a/1@1", "resync a/1@1"}, notified.take())
		require.Len(t, reported.all(), 1)
		for _, word := range []string{"resync period", "1ms", "1s", "0 for no resync"} {
			assert.ErrorContains(t, reported.all()[0], word)
		}
		close(stop)
		<-done
	})
}

// Mistakes in the program are reported at construction, by a panic that names the field.
func TestAContradictoryInformerIsNotConstructed(t *testing.T) {
	var none *object
	source := &funcSource{}
	cases := map[string]func(){
		"the source is nil":        func() { cache.NewSharedInformer(nil, none, 0) },
		"ResyncPeriod is negative": func() { cache.NewSharedIndexInformer(source, &object{}, -1, nil) },
		"ReflectorOptions.ResyncPeriod": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{ResyncPeriod: 1}})
		},
		"ReflectorOptions.ShouldResync": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{ShouldResync: func() bool { return true }}})
		},
		"InformerConfig.ResyncPeriod": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{ResyncPeriod: time.Millisecond})
		},
		"Transform and Convert": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{
				Transform: func(o *object) (*object, error) { return o, nil },
				Convert:   func(any) (*object, error) { return nil, nil },
			})
		},
		"Convert needs an ObjectType": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{Convert: func(any) (*object, error) { return nil, nil }})
		},
		"SampleEvery is negative": func() {
			cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{DetectMutations: mutation.Options{SampleEvery: -1}.New})
		},
	}
	for words, construct := range cases {
		t.Run(words, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), words) }()
			construct()
		})
	}
}

// The error of a wait has the informer's phase and its last failure.
func TestAFailedWaitDescribesTheInformersState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t), nil)
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.inf.WaitSynced(ctx)
		assert.ErrorIs(t, err, errBoom)
		assert.ErrorIs(t, err, ctx.Err())
		assert.ErrorContains(t, err, " has not synced: context deadline exceeded; retrying for 1m0s: listing ")
		assert.False(t, errors.Is(err, cache.ErrInformerStopped))
		r.source.Heal()
		r.stop()
	})
}

// The same for notifications of a wrong use.
func TestASecondRunIsLoggedWithTheInformersLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var notified []error
		r := newInformerRig(t, newSource(t), func(c *cache.InformerConfig[*object]) {
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *cache.Reflector, err error) {
				notified = append(notified, err)
				assert.Same(t, own.GetSink(), klog.FromContext(ctx).GetSink())
			}
		})
		r.run()
		synctest.Wait()
		r.inf.Shared().RunWithContext(t.Context())
		require.Len(t, notified, 1)
		assert.ErrorIs(t, notified[0], cache.ErrAlreadyRan)
		r.stop()
	})
}

// readClock calls a function after the first reading.
type readClock struct {
	clock.Clock
	mu   sync.Mutex
	then func()
}

func (c *readClock) Now() time.Time {
	now := c.Clock.Now()
	c.mu.Lock()
	then := c.then
	c.then = nil
	c.mu.Unlock()
	if then != nil {
		then()
	}
	return now
}

// A change becomes pending a second after the status has read the clock, and before it reads the
// handler.
func TestTheAgeOfWhatWaitsIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &readClock{Clock: clock.RealClock{}}
		r := newInformerRig(t, newSource(t), func(config *cache.InformerConfig[*object]) { config.ReflectorOptions.Clock = c })
		notified, goOn := stalledReplica(t)
		r.handle(notified)
		r.run()
		synctest.Wait()
		c.mu.Lock()
		c.then = func() {
			time.Sleep(time.Second)
			must(t, r.source.Apply(pod("a", "2")))
			synctest.Wait()
		}
		c.mu.Unlock()
		status := r.handlerStatus(0)
		assert.Zero(t, status.OldestAge)
		sleep(5 * time.Second)
		assert.Equal(t, 5*time.Second, r.handlerStatus(0).OldestAge)
		goOn()
		r.stop()
	})
}

// Most programs ignore the error of AddEventHandler. Fails if a refused handler is not logged.
func TestAHandlerThatIsRefusedIsLogged(t *testing.T) {
	negative := -time.Second
	typed := cache.TypedResourceEventHandlerFuncs[*object]{}
	for name, add := range map[string]func(*cache.Informer[*object]) error{
		"nil": func(i *cache.Informer[*object]) error {
			_, err := i.Shared().AddEventHandler(nil)
			return err
		},
		"nil typed": func(i *cache.Informer[*object]) error {
			_, err := i.AddHandler(nil)
			return err
		},
		"bad period": func(i *cache.Informer[*object]) error {
			_, err := i.Shared().AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{}, negative)
			return err
		},
		"bad delivery": func(i *cache.Informer[*object]) error {
			_, err := i.AddHandler(typed, cache.HandlerOptions{Delivery: 7})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			logged := captureKlog(t, 0)
			inf := cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{Name: "the informer"})
			err := add(inf)
			require.ErrorContains(t, err, "no handler was added")
			require.Len(t, logged.all(), 1)
			assert.Contains(t, logged.all()[0], "Handler not added")
			assert.Contains(t, logged.all()[0], "the informer")
			assert.Empty(t, inf.Status().Handlers)
		})
	}
}

// The handler's logger precedes the informer's, which precedes klog's.
func TestAHandlerThatIsRefusedIsLoggedWithTheNearestLogger(t *testing.T) {
	var handlers, informers logLines
	handlersLogger, informersLogger := handlers.logger(0), informers.logger(0)
	others := captureKlog(t, 0)
	inf := cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{Logger: &informersLogger}})
	_, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{}, cache.HandlerOptions{Logger: &handlersLogger, Delivery: 7})
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Empty(t, informers.all())
	_, err = inf.AddHandler(nil)
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Len(t, informers.all(), 1)
	assert.Empty(t, others.all())
}

// plainInformer is an informer of NewInformerWithOptions under test.
type plainInformer struct {
	*testing.T
	source *cachetest.Source
	store  cache.Store
	ctlr   cache.Controller
	heard  *errorRecorder
	cancel context.CancelFunc
	done   chan struct{}
}

func newPlainInformer(t *testing.T, source *cachetest.Source, options cache.InformerOptions) *plainInformer {
	t.Helper()
	p := &plainInformer{T: t, source: source, heard: &errorRecorder{}}
	options.ListerWatcher, options.ObjectType = source, &object{}
	options.ReflectorOptions.ErrorHandler = p.heard.handle
	options.ReflectorOptions.Strategy = cache.ListPaged
	p.store, p.ctlr = cache.NewInformerWithOptions(options)
	return p
}

func (p *plainInformer) run() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		p.ctlr.RunWithContext(ctx)
	}()
	synctest.Wait()
}

func (p *plainInformer) stop() {
	p.cancel()
	<-p.done
	p.source.Close()
}

func (p *plainInformer) status() cache.Status {
	return p.ctlr.(cache.StatusReporter).Status()
}

// gatedHandler is a handler whose calls do not return until it is opened.
type gatedHandler struct {
	recorder
	open chan struct{}
}

func (g *gatedHandler) OnAdd(obj any, initial bool) {
	<-g.open
	g.recorder.OnAdd(obj, initial)
}

func TestAPlainInformerFillsAStoreAndNotifiesItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := &recorder{}
		p := newPlainInformer(t, newSource(t, pod("ns", "a"), pod("ns", "b")), cache.InformerOptions{Handler: notified})
		require.False(t, p.ctlr.HasSynced())
		p.run()
		defer p.stop()

		require.Equal(t, []string{"add ns/a@1 initial", "add ns/b@2 initial"}, notified.take())
		require.True(t, p.ctlr.HasSynced())
		require.NoError(t, cache.WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()))
		require.Equal(t, "2", p.ctlr.LastSyncResourceVersion())

		require.NoError(t, p.source.Apply(labelled(pod("ns", "a"), "new"), pod("ns", "c")))
		_, err := p.source.Delete("ns", "b")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"update ns/a@3", "add ns/c@4", "delete ns/b"}, notified.take())
		require.ElementsMatch(t, []string{"ns/a", "ns/c"}, p.store.ListKeys())
		require.Equal(t, "5", p.ctlr.LastSyncResourceVersion())
		require.Empty(t, p.heard.all())
	})
}

// TestAPlainInformerHasSyncedOnceItsHandlerHas: that of client-go answers so, for there
// the handler is called by the caller that fills the store.
func TestAPlainInformerHasSyncedOnceItsHandlerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &gatedHandler{open: make(chan struct{})}
		p := newPlainInformer(t, newSource(t, pod("ns", "a")), cache.InformerOptions{Handler: slow})
		p.run()
		defer p.stop()

		require.Len(t, p.store.List(), 1, "the store does not wait for the handler")
		require.False(t, p.ctlr.HasSynced())
		require.False(t, cache.IsDone(p.ctlr.HasSyncedChecker()))

		close(slow.open)
		synctest.Wait()
		require.True(t, p.ctlr.HasSynced())
		require.True(t, cache.IsDone(p.ctlr.HasSyncedChecker()))
	})
}

func TestAPlainInformerWithoutAHandlerFillsAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlainInformer(t, newSource(t, pod("ns", "a")), cache.InformerOptions{ResyncPeriod: time.Second})
		p.run()
		defer p.stop()
		require.Len(t, p.store.List(), 1)
		require.True(t, p.ctlr.HasSynced())
		require.True(t, cache.IsDone(p.ctlr.HasSyncedChecker()))
		require.Empty(t, p.status().Handlers)
	})
}

func TestAPlainInformerResyncsMoreOftenThanEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := &recorder{}
		p := newPlainInformer(t, newSource(t, pod("ns", "a")), cache.InformerOptions{Handler: notified, ResyncPeriod: 100 * time.Millisecond})
		p.run()
		defer p.stop()
		notified.take()
		sleep(350 * time.Millisecond)
		require.Equal(t, []string{"update ns/a@1", "update ns/a@1", "update ns/a@1"}, notified.take())
		require.Empty(t, p.heard.all(), "no complaint about the period")
	})
}

func TestTheFieldsOfAPlainInformerReachItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := &recorder{}
		p := newPlainInformer(t, newSource(t, pod("ns", "a"), pod("other", "b")), cache.InformerOptions{
			Handler:         notified,
			Indexers:        cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			MinWatchTimeout: 20 * time.Minute,
			Transform: func(obj any) (any, error) {
				if obj.(*object).Namespace == "other" {
					return nil, nil // not wanted
				}
				return labelled(obj.(*object), "transformed"), nil
			},
		})
		p.run()
		defer p.stop()

		require.Equal(t, []string{"add ns/a@1 initial"}, notified.take())
		found, err := p.store.(cache.Indexer).ByIndex(cache.NamespaceIndex, "ns")
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, "transformed", found[0].(*object).Labels["v"])
		for _, request := range p.source.Requests() {
			if request.Verb == cachetest.VerbWatch {
				require.GreaterOrEqual(t, *request.Options.TimeoutSeconds, int64(20*60))
			}
		}
		require.Equal(t, 1, p.source.WatchCalls())
	})
}

// TestAHandlerFindsATombstonesObjectInTheStore: the default key function knows
// tombstones, so that a handler may ask the store for what was deleted.
func TestAHandlerFindsATombstonesObjectInTheStore(t *testing.T) {
	store, _ := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: newSource(t), KeyFunction: nil})
	require.NoError(t, store.Add(pod("ns", "a")))
	_, exists, err := store.Get(cache.DeletedFinalStateUnknown{Key: "ns/a"})
	require.NoError(t, err)
	require.True(t, exists)
}

func TestAPlainInformerThatIsStoppedBeforeItSyncedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, handler := range []cache.ResourceEventHandler{nil, &recorder{}} {
			source := newSource(t, pod("ns", "a"))
			source.HangLists(1)
			p := newPlainInformer(t, source, cache.InformerOptions{Handler: handler})
			p.run()
			p.stop()
			require.False(t, p.ctlr.HasSynced())
			require.ErrorIs(t, cache.WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()), cache.ErrInformerStopped)
		}
	})
}

func TestASecondRunOfAPlainInformerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlainInformer(t, newSource(t), cache.InformerOptions{})
		p.run()
		p.ctlr.RunWithContext(t.Context())
		p.stop()
		p.ctlr.Run(nil)
		require.Len(t, p.heard.all(), 2)
		for _, err := range p.heard.all() {
			require.ErrorIs(t, err, cache.ErrAlreadyRan)
		}
	})
}

func TestTheDeprecatedConstructorsMakePlainInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("ns", "a"))
		notified := &recorder{}
		store, ctlr := cache.NewInformer(source, &object{}, 0, notified)
		indexer, indexing := cache.NewIndexerInformer(source, &object{}, time.Minute, notified, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		for _, c := range []cache.Controller{ctlr, indexing} {
			go func() { c.Run(ctx.Done()); ended <- struct{}{} }()
		}
		require.NoError(t, cache.WaitForDone(ctx, ctlr.HasSyncedChecker(), indexing.HasSyncedChecker()))
		require.Equal(t, []string{"add ns/a@1 initial", "add ns/a@1 initial"}, notified.take())
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		keys, err := indexer.IndexKeys(cache.NamespaceIndex, "ns")
		require.NoError(t, err)
		require.Equal(t, []string{"ns/a"}, keys)
		sleep(time.Minute)
		require.Equal(t, []string{"update ns/a@1"}, notified.take(), "only the second resyncs")
		cancel()
		<-ended
		<-ended
		source.Close()
	})
}

func TestWrongInformerOptionsPanicAndNameTheField(t *testing.T) {
	second := time.Second
	cases := []struct {
		field string
		spoil func(*cache.InformerOptions)
	}{
		{"InformerOptions.ListerWatcher", func(o *cache.InformerOptions) { o.ListerWatcher = nil }},
		{"InformerOptions.ListerWatcher", func(o *cache.InformerOptions) { o.ListerWatcher = (*cache.ListWatch)(nil) }},
		{"InformerOptions.Handler", func(o *cache.InformerOptions) { o.Handler = (*recorder)(nil) }},
		{"InformerOptions.ResyncPeriod", func(o *cache.InformerOptions) { o.ResyncPeriod = -1 }},
		{"InformerOptions.HandlerOptions.ResyncPeriod", func(o *cache.InformerOptions) { o.HandlerOptions.ResyncPeriod = &second }},
		{"HandlerOptions.Delivery", func(o *cache.InformerOptions) { o.HandlerOptions.Delivery = 9 }},
		{"ReflectorOptions.ResyncPeriod", func(o *cache.InformerOptions) { o.ReflectorOptions.ResyncPeriod = second }},
		{"ReflectorOptions.MinWatchTimeout", func(o *cache.InformerOptions) { o.MinWatchTimeout = -1 }},
	}
	for _, tc := range cases {
		t.Run(tc.field, func(t *testing.T) {
			options := cache.InformerOptions{ListerWatcher: newSource(t)}
			tc.spoil(&options)
			defer func() { require.Contains(t, fmt.Sprint(recover()), tc.field) }()
			cache.NewInformerWithOptions(options)
		})
	}
}

// Mistakes with the same error before and during the run.
func TestBadInputIsAnsweredByAnErrorThatNamesTheRightInput(t *testing.T) {
	tooShort, negative := 999*time.Millisecond, -time.Second
	var none *replicaHandler
	mistakes := map[string]badInput{
		"nil handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(nil); return err },
			words: []string{"no handler was added", "nil"},
		},
		"nil pointer for a handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(none); return err },
			words: []string{"no handler was added"},
		},
		"nil typed handler": {
			make:  func(r *informerRig) error { _, err := r.inf.AddHandler(nil); return err },
			words: []string{"no handler was added"},
		},
		"resync below the minimum": {
			make: adding(cache.HandlerOptions{ResyncPeriod: &tooShort}), words: []string{"ResyncPeriod", "999ms", "1s", "0 is no resync"},
		},
		"resync below the minimum, the short form": {
			make: func(r *informerRig) error {
				_, err := r.inf.Shared().AddEventHandlerWithResyncPeriod(&countingHandler{}, tooShort)
				return err
			},
			words: []string{"ResyncPeriod", "999ms", "1s"},
		},
		"negative resync":  {make: adding(cache.HandlerOptions{ResyncPeriod: &negative}), words: []string{"ResyncPeriod", "-1s", "0 is no resync"}},
		"unknown delivery": {make: adding(cache.HandlerOptions{Delivery: 7}), words: []string{"HandlerOptions.Delivery", "7"}},
		"foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.RemoveHandler(other.handle(&countingHandler{}))
			},
			cause: cache.ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"shutting down a foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.ShutDownHandler(other.handle(&countingHandler{}))
			},
			cause: cache.ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"nil registration":                 {make: func(r *informerRig) error { return r.inf.RemoveHandler(nil) }, cause: cache.ErrForeignRegistration},
		"shutting down a nil registration": {make: func(r *informerRig) error { return r.inf.ShutDownHandler(nil) }, cause: cache.ErrForeignRegistration},
		"registration of another package": {
			make:  func(r *informerRig) error { return r.inf.RemoveHandler(foreignHandle{}) },
			cause: cache.ErrForeignRegistration, words: []string{"foreignHandle"},
		},
		"index that is there": {make: indexing(cache.Indexers{"name": always(nil, nil), "new": always(nil, nil)}), words: []string{"indexer conflict", "name"}},
		"namespace index":     {make: indexing(cache.Indexers{cache.NamespaceIndex: always(nil, nil)}), words: []string{"indexer conflict", cache.NamespaceIndex}},
		"nil index function":  {make: indexing(cache.Indexers{"new": nil}), words: []string{`"new"`, "no function"}},
		"unknown index":       {make: func(r *informerRig) error { _, err := r.inf.Shared().GetIndexer().ByIndex("nam", "x"); return err }, words: []string{"Index with name nam does not exist"}},
		"unknown typed index": {make: func(r *informerRig) error { _, err := r.inf.ByIndex("nam", "x"); return err }, words: []string{"nam"}},
		"nil error handler":   {make: func(r *informerRig) error { return r.inf.Shared().SetWatchErrorHandler(nil) }, words: []string{"SetWatchErrorHandler"}},
		"nothing to wait for": {make: func(r *informerRig) error { return cache.WaitForDone(r.Context()) }, words: []string{"nothing to wait for", "HasSyncedChecker"}},
		"nil to wait for":     {make: func(r *informerRig) error { return cache.WaitForDone(r.Context(), r.inf.HasSyncedChecker(), nil) }, words: []string{"nothing to wait for", "nil"}},
	}
	for name, mistake := range mistakes {
		for _, phase := range []string{"before", "during"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
}

type foreignHandle struct{}

func (foreignHandle) HasSynced() bool { return false }

func (foreignHandle) HasSyncedChecker() cache.DoneChecker { return nil }

// An index function that fails for an arriving object quarantines it; others are stored and
// delivered, and the object once it can be indexed.
func TestAnIndexThatFailsForAnArrivingObjectQuarantinesIt(t *testing.T) {
	for name, fail := range map[string]func() ([]string, error){
		"fails":  func() ([]string, error) { return nil, errBoom },
		"panics": func() ([]string, error) { panic(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, bad(pod("a", "1")), pod("a", "2")), func(c *cache.InformerConfig[*object]) {
					c.Indexes = cache.TypedIndexers[*object]{"v": func(o *object) ([]string, error) {
						if isBad(o) {
							return fail()
						}
						return []string{o.Labels["v"]}, nil
					}}
				})
				notified := newReplicaHandler(t)
				handle := r.handle(notified)
				r.run()
				synctest.Wait()
				assert.True(t, r.inf.HasSynced() && handle.HasSynced())
				assert.Equal(t, []string{"add a/2@2"}, notified.take())
				require.Len(t, r.heard.all(), 1)
				var refused *cache.ObjectError
				require.ErrorAs(t, r.heard.all()[0], &refused)
				assert.Equal(t, []any{"a/1", stageIndex}, []any{refused.Key, refused.Stage})
				assert.ErrorContains(t, refused, `"v"`)
				require.Len(t, r.inf.Status().Quarantined, 1)
				must(t, r.source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/1@3"}, notified.take())
				assert.Empty(t, r.inf.Status().Quarantined)
				r.stop()
			})
		})
	}
}

// Fails if the report of an object that is quarantined comes between those that came with
// it and their handlers: an error handler may take its time.
func TestASlowErrorHandlerDelaysNoGoodObjects(t *testing.T) {
	picky := func(obj any) error {
		if isBad(obj) {
			return errBoom
		}
		return nil
	}
	for stage, install := range map[string]func(*cache.InformerConfig[*object]){
		stageIndex: func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"picky": func(o *object) ([]string, error) { return nil, picky(o) }}
		},
		stageTransform: func(c *cache.InformerConfig[*object]) {
			c.Transform = func(o *object) (*object, error) { return o, picky(o) }
		},
		stageKey: func(c *cache.InformerConfig[*object]) {
			c.KeyFunction = func(obj any) (string, error) {
				if err := picky(obj); err != nil {
					return "", err
				}
				return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			}
		},
	} {
		for _, strategy := range []cache.ListStrategy{cache.ListPaged, cache.ListUnpaged} {
			t.Run(fmt.Sprint(stage, " ", strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), bad(pod("a", "2")), pod("a", "3"))
					var reported []error
					r := newInformerRig(t, source, func(c *cache.InformerConfig[*object]) {
						install(c)
						c.ReflectorOptions.Strategy = strategy
						c.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) {
							reported = append(reported, err)
							time.Sleep(time.Hour)
						}
					})
					notified := newReplicaHandler(t)
					r.handle(notified)
					r.run()
					synctest.Wait()
					require.Len(t, reported, 1)
					var object *cache.ObjectError
					require.ErrorAs(t, reported[0], &object)
					assert.Equal(t, stage, object.Stage)
					assert.Equal(t, 2, r.inf.Len())
					assert.Equal(t, []string{"add a/1@1", "add a/3@3"}, notified.take(), "while the error handler is called")
					r.stop()
				})
			})
		}
	}
}

// The context of the error handler has ReflectorOptions.Logger, or for errors of a handler that
// handler's own logger.
func TestTheErrorHandlerFindsTheInformersLoggerInItsContext(t *testing.T) {
	notRaced(t)
	survivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		handlers := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var mu sync.Mutex
		var causes []cache.Cause
		r := newInformerRig(t, newSource(t, pod("a", "1"), bad(pod("a", "2"))), func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"picky": func(o *object) ([]string, error) {
				if isBad(o) {
					return nil, errBoom
				}
				return nil, nil
			}}
			c.DetectMutations = mutation.Options{}.New
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *cache.Reflector, err error) {
				mu.Lock()
				defer mu.Unlock()
				causes = append(causes, cache.CauseOf(err))
				want := own
				if len(causes) > 4 {
					want = handlers
				}
				assert.Same(t, want.GetSink(), klog.FromContext(ctx).GetSink(), "%v", err)
			}
		})
		r.source.FailLists(1, errBoom)
		panics := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic(errBoom) }}
		r.handle(panics)
		r.run()
		sleep(time.Minute) // that is more than the pause after the failure
		changeStored(r.inf, "a/1")
		sleep(time.Minute)
		r.handle(panics, cache.HandlerOptions{Logger: &handlers})
		synctest.Wait()
		assert.ElementsMatch(t, []cache.Cause{cache.CauseOther, causeIndex, causeHandlerError, causeMutated}, causes[:4])
		assert.Equal(t, []cache.Cause{causeHandlerError}, causes[4:])
		r.stop()
	})
}
