package guarantees

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// laggingList returns a source whose list has version 10 and an object at version 100. Its watch from 10 sends
// the events, one after another.
func laggingList(events ...watch.Event) *networkSource {
	return &networkSource{
		list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
			return listAt("10", validPod("a", "9"), validPod("b", "100")), nil
		},
		watch: func(n int, w *networkWatch) error {
			if n == 1 {
				for _, event := range events {
					w.send(event)
				}
			}
			return nil
		},
	}
}

// B31: the version of a list is behind its items, and the watch repeats what the list had. Older states are
// skipped without a failure or a list. Fails if one counts as a regression.
func TestB31AReplayOfAListedStateIsSkipped(t *testing.T) {
	for name, replay := range map[string][]watch.Event{
		"the same state":            {modified(validPod("b", "100"))},
		"an older state, then it":   {modified(validPod("b", "50")), modified(validPod("b", "100"))},
		"created, deleted, created": {added(validPod("b", "20")), deleted(validPod("b", "30")), added(validPod("b", "100"))},
	} {
		for kind, mirror := range mirrors {
			t.Run(fmt.Sprintf("%s, %s", name, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := laggingList(append(replay, modified(validPod("a", "101")))...)
					reports := &errorRecorder{}
					m := mirror(source.asListerWatcher(), cache.ReflectorOptions{ErrorHandler: reports.handle})
					end := m.begin(t)
					time.Sleep(time.Minute)
					assert.Empty(t, reports.all())
					assert.Len(t, source.lists, 1)
					assert.Len(t, source.watches, 1)
					end()
				})
			})
		}
	}
}

// B31: the version advances with a skipped event, since the source has reached it: the next watch begins there.
func TestB31ASkippedEventAdvancesTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := laggingList(modified(validPod("b", "50"))).runFor(t, time.Minute, nil)
		assert.Equal(t, "50", m.LastSyncResourceVersion())
		assert.Equal(t, map[string]string{"a/a": "9", "a/b": "100"}, contents(m.store))
		assert.Empty(t, m.causes())
	})
}

// B31, B15: an event older than its key's state is a regression if it is below the version from which the watch
// began, or that it has reached. Fails if every older event is skipped.
func TestB31AnEventBelowTheWatchsVersionIsARegression(t *testing.T) {
	for name, events := range map[string][]watch.Event{
		"below its start":                   {modified(validPod("a", "8"))},
		"below the version that it reached": {modified(validPod("a", "60")), modified(validPod("b", "50"))},
		"below its last bookmark":           {bookmark("60"), modified(validPod("b", "50"))},
		"below a skipped event":             {modified(validPod("b", "60")), modified(validPod("b", "50"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := laggingList(events...)
				m := source.runFor(t, time.Minute, nil)
				assert.Equal(t, causeRegression, m.causes()[0])
				assert.Len(t, source.lists, 2)
			})
		})
	}
}

// B31, B23: the watch has passed the version of a list behind its items, so a check finds a lower one although
// the source has not gone back. Only a version below that list's is a regression. Fails if the check compares
// with the watch's version: a full list would follow each check.
func TestB31ACheckComparesWithTheListThatIsBehindItsItems(t *testing.T) {
	for checked, lists := range map[string]int{"10": 1, "9": 2} {
		t.Run(checked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := laggingList(modified(validPod("b", "100")))
				replay := source.watch
				source.watch = func(n int, w *networkWatch) error {
					w.cutAfter(50 * time.Second)
					return replay(n, w)
				}
				source.checked = func() string { return checked }
				m := source.runFor(t, 5*time.Minute, nil)
				assert.Len(t, source.checks, 1)
				assert.Len(t, source.lists, lists)
				if lists == 1 {
					assertEach(t, cache.CauseConnectionLost, m.causes())
				} else {
					assert.Contains(t, m.causes(), causeRegression)
				}
			})
		})
	}
}

// B31, B23: events after the states of such a list show that the source has reached their version. A check that finds a lower
// one finds a restored source. Fails if it is still compared with the list's version.
func TestB31ACheckAfterLaterEventsComparesWithTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := laggingList(modified(validPod("b", "100")), modified(validPod("a", "150")))
		send := source.watch
		source.watch = func(n int, w *networkWatch) error {
			w.cutAfter(50 * time.Second)
			return send(n, w)
		}
		source.checked = func() string { return "120" }
		m := source.runFor(t, 5*time.Minute, nil)
		assert.Len(t, source.lists, 2)
		assert.Contains(t, m.causes(), causeRegression)
	})
}

// lateVersionList is a networkSource that sends the items of a list one by one, and its version after them.
type lateVersionList struct{ *networkSource }

func (s lateVersionList) List(options metav1.ListOptions) (apiruntime.Object, error) {
	return s.listed(context.Background(), options)
}

func (s lateVersionList) ListWithContext(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	return s.listed(ctx, options)
}

func (s lateVersionList) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.watched(context.Background(), options)
}

func (s lateVersionList) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.watched(ctx, options)
}

func (s lateVersionList) ListItems(ctx context.Context, options metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	listed, err := s.listed(ctx, options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	list := listed.(*metav1.PartialObjectMetadataList)
	for i := range list.Items {
		if err := take(metav1.ListMeta{}, &list.Items[i]); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return list.ListMeta, nil
}

// B31: the same where the version follows the items. Fails if only items after the version are compared with it.
func TestB31AListWhoseVersionFollowsItsNewerItemsIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := laggingList(modified(validPod("b", "100")))
		replay := source.watch
		source.watch = func(_ int, w *networkWatch) error {
			w.cutAfter(50 * time.Second)
			return replay(1, w)
		}
		source.checked = func() string { return "10" }
		m := runRecoveryMirror(t, lateVersionList{source}, fixedJitter(0))
		time.Sleep(time.Hour)
		m.stop()
		assert.Len(t, source.lists, 1)
		assert.NotContains(t, m.causes(), causeRegression)
	})
}

// B31: where each watch is reset before it is answered, lists that are behind show no newer version. Fails if a list needs a
// check that finds one.
func TestB31ASourceOfSuchListsThatResetsItsWatchesIsMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		source := laggingList()
		before := source.list
		source.list = func(n int, options metav1.ListOptions) (apiruntime.Object, error) {
			if time.Since(began) < 5*time.Minute {
				return before(n, options)
			}
			return listAt("10", validPod("a", "9"), validPod("b", "200")), nil
		}
		source.watch = func(n int, w *networkWatch) error {
			if n > 1 {
				return syscall.ECONNRESET
			}
			w.send(modified(validPod("b", "100")))
			w.cutAfter(time.Minute)
			return nil
		}
		source.checked = func() string { return "10" }
		m := source.runFor(t, 15*time.Minute, nil)
		assert.Equal(t, "200", contents(m.store)["a/b"])
	})
}
