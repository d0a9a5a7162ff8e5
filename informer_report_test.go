package cache

import (
	"context"
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
)

// Fails if the report of an object that is held back comes between those that came with
// it and their handlers: an error handler may take its time.
func TestAnErrorHandlerThatTakesItsTimeDoesNotKeepGoodObjectsFromHandlers(t *testing.T) {
	picky := func(obj any) error {
		if isBad(obj) {
			return errBoom
		}
		return nil
	}
	for stage, install := range map[Stage]func(*InformerConfig[*object]){
		StageIndex: func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"picky": func(o *object) ([]string, error) { return nil, picky(o) }}
		},
		StageTransform: func(c *InformerConfig[*object]) {
			c.Transform = func(o *object) (*object, error) { return o, picky(o) }
		},
		StageKey: func(c *InformerConfig[*object]) {
			c.KeyFunction = func(obj any) (string, error) {
				if err := picky(obj); err != nil {
					return "", err
				}
				return DeletionHandlingMetaNamespaceKeyFunc(obj)
			}
		},
	} {
		for _, strategy := range []ListStrategy{ListPaged, ListWhole} {
			t.Run(fmt.Sprint(stage, " ", strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), bad(pod("a", "2")), pod("a", "3"))
					var reported []error
					r := newInformerRig(t, source, func(c *InformerConfig[*object]) {
						install(c)
						c.ReflectorOptions.Strategy = strategy
						c.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *Reflector, err error) {
							reported = append(reported, err)
							time.Sleep(time.Hour)
						}
					})
					told := newReplica(t)
					r.handle(told)
					r.run()
					synctest.Wait()
					require.Len(t, reported, 1)
					var object *ObjectError
					require.ErrorAs(t, reported[0], &object)
					assert.Equal(t, stage, object.Stage)
					assert.Equal(t, 2, r.inf.Len())
					assert.Equal(t, []string{"add a/1@1", "add a/3@3"}, told.take(), "while the error handler is called")
					r.stop()
				})
			})
		}
	}
}

// ReflectorOptions.Logger is for all that is told of an informer, whoever calls the error
// handler; a handler's own logger is for what concerns that handler. Fails if somebody
// finds another in the context.
func TestTheErrorHandlerFindsTheInformersLoggerInItsContext(t *testing.T) {
	notRaced(t)
	surviving(t)
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		handlers := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var mu sync.Mutex
		var causes []Cause
		r := newInformerRig(t, newSource(t, pod("a", "1"), bad(pod("a", "2"))), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"picky": func(o *object) ([]string, error) {
				if isBad(o) {
					return nil, errBoom
				}
				return nil, nil
			}}
			c.DetectMutations = MutationDetection{SampleEvery: 1}
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *Reflector, err error) {
				mu.Lock()
				defer mu.Unlock()
				causes = append(causes, CauseOf(err))
				want := own
				if len(causes) > 4 {
					want = handlers
				}
				assert.Same(t, want.GetSink(), klog.FromContext(ctx).GetSink(), "%v", err)
			}
		})
		r.source.FailLists(1, errBoom)
		panics := ResourceEventHandlerFuncs{AddFunc: func(any) { panic(errBoom) }}
		r.handle(panics)
		r.run()
		sleep(time.Minute) // that is more than the pause after the failure
		changeStored(r.inf, "a/1")
		sleep(time.Minute)
		r.handle(panics, HandlerOptions{Logger: &handlers})
		synctest.Wait()
		assert.ElementsMatch(t, []Cause{CauseOther, CauseObject, CauseProcess, CauseMutated}, causes[:4])
		assert.Equal(t, []Cause{CauseProcess}, causes[4:])
		r.stop()
	})
}

// The same for what is told of a wrong use.
func TestASecondRunIsToldOfWithTheInformersLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var told []error
		r := newInformerRig(t, newSource(t), func(c *InformerConfig[*object]) {
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *Reflector, err error) {
				told = append(told, err)
				assert.Same(t, own.GetSink(), klog.FromContext(ctx).GetSink())
			}
		})
		r.run()
		synctest.Wait()
		r.inf.Shared().RunWithContext(t.Context())
		require.Len(t, told, 1)
		assert.ErrorIs(t, told[0], ErrAlreadyRan)
		r.stop()
	})
}

// readClock does something else after it was read, once.
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

// Here a change comes to wait a second after the status has read the clock, and before it
// looks at the handler.
func TestTheAgeOfWhatWaitsIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &readClock{Clock: clock.RealClock{}}
		r := newInformerRig(t, newSource(t, pod("a", "1")), func(config *InformerConfig[*object]) { config.ReflectorOptions.Clock = c })
		told, goOn := stalled(t)
		r.handle(told)
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
		assert.Equal(t, 1, status.Backlog)
		assert.Zero(t, status.OldestAge)
		sleep(5 * time.Second)
		assert.Equal(t, 5*time.Second, r.handlerStatus(0).OldestAge)
		goOn()
		r.stop()
	})
}

// Fails if a call is not counted because the process does not survive it, or counted
// twice.
func TestAPanicThatEndsTheRunIsCounted(t *testing.T) {
	crashing(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
		handle := r.handle(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if nameOf(obj) == "a/2" {
				panic(errBoom)
			}
		}})
		r.run()
		<-r.done
		require.NotNil(t, r.panicked)
		status := handle.(*listener).status(time.Now())
		assert.EqualValues(t, 2, status.Delivered)
		assert.EqualValues(t, 1, status.Panics)
		assert.Zero(t, status.Backlog, "nothing is kept for it")
		r.source.Close()
	})
}

// Most programs do not look at the error of AddEventHandler. Fails if a handler that is
// told of nothing is not even in the log.
func TestAHandlerThatIsRefusedIsLogged(t *testing.T) {
	negative := -time.Second
	typed := TypedResourceEventHandlerFuncs[*object]{}
	for name, add := range map[string]func(*Informer[*object]) error{
		"nil": func(i *Informer[*object]) error {
			_, err := i.Shared().AddEventHandler(nil)
			return err
		},
		"nil typed": func(i *Informer[*object]) error {
			_, err := i.AddHandler(nil)
			return err
		},
		"bad period": func(i *Informer[*object]) error {
			_, err := i.Shared().AddEventHandlerWithResyncPeriod(ResourceEventHandlerFuncs{}, negative)
			return err
		},
		"bad delivery": func(i *Informer[*object]) error {
			_, err := i.AddHandler(typed, HandlerOptions{Delivery: 7})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			logged := captureKlog(t, 0)
			inf := NewInformerFor(newSource(t), InformerConfig[*object]{Name: "the informer"})
			err := add(inf)
			require.ErrorContains(t, err, "no handler was added")
			require.Len(t, logged.all(), 1)
			assert.Contains(t, logged.all()[0], "Informer refused a handler")
			assert.Contains(t, logged.all()[0], "the informer")
			assert.Empty(t, inf.Status().Handlers)
		})
	}
}

// Its own logger goes before the informer's, and that before the process's.
func TestAHandlerThatIsRefusedIsLoggedWithTheNearestLogger(t *testing.T) {
	var handlers, informers logLines
	handlersLogger, informersLogger := handlers.logger(0), informers.logger(0)
	others := captureKlog(t, 0)
	inf := NewInformerFor(newSource(t), InformerConfig[*object]{ReflectorOptions: ReflectorOptions{Logger: &informersLogger}})
	_, err := inf.AddHandler(TypedResourceEventHandlerFuncs[*object]{}, HandlerOptions{Logger: &handlersLogger, Delivery: 7})
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Empty(t, informers.all())
	_, err = inf.AddHandler(nil)
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Len(t, informers.all(), 1)
	assert.Empty(t, others.all())
}
