package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// forgetfulSource closes each watch from version 5 after some time without an event. Its lists show what
// such a watch lacks. Watches from later versions stay open.
func forgetfulSource(after time.Duration, next func() *metav1.PartialObjectMetadataList) *networkSource {
	return &networkSource{
		list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
			if n == 1 {
				return listAt("5", validPod("old", "4")), nil
			}
			return next(), nil
		},
		watch: func(_ int, w *networkWatch) error {
			if w.options.ResourceVersion == "5" {
				w.closeAfter(after)
			}
			return nil
		},
	}
}

// B28: a server that has forgotten the version closes each watch from it cleanly. The third is followed by a
// list. Fails if the watch is repeated for ever.
func TestB28AForgottenVersionIsAnsweredByAList(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		// Very short watches are followed by the pauses of a failure, short ones are spaced, long ones are followed at once.
		0:                      (200 + 300 + 450) * time.Millisecond,
		500 * time.Millisecond: (1500 + 200 + 300 + 450) * time.Millisecond,
		2 * time.Second:        3 * 5500 * time.Millisecond,
		20 * time.Second:       time.Minute,
		2 * time.Minute:        6 * time.Minute,
	} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := forgetfulSource(after, func() *metav1.PartialObjectMetadataList {
					return listAt("5000", validPod("new", "4990"))
				})
				m := source.runFor(t, time.Hour, nil)
				assert.Len(t, source.lists, 2)
				assert.Equal(t, want, source.lists[1].Sub(source.lists[0]))
				assert.Equal(t, []string{"5", "5", "5", "5000"}, source.versions[:4])
				assert.Equal(t, map[string]string{"a/new": "4990"}, contents(m.store))
			})
		})
	}
}

// B28: an event of an unknown type tells nothing about the version. Fails if it counts as one that the watch has brought:
// the source would be watched from the forgotten version for ever.
func TestB28EventsOfUnknownTypesDoNotKeepAListAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := forgetfulSource(time.Second, func() *metav1.PartialObjectMetadataList {
			return listAt("5000", validPod("new", "4990"))
		})
		answer := source.watch
		source.watch = func(n int, w *networkWatch) error {
			w.send(watch.Event{Type: "HEARTBEAT", Object: validPod("heartbeat", "")})
			return answer(n, w)
		}
		m := source.runFor(t, time.Minute, nil)
		assert.Equal(t, []string{"5", "5", "5", "5000"}, source.versions)
		assert.Equal(t, map[string]string{"a/new": "4990"}, contents(m.store))
	})
}

// B28: a proxy that ends the watches of a quiet type is followed by few lists: after three watches, after ten
// minutes, then after each hour.
func TestB28AQuietTypeBehindAProxyIsListedRarely(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Second, 8 * time.Second, 50 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{
					list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
						return listAt("5", validPod("old", "4")), nil
					},
					watch: func(_ int, w *networkWatch) error {
						w.closeAfter(every)
						return nil
					},
				}
				source.runFor(t, 3*time.Hour, nil)
				var after []time.Duration
				for _, at := range source.lists {
					after = append(after, at.Sub(source.lists[0]).Round(time.Minute))
				}
				assert.Len(t, after, 5)
				assert.LessOrEqual(t, after[1], 3*time.Minute)
				assert.InDelta(t, 10*time.Minute, after[2]-after[1], float64(2*time.Minute))
				assert.InDelta(t, time.Hour, after[3]-after[2], float64(2*time.Minute))
				assert.InDelta(t, time.Hour, after[4]-after[3], float64(2*time.Minute))
			})
		})
	}
}

// B28: a list that finds what a watch should have shown, a newer object or a missing one, makes it three watches
// again. Fails if each such list makes the next one rarer.
func TestB28AListThatFindsSomethingIsFollowedByTheNextSoon(t *testing.T) {
	for name, objects := range map[string]func(n int) []*metav1.PartialObjectMetadata{
		"a newer object": func(n int) []*metav1.PartialObjectMetadata {
			return []*metav1.PartialObjectMetadata{validPod("x", itoa(100*n))}
		},
		"a missing object": func(n int) (all []*metav1.PartialObjectMetadata) {
			for i := range 100 - n {
				all = append(all, validPod(itoa(i), "1"))
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{
					list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
						return listAt(itoa(100*n), objects(n)...), nil
					},
					watch: func(_ int, w *networkWatch) error {
						w.closeAfter(20 * time.Second)
						return nil
					},
				}
				source.runFor(t, 10*time.Minute-time.Second, nil)
				assert.Len(t, source.lists, 10, "after every third watch")
			})
		})
	}
}

// B28: watches that are cut, that had an event or a bookmark, or that lived half of their timeout do not count.
func TestB28OnlyEmptyWatchesThatCloseEarlyAndCleanlyCount(t *testing.T) {
	for name, end := range map[string]func(n int, w *networkWatch){
		"cut":  func(_ int, w *networkWatch) { w.cutAfter(20 * time.Second) },
		"long": func(_ int, w *networkWatch) { w.closeAfter(150 * time.Second) },
		"with changes": func(n int, w *networkWatch) {
			w.events <- modified(validPod("x", itoa(10+n)))
			w.closeAfter(20 * time.Second)
		},
		"with bookmarks": func(_ int, w *networkWatch) {
			w.events <- bookmark("5")
			w.closeAfter(20 * time.Second)
		},
		"every third with an event": func(n int, w *networkWatch) {
			if n%3 == 0 {
				w.events <- modified(validPod("x", itoa(10+n)))
			}
			w.closeAfter(20 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{watch: func(n int, w *networkWatch) error {
					end(n, w)
					return nil
				}}
				source.runFor(t, time.Hour, nil)
				assert.Len(t, source.lists, 1)
			})
		})
	}
}

// B28: where versions cannot be compared, a list that has another state of an object has found
// something. Fails if only newer numbers and other numbers of objects count.
func TestB28AListWithAnotherVersionOfAnObjectHasFoundSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{
			list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
				version := "v" + itoa(n)
				return listAt(version, validPod("x", version), validPod("y", "v0")), nil
			},
			watch: func(_ int, w *networkWatch) error {
				w.closeAfter(20 * time.Second)
				return nil
			},
		}
		source.runFor(t, 10*time.Minute-time.Second, nil)
		assert.Len(t, source.lists, 10, "after every third watch")
	})
}

// B28: the bookmark that ends a streaming list has a version that other types have moved. In a
// quiet type it is no found object. Fails if each third watch is followed by a stream.
func TestB28AQuietTypeThatStreamsItsListsIsListedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := 0
		source := &networkSource{}
		source.checked = func() string { return itoa(100 * streams) }
		source.watch = func(_ int, w *networkWatch) error {
			if w.options.SendInitialEvents != nil {
				streams++
				end := bookmark(itoa(100 * streams))
				end.Object.(metav1.Object).SetAnnotations(map[string]string{
					metav1.InitialEventsAnnotationKey: "true",
				})
				w.send(added(validPod("old", "4")), end)
			}
			w.closeAfter(20 * time.Second)
			return nil
		}
		source.runFor(t, 3*time.Hour, func(o *cache.ReflectorOptions) {
			o.Strategy = cache.ListStreaming
		})
		assert.Empty(t, source.lists)
		assert.Equal(t, 5, streams)
	})
}

// B28: lists that are written to a queue find what those of a store find. Fails if a queue counts
// each list as one with changes, or none.
func TestB28AQueueKnowsWhetherAListHasFoundChanges(t *testing.T) {
	for name, test := range map[string]struct {
		version func(n int) string
		lists   int
	}{
		"changed":   {func(n int) string { return "v" + itoa(n) }, 10},
		"unchanged": {func(int) string { return "v" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{
					list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
						return listAt("v"+itoa(n), validPod("x", test.version(n))), nil
					},
					watch: func(_ int, w *networkWatch) error {
						w.closeAfter(20 * time.Second)
						return nil
					},
				}
				options := cache.ReflectorOptions{}
				fixedJitter(0)(&options)
				run, _, _ := fillers["by way of a queue"](t, source.asListerWatcher(), nil, options)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Second)
				defer cancel()
				run(ctx)
				assert.Len(t, source.lists, test.lists)
			})
		})
	}
}
