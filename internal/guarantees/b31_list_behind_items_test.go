package guarantees

import (
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

// B31, B23: where each watch is reset before it is answered, a check of the version finds that of such lists, below the
// watch's, and a list follows. Fails if only a newer version causes one.
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
