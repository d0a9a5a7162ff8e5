package guarantees

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// forEachWayOfDamage runs a test with each kind of mirror and each way to list.
func forEachWayOfDamage(t *testing.T, test func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest)) {
	for name, construct := range mirrors {
		for _, way := range listMethods {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, func(source *stateSource, reported *errorRecorder) mirrorUnderTest {
						return construct(source.asListerWatcher(way), damageOptions(way, reported))
					})
				})
			})
		}
	}
}

func damageOptions(way string, reported *errorRecorder) cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Strategy: strategyFor(way), ErrorHandler: reported.handle,
	}
}

// checkBegun checks the times at which states were requested, relative to the first.
func checkBegun(t *testing.T, source *stateSource, want ...time.Duration) {
	t.Helper()
	var have []time.Duration
	for _, at := range source.stateTimes() {
		have = append(have, at.Sub(source.stateTimes()[0]))
	}
	assert.Equal(t, append([]time.Duration{0}, want...), have)
}

// An undecodable item of a list is listed once more after a pause, since it may have been damaged in
// transit. If it is good then, it is applied at the same version. Meanwhile the mirror has synced and
// applies events. Fails if the object is absent until its next change, or if anything waits for it.
func TestG6ADamagedItemOfAListIsListedOnceMore(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(
			[]apiruntime.Object{validPod("sound", "1"), damaged("damaged", "5")},
			[]apiruntime.Object{validPod("sound", "1"), validPod("damaged", "5"), validPod("new", "103")},
		), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		assert.True(t, m.synced())
		assert.Equal(t, []string{"a/sound"}, m.keys())
		assert.Len(t, m.status().Quarantined, 1)
		sleep(time.Second)
		source.sendEvents(added(validPod("new", "103")))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a/sound", "a/new"}, m.keys())
		sleep(time.Second - 1)
		checkBegun(t, source)
		sleep(1)
		checkBegun(t, source, 2*time.Second)
		assert.ElementsMatch(t, []string{"a/sound", "a/new", "a/damaged"}, m.keys())
		assert.Equal(t, "110", m.version())
		assert.Empty(t, m.status().Quarantined)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		assert.Len(t, reported.take(), 1)
		end()
	})
}

// An item that is undecodable in the second list too, at the same version, stays quarantined, with one
// report and no third list. Fails if it is listed again and again.
func TestG6AnItemThatCannotBeDecodedTwiceStaysQuarantined(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource([]apiruntime.Object{validPod("sound", "1"), damaged("damaged", "5")}), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		assert.Len(t, m.status().Quarantined, 1)
		assert.Len(t, reported.take(), 1)
		source.expire() // a list for another reason has it a third time
		sleep(time.Hour)
		assert.Len(t, source.stateTimes(), 3)
		end()
	})
}

// An undecodable item is listed once more for each version, at most once a minute. Fails if an item that
// changes often is listed at each pause.
func TestG6ItemsThatAreNeverDecodedAreListedOnceAMinuteAndVersion(t *testing.T) {
	forEachWayOfDamage(t, func(t *testing.T, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(), &errorRecorder{}
		source.objects = func(n int) []apiruntime.Object {
			return []apiruntime.Object{damaged("damaged", strconv.Itoa(min(n, 4)))}
		}
		m := mirror(source, reported)
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second, 62*time.Second, 122*time.Second, 182*time.Second)
		assert.Len(t, reported.take(), 4)
		end()
	})
}

// Undecodable items without a readable name count as one. Fails if a change of their positions causes
// another list.
func TestG6DamagedItemsWithoutANameAreListedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource(), &errorRecorder{}
		source.objects = func(n int) []apiruntime.Object {
			return append(validPods(n), &damagedPod{metav1.PartialObjectMetadata{}})
		}
		m := mirrors["informer"](source.asListerWatcher(wholeList), damageOptions(wholeList, reported))
		end := m.begin(t)
		sleep(time.Hour)
		checkBegun(t, source, 2*time.Second)
		end()
	})
}

// No list follows if the watch has delivered a later state or the deletion, for undecodable events,
// or for objects refused for other causes.
func TestOnlyDamagedItemsAreListedAgain(t *testing.T) {
	for name, row := range map[string]struct {
		objects []apiruntime.Object
		events  []watch.Event
	}{
		"a later state":     {[]apiruntime.Object{damaged("1", "5")}, []watch.Event{modified(validPod("1", "101"))}},
		"its end":           {[]apiruntime.Object{damaged("1", "5")}, []watch.Event{deleted(validPod("1", "101"))}},
		"both":              {[]apiruntime.Object{damaged("1", "5"), refused("2", "2")}, []watch.Event{modified(validPod("1", "101"))}},
		"an event":          {validPods(1), []watch.Event{added(damaged("1", "101"))}},
		"another type":      {append(validPods(1), wrongTypePod("2", "2")), nil},
		"an index function": {append(validPods(1), refused("2", "2")), nil},
	} {
		for _, way := range []string{wholeList, streamingList} {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, reported := newStateSource(row.objects), &errorRecorder{}
					i := cache.NewSharedIndexInformerWithOptions(source.asListerWatcher(way), &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
						Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: damageOptions(way, reported),
					})
					m := mirrorUnderTest{run: i.RunWithContext}
					end := m.begin(t)
					require.True(t, i.HasSynced())
					source.sendEvents(row.events...)
					sleep(time.Hour)
					checkBegun(t, source)
					end()
				})
			})
		}
	}
}

// A list for another reason during the pause counts as the second list.
func TestAListForAnotherReasonCountsAsTheSecondListOfADamagedItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{damaged("1", "5")}), &errorRecorder{}
		options := damageOptions(wholeList, reported)
		m := mirrors["informer"](source.asListerWatcher(wholeList), options)
		end := m.begin(t)
		sleep(time.Second / 2)
		source.expire()
		sleep(time.Hour)
		assert.Len(t, source.stateTimes(), 2)
		end()
	})
}

// ListAndWatch is one round: it returns nil where the second list would follow.
func TestListAndWatchEndsWhereADamagedItemWouldBeListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{damaged("1", "5")}), &errorRecorder{}
		r := cache.NewReflectorWithOptions(source.asListerWatcher(wholeList), nil, cache.NewStore(cache.MetaNamespaceKeyFunc), damageOptions(wholeList, reported))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Equal(t, 2*time.Second, time.Since(began))
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Len(t, source.stateTimes(), 2)
	})
}
