package cache

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// refusingRigs are pipelines whose consumer refuses bad objects.
var refusingRigs = map[string]func(*testing.T, *cachetest.Source, func(*Config)) *rig{
	"a Process": func(t *testing.T, s *cachetest.Source, change func(*Config)) *rig {
		return processRig(t, s, func(c *Config, _ *DeltaFIFO, indexer Indexer) {
			apply := c.Process
			c.Process = func(obj any, initial bool) error {
				if newest := obj.(Deltas).Newest(); newest.Type != Deleted && isBad(newest.Object) {
					return errBoom
				}
				return apply(obj, initial)
			}
			change(c)
		})
	},
	"a store that is not ours": func(t *testing.T, s *cachetest.Source, change func(*Config)) *rig {
		return newRig(t, s, func(c *Config) {
			c.KeyFunction = MetaNamespaceKeyFunc
			c.Store = &storeOfAnother{Store: c.Store, refuse: func(obj any) error {
				if isBad(obj) {
					return errBoom
				}
				return nil
			}}
			change(c)
		})
	},
}

// G6: what a consumer has refused leaves the status with the object: by an event,
// or by its absence from a relist, though the queue knows nothing of it. Fails if
// the queue asks only its known objects who holds what.
func TestG6WhatAConsumerRefusedIsForgottenWithTheObject(t *testing.T) {
	for name, build := range refusingRigs {
		for _, relist := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, bad(pod("a", "1")), pod("a", "2"))
					r := build(t, source, func(*Config) {})
					r.run()
					synctest.Wait()
					require.Len(t, r.status().Quarantined, 1)
					if relist {
						_, err := source.DeleteSilently("a", "1")
						require.NoError(t, err)
						source.BreakWatches(cachetest.ErrExpired())
					} else {
						_, err := source.Delete("a", "1")
						require.NoError(t, err)
					}
					sleep(time.Minute)
					assert.Empty(t, r.status().Quarantined)
					r.equalsSource()
					r.stop()
				})
			})
		}
	}
}

// G6: a resync repeats the old state, which is still shown; that does not make the
// newer one taken. Fails if any state releases a key.
func TestG6AResyncOfTheOldStateReleasesNothing(t *testing.T) {
	for name, build := range refusingRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				r := build(t, source, func(c *Config) { c.FullResyncPeriod = time.Minute })
				r.run()
				synctest.Wait()
				require.NoError(t, source.Apply(bad(pod("a", "1"))))
				sleep(10 * time.Minute)
				assert.Len(t, r.status().Quarantined, 1)
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Empty(t, r.status().Quarantined)
				r.stop()
			})
		})
	}
}

// G2: the parts of a first list that was never ended are visible, so the next
// first list must not be older. Fails if only a committed version is remembered.
func TestG2AFirstListIsNotFollowedByAnOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(version string) metav1.PartialObjectMetadata {
			o := pod("a", "1")
			o.ResourceVersion, o.UID = version, "u"
			return *o
		}
		answers := []struct {
			version, token, object string
			err                    error
		}{
			{"10", "more", "10", nil}, {err: apierrors.NewForbidden(pods, "", errBoom)}, {"8", "", "8", nil}, {"12", "", "11", nil},
		}
		var asked []string
		source := &scripted{
			list: func(o metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, o.ResourceVersion)
				answer := answers[len(asked)-1]
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: answer.version, Continue: answer.token},
					Items:    []metav1.PartialObjectMetadata{at(answer.object)},
				}, answer.err
			},
			watch: func(context.Context, int) (watch.Interface, error) { return newProbe(), nil },
		}
		h, told := &heard{}, &recorder{}
		controller := New(&Config{
			ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc), Handler: told,
			ReflectorOptions: ReflectorOptions{Strategy: ListPaged, ErrorHandler: h.handle},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); controller.RunWithContext(ctx) }()
		sleep(time.Minute)
		assert.Equal(t, []string{"0", "", "10", ""}, asked)
		assert.Equal(t, []Cause{CauseForbidden, CauseRegression}, h.causes())
		assert.Equal(t, []string{"add a/1@10 initial", "update a/1@11"}, told.take())
		assert.Equal(t, "12", controller.LastSyncResourceVersion())
		cancel()
		<-done
	})
}

// A queue's first list tells of everything that is listed, also of what the store
// held before: whoever consumes this queue has not been told of it.
func TestAHandlerOfAFilledStoreIsToldOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		first := newRig(t, source, nil)
		first.run()
		synctest.Wait()
		first.cancel()
		<-first.done
		second := newRig(t, source, func(c *Config) { c.Store = first.indexer })
		second.run()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"update a/1@1", "update a/2@2"}, second.handler.take())
		second.stop()
	})
}

// A panic of a user's function is one line in the message, and its stack is kept
// for nobody: there may be one for each of many objects.
func TestAPanicThatIsHeldBackKeepsNoStack(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{"panics": func(any) ([]string, error) { panic(errBoom) }})
	err := indexer.Add(pod("a", "1"))
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Contains(t, string(panicked.Stack), "consumer_quarantine_test.go")
	assert.Less(t, len(err.Error()), 200)
	assert.False(t, strings.Contains(err.Error(), "\n"))
	held := quarantinedIn(indexer)
	require.Len(t, held, 1)
	require.ErrorAs(t, held[0].Err, &panicked)
	assert.Empty(t, panicked.Stack)
	assert.ErrorIs(t, held[0].Err, errBoom)
	assert.Contains(t, held[0].Err.Error(), "boom")
}

// The controller gives the memory of a large batch back, and holds none of its
// objects.
func TestAControllerKeepsNothingOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 3000 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) { c.ReflectorOptions.Strategy = ListWhole })
		r.run()
		synctest.Wait()
		outcomes := r.ctlr.(*controller).consumer.(*storeConsumer).outcomes
		assert.LessOrEqual(t, cap(outcomes), keptCapacity)
		for _, o := range outcomes[:cap(outcomes)] {
			require.Nil(t, o.obj)
			require.Nil(t, o.old)
		}
		r.stop()
	})
}

// endingStore is a store of somebody else's that ends a run with the first object.
type endingStore struct {
	Store
	end func()
}

func (s *endingStore) Add(obj any) error {
	defer s.end()
	return s.Store.Add(obj)
}

// Nor does it hold what a store of somebody else's had been given of a batch when the
// context ended.
func TestAControllerKeepsNothingOfABatchThatIsNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		ctx, cancel := context.WithCancel(t.Context())
		store := &endingStore{NewStore(MetaNamespaceKeyFunc), cancel}
		ctlr := New(&Config{
			ListerWatcher: source, Store: store, KeyFunction: MetaNamespaceKeyFunc,
			ReflectorOptions: ReflectorOptions{Strategy: ListWhole},
		}).(*controller)
		ctlr.RunWithContext(ctx)
		require.Len(t, store.ListKeys(), 1, "it has some of the batch")
		outcomes := ctlr.consumer.(*storeConsumer).outcomes
		for _, o := range outcomes[:cap(outcomes)] {
			require.Nil(t, o.obj)
		}
		source.Close()
	})
}

// G5: an empty first list is synced when its version is applied, not before, also
// if the consumer has not come to look yet. Fails if the queue does not know that
// there is a consumer.
func TestG5AnEmptyFirstListIsSyncedWithItsVersion(t *testing.T) {
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	defer queue.attach(takesBatches, &processConsumer{})()
	require.NoError(t, queue.BeginReplace(ReplaceOptions{}).Commit(t.Context(), "7"))
	assert.False(t, queue.HasSynced())
	require.NoError(t, queue.popPending(func(b batch) error {
		assert.Equal(t, "7", b.version)
		assert.False(t, queue.HasSynced())
		return nil
	}))
	assert.True(t, queue.HasSynced())
}
