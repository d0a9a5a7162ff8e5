//lint:file-ignore SA1019 the deprecated constructors are tested here

package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// plain is an informer of NewInformerWithOptions under test.
type plain struct {
	*testing.T
	source *cachetest.Source
	store  Store
	ctlr   Controller
	heard  *heard
	cancel context.CancelFunc
	done   chan struct{}
}

func newPlain(t *testing.T, source *cachetest.Source, options InformerOptions) *plain {
	t.Helper()
	p := &plain{T: t, source: source, heard: &heard{}}
	options.ListerWatcher, options.ObjectType = source, &object{}
	options.ReflectorOptions.ErrorHandler = p.heard.handle
	options.ReflectorOptions.Strategy = ListPaged
	p.store, p.ctlr = NewInformerWithOptions(options)
	return p
}

func (p *plain) run() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		p.ctlr.RunWithContext(ctx)
	}()
	synctest.Wait()
}

func (p *plain) stop() {
	p.cancel()
	<-p.done
	p.source.Close()
}

func (p *plain) status() Status {
	status, ok := StatusOf(p.ctlr)
	require.True(p, ok, "the controller has a status")
	return status
}

// gate is a handler that does not return before it is opened.
type gate struct {
	recorder
	open chan struct{}
}

func (g *gate) OnAdd(obj any, initial bool) {
	<-g.open
	g.recorder.OnAdd(obj, initial)
}

func TestAPlainInformerFillsAStoreAndTellsItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a"), pod("ns", "b")), InformerOptions{Handler: told})
		require.False(t, p.ctlr.HasSynced())
		p.run()
		defer p.stop()

		require.Equal(t, []string{"add ns/a@1 initial", "add ns/b@2 initial"}, told.take())
		require.True(t, p.ctlr.HasSynced())
		require.NoError(t, WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()))
		require.Equal(t, "2", p.ctlr.LastSyncResourceVersion())

		require.NoError(t, p.source.Apply(labelled(pod("ns", "a"), "new"), pod("ns", "c")))
		_, err := p.source.Delete("ns", "b")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"update ns/a@3", "add ns/c@4", "delete ns/b"}, told.take())
		require.ElementsMatch(t, []string{"ns/a", "ns/c"}, p.store.ListKeys())
		require.Equal(t, "5", p.ctlr.LastSyncResourceVersion())
		require.Empty(t, p.heard.all())
	})
}

// TestAPlainInformerHasSyncedOnceItsHandlerHas: that of client-go answers so, for there
// the handler is called by whoever fills the store.
func TestAPlainInformerHasSyncedOnceItsHandlerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &gate{open: make(chan struct{})}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{Handler: slow})
		p.run()
		defer p.stop()

		require.Len(t, p.store.List(), 1, "the store does not wait for the handler")
		require.False(t, p.ctlr.HasSynced())
		require.False(t, IsDone(p.ctlr.HasSyncedChecker()))

		close(slow.open)
		synctest.Wait()
		require.True(t, p.ctlr.HasSynced())
		require.True(t, IsDone(p.ctlr.HasSyncedChecker()))
	})
}

func TestAPlainInformerWithoutAHandlerFillsAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{ResyncPeriod: time.Second})
		p.run()
		defer p.stop()
		require.Len(t, p.store.List(), 1)
		require.True(t, p.ctlr.HasSynced())
		require.True(t, IsDone(p.ctlr.HasSyncedChecker()))
		require.Empty(t, p.status().Handlers)
	})
}

func TestAPlainInformerResyncsMoreOftenThanEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{Handler: told, ResyncPeriod: 100 * time.Millisecond})
		p.run()
		defer p.stop()
		told.take()
		sleep(350 * time.Millisecond)
		require.Equal(t, []string{"update ns/a@1", "update ns/a@1", "update ns/a@1"}, told.take())
		require.Empty(t, p.heard.all(), "no complaint about the period")
	})
}

func TestWhatWaitsForThePlainInformersHandlerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &gate{open: make(chan struct{})}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{
			Handler: slow, HandlerOptions: HandlerOptions{Name: "slow"},
		})
		p.run()
		defer p.stop()
		for i := range 3 * 1024 {
			require.NoError(t, p.source.Apply(labelled(pod("ns", "a"), itoa(i))))
		}
		synctest.Wait()
		handlers := p.status().Handlers
		require.Len(t, handlers, 1)
		require.Equal(t, "slow", handlers[0].Name)
		require.True(t, handlers[0].Merging)
		require.LessOrEqual(t, handlers[0].Backlog, 2)

		close(slow.open)
		synctest.Wait()
		require.Equal(t, fmt.Sprintf("update ns/a@%s", p.source.ResourceVersion()), last(slow.take()))
	})
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func TestWhatIsSetOfAPlainInformerReachesItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a"), pod("other", "b")), InformerOptions{
			Handler:         told,
			Indexers:        Indexers{NamespaceIndex: MetaNamespaceIndexFunc},
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

		require.Equal(t, []string{"add ns/a@1 initial"}, told.take())
		found, err := p.store.(Indexer).ByIndex(NamespaceIndex, "ns")
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
// tombstones, so that a handler may ask the store for what it was told is gone.
func TestAHandlerFindsATombstonesObjectInTheStore(t *testing.T) {
	store, _ := NewInformerWithOptions(InformerOptions{ListerWatcher: newSource(t), KeyFunction: nil})
	require.NoError(t, store.Add(pod("ns", "a")))
	_, exists, err := store.Get(DeletedFinalStateUnknown{Key: "ns/a"})
	require.NoError(t, err)
	require.True(t, exists)
}

func TestAPlainInformerThatIsStoppedBeforeItSyncedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, handler := range []ResourceEventHandler{nil, &recorder{}} {
			source := newSource(t, pod("ns", "a"))
			source.HangLists(1)
			p := newPlain(t, source, InformerOptions{Handler: handler})
			p.run()
			p.stop()
			require.False(t, p.ctlr.HasSynced())
			require.ErrorIs(t, WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()), ErrInformerStopped)
		}
	})
}

func TestASecondRunOfAPlainInformerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(t, newSource(t), InformerOptions{})
		p.run()
		p.ctlr.RunWithContext(t.Context())
		p.stop()
		p.ctlr.Run(nil)
		require.Len(t, p.heard.all(), 2)
		for _, err := range p.heard.all() {
			require.ErrorIs(t, err, ErrAlreadyRan)
		}
	})
}

func TestTheDeprecatedConstructorsMakePlainInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("ns", "a"))
		told := &recorder{}
		store, ctlr := NewInformer(source, &object{}, 0, told)
		indexer, indexing := NewIndexerInformer(source, &object{}, time.Minute, told, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		for _, c := range []Controller{ctlr, indexing} {
			go func() { c.Run(ctx.Done()); ended <- struct{}{} }()
		}
		require.NoError(t, WaitForDone(ctx, ctlr.HasSyncedChecker(), indexing.HasSyncedChecker()))
		require.Equal(t, []string{"add ns/a@1 initial", "add ns/a@1 initial"}, told.take())
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		keys, err := indexer.IndexKeys(NamespaceIndex, "ns")
		require.NoError(t, err)
		require.Equal(t, []string{"ns/a"}, keys)
		sleep(time.Minute)
		require.Equal(t, []string{"update ns/a@1"}, told.take(), "only the second resyncs")
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
		spoil func(*InformerOptions)
	}{
		{"InformerOptions.ListerWatcher", func(o *InformerOptions) { o.ListerWatcher = nil }},
		{"InformerOptions.ListerWatcher", func(o *InformerOptions) { o.ListerWatcher = (*ListWatch)(nil) }},
		{"InformerOptions.Handler", func(o *InformerOptions) { o.Handler = (*recorder)(nil) }},
		{"InformerOptions.ResyncPeriod", func(o *InformerOptions) { o.ResyncPeriod = -1 }},
		{"InformerOptions.HandlerOptions.ResyncPeriod", func(o *InformerOptions) { o.HandlerOptions.ResyncPeriod = &second }},
		{"HandlerOptions.Delivery", func(o *InformerOptions) { o.HandlerOptions.Delivery = 9 }},
		{"ReflectorOptions.ResyncPeriod", func(o *InformerOptions) { o.ReflectorOptions.ResyncPeriod = second }},
		{"ReflectorOptions.MinWatchTimeout", func(o *InformerOptions) { o.MinWatchTimeout = -1 }},
	}
	for _, tc := range cases {
		t.Run(tc.field, func(t *testing.T) {
			options := InformerOptions{ListerWatcher: newSource(t)}
			tc.spoil(&options)
			defer func() { require.Contains(t, fmt.Sprint(recover()), tc.field) }()
			NewInformerWithOptions(options)
		})
	}
}
