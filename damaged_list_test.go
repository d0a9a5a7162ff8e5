package cache_test

import (
	"context"
	"io"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// forEachWayOfDamage runs a test for all that a reflector feeds and all ways in which a source
// gives a whole state, with pauses of ten seconds.
func forEachWayOfDamage(t *testing.T, test func(t *testing.T, mirror func(*answering, *reports) mirrored)) {
	for name, construct := range mirrors {
		for _, way := range waysToList {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, func(source *answering, heard *reports) mirrored {
						return construct(source.as(way), damageOptions(way, heard))
					})
				})
			})
		}
	}
}

func damageOptions(way string, heard *reports) cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Strategy: strategyFor(way), ErrorHandler: heard.handle,
		Backoff: &wait.Backoff{Duration: 10 * time.Second, Factor: 1, Steps: 1},
	}
}

// checkBegun checks when whole states were asked for, counted from the first.
func checkBegun(t *testing.T, source *answering, want ...time.Duration) {
	t.Helper()
	var have []time.Duration
	for _, at := range source.begun() {
		have = append(have, at.Sub(source.begun()[0]))
	}
	assert.Equal(t, append([]time.Duration{0}, want...), have)
}

// An item of a list that could not be decoded is listed once more after a pause, as it may have
// been damaged on its way: if it is sound then, it is there at the version at which it was
// quarantined. Meanwhile the mirror has synced, and events are applied. Fails if it stays away
// until it is next written, or if anything waits for it.
func TestG6ADamagedItemOfAListIsListedOnceMore(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*answering, *reports) mirrored) {
		source, heard := newAnswering(
			[]runtime.Object{rightPod("sound", "1"), damaged("damaged", "5")},
			[]runtime.Object{rightPod("sound", "1"), rightPod("damaged", "5"), rightPod("new", "103")},
		), &reports{}
		m := mirror(source, heard)
		end := m.begin(t)
		assert.True(t, m.synced())
		assert.Equal(t, []string{"a/sound"}, m.keys())
		assert.Len(t, m.status().Quarantined, 1)
		pass(5 * time.Second)
		source.send(added(rightPod("new", "103")))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a/sound", "a/new"}, m.keys())
		pass(5*time.Second - 1)
		checkBegun(t, source)
		pass(1)
		checkBegun(t, source, 10*time.Second)
		assert.ElementsMatch(t, []string{"a/sound", "a/new", "a/damaged"}, m.keys())
		assert.Equal(t, "110", m.version())
		assert.Empty(t, m.status().Quarantined)
		pass(time.Hour)
		checkBegun(t, source, 10*time.Second)
		assert.Len(t, heard.take(), 1)
		end()
	})
}

// One that is damaged in the second list too, at the same version, stays quarantined: there is
// no third list, and one report. Fails if it is listed again and again.
func TestG6AnItemThatCannotBeDecodedTwiceStaysQuarantined(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*answering, *reports) mirrored) {
		source, heard := newAnswering([]runtime.Object{rightPod("sound", "1"), damaged("damaged", "5")}), &reports{}
		m := mirror(source, heard)
		end := m.begin(t)
		pass(time.Hour)
		checkBegun(t, source, 10*time.Second)
		assert.Len(t, m.status().Quarantined, 1)
		assert.Len(t, heard.take(), 1)
		source.expire() // a list for another reason brings it a third time
		pass(time.Hour)
		assert.Len(t, source.begun(), 3)
		end()
	})
}

// At each version an item is listed once more, and lists of that kind are a minute apart. Fails
// if an item that is written again and again, and never decoded, is listed at each pause.
func TestG6ItemsThatAreNeverDecodedAreListedOnceAMinuteAndVersion(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*answering, *reports) mirrored) {
		source, heard := newAnswering(), &reports{}
		source.objects = func(n int) []runtime.Object { return []runtime.Object{damaged("damaged", strconv.Itoa(min(n, 4)))} }
		m := mirror(source, heard)
		end := m.begin(t)
		pass(time.Hour)
		checkBegun(t, source, 10*time.Second, 70*time.Second, 130*time.Second, 190*time.Second)
		assert.Len(t, heard.take(), 4)
		end()
	})
}

// Items of which no name could be read are one: they cannot be told apart. Fails if their
// places, which move, have them listed again.
func TestG6DamagedItemsWithoutANameAreListedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, heard := newAnswering(), &reports{}
		source.objects = func(n int) []runtime.Object {
			return append(rightPods(n), &damagedPod{metav1.PartialObjectMetadata{}})
		}
		m := mirrors["informer"](source.as(wholeList), damageOptions(wholeList, heard))
		end := m.begin(t)
		pass(time.Hour)
		checkBegun(t, source, 10*time.Second)
		end()
	})
}

// There is no list for what the watch has brought since: a later state, or its end. Nor for
// what an event could not bring, or what was refused for another cause. Fails if such things are
// listed again.
func TestNothingIsListedOnceMoreForWhatIsSoundOrOtherwiseRefused(t *testing.T) {
	for name, row := range map[string]struct {
		objects []runtime.Object
		events  []watchEvent
	}{
		"a later state":       {[]runtime.Object{damaged("1", "5")}, []watchEvent{modified(rightPod("1", "101"))}},
		"its end":             {[]runtime.Object{damaged("1", "5")}, []watchEvent{deleted(rightPod("1", "101"))}},
		"a later damaged one": {[]runtime.Object{damaged("1", "5")}, []watchEvent{modified(damaged("1", "101"))}},
		"an event":            {rightPods(1), []watchEvent{added(damaged("1", "101"))}},
		"another type":        {append(rightPods(1), otherPod("2", "2")), nil},
		"an index function":   {append(rightPods(1), refused("2", "2")), nil},
	} {
		for _, way := range []string{wholeList, streamingList} {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, heard := newAnswering(row.objects), &reports{}
					i := cache.NewSharedIndexInformerWithOptions(source.as(way), &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
						Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: damageOptions(way, heard),
					})
					m := mirrored{run: i.RunWithContext}
					end := m.begin(t)
					require.True(t, i.HasSynced())
					source.send(row.events...)
					pass(time.Hour)
					checkBegun(t, source)
					end()
				})
			})
		}
	}
}

// A list that is made anyway before the pause is over is that second list.
func TestAListThatComesFirstIsTheSecondOneOfADamagedItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, heard := newAnswering([]runtime.Object{damaged("1", "5")}), &reports{}
		options := damageOptions(wholeList, heard)
		options.Backoff.Duration = time.Minute
		m := mirrors["informer"](source.as(wholeList), options)
		end := m.begin(t)
		pass(time.Second)
		source.expire()
		pass(time.Hour)
		checkBegun(t, source, time.Minute+time.Second)
		end()
	})
}

// ListAndWatch is one round: it ends, without an error, where such a list would be next.
func TestARoundEndsWhereADamagedItemIsToBeListedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, heard := newAnswering([]runtime.Object{damaged("1", "5")}), &reports{}
		r := cache.NewReflectorWithOptions(source.as(wholeList), nil, cache.NewStore(cache.MetaNamespaceKeyFunc), damageOptions(wholeList, heard))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Equal(t, 10*time.Second, time.Since(began))
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Len(t, source.begun(), 2)
	})
}

// G13: with the default backoff the second list follows within seconds, and a source of which
// every list is damaged anew, and every watch breaks, gets no more requests than any other that
// fails. Fails if such lists are not counted, or are made without a pause.
func TestG13ListsOfDamagedItemsKeepTheLimits(t *testing.T) {
	t.Run("soon", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, heard := newAnswering([]runtime.Object{damaged("1", "5")}), &reports{}
			m := mirrors["informer"](source.as(wholeList), cache.ReflectorOptions{ErrorHandler: heard.handle})
			end := m.begin(t)
			pass(time.Hour)
			begun := source.begun()
			require.Len(t, begun, 2)
			assert.Positive(t, begun[1].Sub(begun[0]))
			assert.Less(t, begun[1].Sub(begun[0]), 2*time.Second)
			end()
		})
	})
	for _, way := range waysToList {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, heard := newAnswering(), &reports{}
				var requests []time.Time
				note := func() { requests = append(requests, time.Now()) }
				source.objects = func(n int) []runtime.Object {
					return []runtime.Object{damaged("1", strconv.Itoa(n)), damaged("2", "1")}
				}
				list := source.as(way).(cache.ListerWatcherWithContext)
				counted := &cache.ListWatch{
					ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
						if options.Continue == "" {
							note()
						}
						return list.ListWithContext(ctx, options)
					},
					WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
						note()
						if options.SendInitialEvents == nil && len(requests)%2 == 0 {
							return nil, io.ErrUnexpectedEOF
						}
						return list.WatchWithContext(ctx, options)
					},
				}
				if way == itemByItem {
					t.Skip("is counted as a whole list")
				}
				m := mirrors["informer"](counted, cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: heard.handle})
				end := m.begin(t)
				pass(time.Hour)
				end()
				first := 0
				for i, at := range requests {
					if at.Sub(requests[0]) < time.Minute {
						first++
						continue
					}
					within := 0
					for _, other := range requests[i:] {
						if other.Sub(at) < time.Minute {
							within++
						}
					}
					assert.LessOrEqual(t, within, 3)
				}
				assert.LessOrEqual(t, first, 20)
				assert.Greater(t, len(source.begun()), 20)
			})
		})
	}
}
