package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// badInput is a mistake and how it is answered: with the typed cause, if there is one, and
// a text that has all the words, so that it says what is wrong and what is right.
type badInput struct {
	make  func(r *informerRig) error
	cause error
	words []string
}

// check makes the mistake: the answer takes no time, and the informer goes on as if
// nothing had been.
func (b badInput) check(t *testing.T, phase string) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("b", "2")), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}
		})
		told := newReplica(t)
		r.handle(told)
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
		told.equals(r.inf.Shared().GetStore())
	})
}

func adding(options HandlerOptions) func(*informerRig) error {
	return func(r *informerRig) error {
		handle, err := r.inf.Shared().AddEventHandlerWithOptions(&tally{}, options)
		assert.Nil(r, handle)
		return err
	}
}

func indexing(indexers Indexers) func(*informerRig) error {
	return func(r *informerRig) error { return r.inf.Shared().AddIndexers(indexers) }
}

func always(values []string, err error) IndexFunc {
	return func(any) ([]string, error) { return values, err }
}

// Mistakes that are the same before the run and while it runs.
func TestBadInputIsAnsweredByAnErrorThatSaysWhatIsRight(t *testing.T) {
	tooShort, negative := 999*time.Millisecond, -time.Second
	var none *replica
	mistakes := map[string]badInput{
		"nil handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(nil); return err },
			cause: ErrNilHandler, words: []string{"no handler was added", "nil"},
		},
		"nil pointer for a handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(none); return err },
			cause: ErrNilHandler, words: []string{"no handler was added"},
		},
		"nil typed handler": {
			make:  func(r *informerRig) error { _, err := r.inf.AddHandler(nil); return err },
			cause: ErrNilHandler, words: []string{"no handler was added"},
		},
		"resync below the minimum": {
			make: adding(HandlerOptions{ResyncPeriod: &tooShort}), words: []string{"ResyncPeriod", "999ms", "1s", "0 is no resync"},
		},
		"resync below the minimum, the short form": {
			make: func(r *informerRig) error {
				_, err := r.inf.Shared().AddEventHandlerWithResyncPeriod(&tally{}, tooShort)
				return err
			},
			words: []string{"ResyncPeriod", "999ms", "1s"},
		},
		"negative resync":  {make: adding(HandlerOptions{ResyncPeriod: &negative}), words: []string{"ResyncPeriod", "negative", "use 0"}},
		"unknown delivery": {make: adding(HandlerOptions{Delivery: 7}), words: []string{"HandlerOptions.Delivery", "7"}},
		"foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.RemoveHandler(other.handle(&tally{}))
			},
			cause: ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"shutting down a foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.ShutDownHandler(other.handle(&tally{}))
			},
			cause: ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"nil registration":                 {make: func(r *informerRig) error { return r.inf.RemoveHandler(nil) }, cause: ErrForeignRegistration},
		"shutting down a nil registration": {make: func(r *informerRig) error { return r.inf.ShutDownHandler(nil) }, cause: ErrForeignRegistration},
		"registration of another package": {
			make:  func(r *informerRig) error { return r.inf.RemoveHandler(foreignHandle{}) },
			cause: ErrForeignRegistration, words: []string{"foreignHandle"},
		},
		"index that is there": {make: indexing(Indexers{"name": always(nil, nil), "new": always(nil, nil)}), words: []string{"indexer conflict", "name"}},
		"namespace index":     {make: indexing(Indexers{NamespaceIndex: always(nil, nil)}), words: []string{"indexer conflict", NamespaceIndex}},
		"nil index function":  {make: indexing(Indexers{"new": nil}), words: []string{`"new"`, "no function"}},
		"unknown index":       {make: func(r *informerRig) error { _, err := r.inf.Shared().GetIndexer().ByIndex("nam", "x"); return err }, words: []string{"Index with name nam does not exist"}},
		"unknown typed index": {make: func(r *informerRig) error { _, err := r.inf.ByIndex("nam", "x"); return err }, words: []string{"nam"}},
		"nil error handler":   {make: func(r *informerRig) error { return r.inf.Shared().SetWatchErrorHandler(nil) }, cause: ErrNilHandler, words: []string{"SetWatchErrorHandler"}},
		"nothing to wait for": {make: func(r *informerRig) error { return WaitForDone(r.Context()) }, cause: ErrNothingToWaitFor, words: []string{"HasSyncedChecker"}},
		"nil to wait for":     {make: func(r *informerRig) error { return WaitForDone(r.Context(), r.inf.HasSyncedChecker(), nil) }, cause: ErrNothingToWaitFor, words: []string{"nil"}},
	}
	for name, mistake := range mistakes {
		for _, phase := range []string{"before", "during"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
}

type foreignHandle struct{}

func (foreignHandle) HasSynced() bool               { return false }
func (foreignHandle) HasSyncedChecker() DoneChecker { return nil }

// What comes too late says so.
func TestWhatMustBeSetBeforeTheRunIsRefusedAfterIt(t *testing.T) {
	setting := map[string]badInput{
		"transform": {
			make: func(r *informerRig) error {
				return r.inf.Shared().SetTransform(func(any) (any, error) { return nil, nil })
			},
			cause: ErrInformerStarted, words: []string{"transform", "before the informer runs"},
		},
		"error handler": {
			make:  func(r *informerRig) error { return r.inf.Shared().SetWatchErrorHandler(func(*Reflector, error) {}) },
			cause: ErrInformerStarted, words: []string{"error handler", "before the informer runs"},
		},
	}
	for name, mistake := range setting {
		for _, phase := range []string{"during", "after"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
	stopped := map[string]badInput{
		"handler": {make: adding(HandlerOptions{}), cause: ErrInformerStopped, words: []string{"no handler was added"}},
		"typed handler": {make: func(r *informerRig) error {
			_, err := r.inf.AddHandler(TypedResourceEventHandlerFuncs[*object]{})
			return err
		}, cause: ErrInformerStopped},
		"index": {make: indexing(Indexers{"new": always(nil, nil)}), cause: ErrInformerStopped, words: []string{"no index was added"}},
	}
	for name, mistake := range stopped {
		t.Run(name+", after", func(t *testing.T) { mistake.check(t, "after") })
	}
}

// An index function that fails for a stored object cannot be added to a running
// informer: the error names the index and the object's key.
func TestAnIndexThatFailsForAStoredObjectIsNotAdded(t *testing.T) {
	// Of one object only, for of several any may be named.
	fails := func(fail func() error) IndexFunc {
		return func(obj any) ([]string, error) {
			if name, _ := ObjectToName(obj); name.Name == "1" {
				return nil, fail()
			}
			return nil, nil
		}
	}
	panics := fails(func() error { panic(errBoom) })
	badInput{make: indexing(Indexers{"new": fails(func() error { return errBoom })}), cause: errBoom, words: []string{`"new"`, "a/1"}}.check(t, "during")
	badInput{make: indexing(Indexers{"new": panics}), cause: errBoom, words: []string{`"new"`, "a/1", "panic"}}.check(t, "during")
}

// One that fails for an object that arrives has that quarantined; others are taken, the
// handlers are told of these, and the object comes once it can.
func TestAnIndexThatFailsForAnArrivingObjectQuarantinesIt(t *testing.T) {
	for name, fail := range map[string]func() ([]string, error){
		"fails":  func() ([]string, error) { return nil, errBoom },
		"panics": func() ([]string, error) { panic(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, bad(pod("a", "1")), pod("a", "2")), func(c *InformerConfig[*object]) {
					c.Indexes = TypedIndexers[*object]{"v": func(o *object) ([]string, error) {
						if isBad(o) {
							return fail()
						}
						return []string{o.Labels["v"]}, nil
					}}
				})
				told := newReplica(t)
				handle := r.handle(told)
				r.run()
				synctest.Wait()
				assert.True(t, r.inf.HasSynced() && handle.HasSynced())
				assert.Equal(t, []string{"add a/2@2"}, told.take())
				require.Len(t, r.heard.all(), 1)
				var refused *ObjectError
				require.ErrorAs(t, r.heard.all()[0], &refused)
				assert.Equal(t, []any{"a/1", StageIndex}, []any{refused.Key, refused.Stage})
				assert.ErrorContains(t, refused, `"v"`)
				require.Len(t, r.inf.Status().Quarantined, 1)
				must(t, r.source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/1@3"}, told.take())
				assert.Empty(t, r.inf.Status().Quarantined)
				r.stop()
			})
		})
	}
}

// A default resync period that is too short is taken for a second, and that is
// reported: an interface without an error cannot refuse it.
func TestADefaultResyncPeriodBelowTheMinimumIsReportedAndASecondIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, heard := newReplica(t), &heard{}
		inf := NewSharedIndexInformerWithOptions(newSource(t, pod("a", "1")), &object{}, SharedIndexInformerOptions{
			ResyncPeriod: time.Millisecond, ReflectorOptions: ReflectorOptions{ErrorHandler: heard.handle},
		})
		_, err := inf.AddEventHandler(told)
		must(t, err)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); inf.Run(stop) }()
		sleep(3500 * time.Millisecond)
		assert.Equal(t, []string{"add a/1@1", "resync a/1@1", "resync a/1@1", "resync a/1@1"}, told.take())
		require.Len(t, heard.all(), 1)
		for _, word := range []string{"resync period", "1ms", "1s", "0 for no resync"} {
			assert.ErrorContains(t, heard.all()[0], word)
		}
		close(stop)
		<-done
	})
}

// Mistakes in the program are told at construction, by a panic that names the field.
func TestAContradictoryInformerIsNotConstructed(t *testing.T) {
	var none *object
	source := &scripted{}
	cases := map[string]func(){
		"ListerWatcher is nil":     func() { NewSharedInformer(nil, none, 0) },
		"ResyncPeriod is negative": func() { NewSharedIndexInformer(source, &object{}, -1, nil) },
		"ReflectorOptions.ResyncPeriod": func() {
			NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ResyncPeriod: 1}})
		},
		"ReflectorOptions.ShouldResync": func() {
			NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ShouldResync: func() bool { return true }}})
		},
		"InformerConfig.ResyncPeriod": func() { NewInformerFor(source, InformerConfig[*object]{ResyncPeriod: time.Millisecond}) },
		"Transform and Convert": func() {
			NewInformerFor(source, InformerConfig[*object]{
				Transform: func(o *object) (*object, error) { return o, nil },
				Convert:   func(any) (*object, error) { return nil, nil },
			})
		},
		"Convert needs an ObjectType": func() {
			NewInformerFor(source, InformerConfig[*object]{Convert: func(any) (*object, error) { return nil, nil }})
		},
		"SampleEvery is negative": func() {
			NewInformerFor(source, InformerConfig[*object]{DetectMutations: MutationDetection{SampleEvery: -1}})
		},
	}
	for words, construct := range cases {
		t.Run(words, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), words) }()
			construct()
		})
	}
}

// A wait for an informer that cannot sync says what that does, and what failed last.
func TestAWaitThatEndsInVainSaysWhatTheInformerWasDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t), nil)
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.inf.WaitSynced(ctx)
		assert.ErrorIs(t, err, errBoom)
		assert.ErrorIs(t, err, ctx.Err())
		assert.True(t, strings.Contains(err.Error(), string(PhasePaused)) || strings.Contains(err.Error(), "list"), err.Error())
		assert.False(t, errors.Is(err, ErrInformerStopped))
		r.source.Heal()
		r.stop()
	})
}
