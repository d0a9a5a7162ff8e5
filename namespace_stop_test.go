package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// G9: whatever the namespaces are doing, Run returns at the instant at which its
// context ends, and leaves nothing behind. Fails if any of them is waited for for
// longer than its running call lasts.
func TestG9RunOfSeveralNamespacesReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.sources["a"].HangLists(1)
		r.sources["b"].FailLists(cachetest.Forever, errBoom)
		r.run()
		sleep(5 * time.Minute)
		heard := len(r.heard.all())
		stopped := time.Now()
		r.stop()
		assert.Zero(t, time.Since(stopped))
		assert.Len(t, r.heard.all(), heard, "nothing is reported when the context ends")
		assert.Equal(t, PhaseStopped, r.status().Phase)
		r.equalsSources("c")
	})
}

// G9: a handler that runs is waited for; the namespaces that wait for their turn
// are not, and apply nothing any more.
func TestG9ARunningHandlerIsWaitedForAndWhoeverWaitsForItIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h atomic.Int32
		r := newNamespaceRig(t, func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(any) {
				h.Add(1)
				time.Sleep(time.Hour)
			}}
		})
		r.run()
		sleep(time.Minute)
		before := r.versions()
		r.cancel()
		sleep(time.Minute)
		select {
		case <-r.done:
			t.Error("Run returned while the handler was running")
		default:
		}
		<-r.done
		assert.EqualValues(t, 1, h.Load())
		assert.Equal(t, before, r.versions())
		assert.Len(t, before, 2, "what one namespace brought")
		r.close()
	})
}

// G5: what was synced when the run ended is done, whoever noticed the end first.
//
// The last page of each list arrives while its namespace's first object is still
// being told of or waits for that. So the version comes with the last object, and
// not in a batch of its own, which the end would drop.
func TestG5WhatSyncsAtTheVeryEndIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *namespaceRig
		calls := 0
		r = newNamespaceRig(t, func(c *Config) {
			c.WatchListPageSize = 1
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(any) {
				time.Sleep(2 * time.Hour)
				if calls++; calls == 6 {
					r.cancel()
					synctest.Wait()
				}
			}}
		})
		for _, source := range r.sources {
			source.DelayLists(time.Hour)
		}
		r.run()
		<-r.done
		assert.Equal(t, []string{"a", "b", "c"}, r.synced())
		assert.True(t, IsDone(r.ctlr.HasSyncedChecker()))
		assert.True(t, r.ctlr.HasSynced())
		r.close()
	})
}

// A panic in one namespace ends all, is waited for, and comes out of Run with the
// place at which it happened.
func TestB17APanicInOneNamespaceComesOutOfRunAndEndsTheOthers(t *testing.T) {
	logged := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	defer func() { utilruntime.PanicHandlers = logged }()
	for name, change := range map[string]func(*Config){
		"of the source": func(c *Config) {
			c.Namespaces["b"] = &ListWatch{
				ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (apiruntime.Object, error) {
					time.Sleep(time.Minute)
					panic(errBoom)
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errBoom },
			}
		},
		"of the error handler": func(c *Config) {
			c.Namespaces["b"] = &ListWatch{}
			c.ReflectorOptions.ErrorHandler = func(context.Context, *Reflector, error) { panic(errBoom) }
		},
		"of the handler": func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				if obj.(*object).Namespace == "b" {
					panic(errBoom)
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newNamespaceRig(t, change)
				defer r.close()
				defer func() {
					panicked, ok := recover().(*PanicError)
					require.True(t, ok)
					synctest.Wait()
					assert.ErrorIs(t, panicked, errBoom)
					assert.Contains(t, panicked.Error(), "TestB17APanicInOneNamespaceComesOutOfRunAndEndsTheOthers.func")
					assert.Zero(t, r.sources["a"].ActiveWatches()+r.sources["c"].ActiveWatches())
				}()
				r.ctlr.Run(make(chan struct{}))
			})
		})
	}
}

func TestB12AControllerOfSeveralNamespacesRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.run()
		synctest.Wait()
		r.ctlr.RunWithContext(context.Background())
		require.Len(t, r.heard.all(), 1)
		assert.ErrorIs(t, r.heard.all()[0], ErrAlreadyRan)
		assert.Equal(t, 1, r.sources["a"].ListCalls())
		r.stop()
		r.ctlr.RunWithContext(context.Background())
		assert.Len(t, r.heard.all(), 2, "also after it has ended")
	})
}
