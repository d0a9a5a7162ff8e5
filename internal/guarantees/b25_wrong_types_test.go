package guarantees

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// forEachMirror runs a test with each kind of mirror and each way to list.
func forEachMirror(t *testing.T, test func(t *testing.T, way string, mirror func(*stateSource, *errorRecorder) mirrorUnderTest)) {
	for name, construct := range mirrors {
		for _, way := range listMethods {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test(t, way, func(source *stateSource, reported *errorRecorder) mirrorUnderTest {
						return construct(source.asListerWatcher(way), cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: reported.handle})
					})
				})
			})
		}
	}
}

// B25, G6: a list whose objects are all of another type fails: synced stays false, each failed list
// is one report with a typed cause, and WaitSynced names it. Once the source returns the right
// type, the objects are stored. Fails if such a list counts as empty, or if its objects are
// reported one by one.
func TestB25AListOfOnlyWrongTypesFails(t *testing.T) {
	forEachMirror(t, func(t *testing.T, way string, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		wrong := manyOf(100, wrongTypePod)
		source, reported := newStateSource(wrong, wrong, validPods(100)), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		assert.False(t, m.synced())
		assert.False(t, m.status().Synced)
		assert.Empty(t, m.keys())
		assert.Empty(t, m.version())
		assert.Empty(t, m.status().Quarantined)
		if m.waits != nil {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := m.waits(ctx)
			cancel()
			var unexpected *cache.UnexpectedTypeError
			require.ErrorAs(t, err, &unexpected)
			assert.Equal(t, "*unstructured.Unstructured", unexpected.Actual)
			require.ErrorAs(t, err, new(*cache.ListTypeError))
		}
		for _, err := range checkListTypes(t, reported.take(), 100) {
			assert.Equal(t, "a/0", err.Key)
		}
		assert.Equal(t, causeWrongType, m.status().LastFailure.Cause)
		sleep(time.Minute)
		checkListTypes(t, reported.take(), 100)
		assert.Len(t, source.stateTimes(), 3)
		assert.True(t, m.synced())
		assert.Len(t, m.keys(), 100)
		assert.Equal(t, "120", m.version())
		end()
	})
}

// checkListTypes checks that a single error was reported: a list of so many objects of
// wrong types.
func checkListTypes(t *testing.T, errs []error, objects int) (all []*cache.ListTypeError) {
	t.Helper()
	require.Len(t, errs, 1)
	for _, err := range errs {
		var list *cache.ListTypeError
		require.ErrorAs(t, err, &list)
		assert.Equal(t, objects, list.Objects)
		assert.Equal(t, causeWrongType, cache.CauseOf(err))
		assert.False(t, errors.As(err, new(*cache.ObjectError)))
		assert.Equal(t, 1, strings.Count(err.Error(), "unstructured"), err)
		all = append(all, list)
	}
	return all
}

// B25: after such a relist the content and the version stay until a list of the right type. Fails
// if it empties the store.
func TestB25ARelistOfOnlyWrongTypesKeepsTheContent(t *testing.T) {
	forEachMirror(t, func(t *testing.T, way string, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(validPods(20), manyOf(100, wrongTypePod), validPods(10)), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		require.Len(t, m.keys(), 20)
		source.expire()
		sleep(0)
		for len(source.stateTimes()) < 2 {
			sleep(10 * time.Millisecond)
		}
		assert.Len(t, m.keys(), 20)
		assert.Equal(t, "100", m.version())
		assert.True(t, m.synced())
		assert.Empty(t, m.status().Quarantined)
		errs := reported.take()
		require.Len(t, errs, 2)
		assert.Equal(t, cache.CauseExpired, cache.CauseOf(errs[0]))
		checkListTypes(t, errs[1:], 100)
		sleep(time.Minute)
		assert.Len(t, m.keys(), 10)
		assert.Equal(t, "120", m.version())
		assert.Empty(t, reported.take())
		end()
	})
}

// B25: with one object of the right type, on any page, the list succeeds: the object is stored, the
// others are quarantined and reported one by one. Fails if only the first page, or a part of a
// page, is considered.
func TestB25OneRightObjectOnALaterPageMakesItAList(t *testing.T) {
	forEachMirror(t, func(t *testing.T, way string, mirror func(*stateSource, *errorRecorder) mirrorUnderTest) {
		source, reported := newStateSource(append(manyOf(100, wrongTypePod), validPod("right", "200"))), &errorRecorder{}
		m := mirror(source, reported)
		end := m.begin(t)
		assert.True(t, m.synced())
		assert.Equal(t, []string{"a/right"}, m.keys())
		assert.Equal(t, "100", m.version())
		assert.Len(t, m.status().Quarantined, 100)
		assert.Len(t, reported.take(), 100)
		sleep(time.Hour)
		assert.Len(t, source.stateTimes(), 1)
		assert.Empty(t, reported.take())
		end()
	})
}

// B25: a list without objects succeeds, and causes other than the type never fail a list, however
// many objects they refuse.
func TestB25AListThatIsEmptyOrRefusedForOtherCausesIsSynced(t *testing.T) {
	for name, objects := range map[string][]apiruntime.Object{
		"nothing":                          nil,
		"undecoded":                        manyOf(30, damaged),
		"no metadata, of no type":          {nil, (*metav1.PartialObjectMetadata)(nil)},
		"another type, and an undecoded":   append(manyOf(30, wrongTypePod), damaged("x", "50")),
		"another type, and one without id": append(manyOf(30, wrongTypePod), nil),
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{wholeList, pagedList} {
				synctest.Test(t, func(t *testing.T) {
					source, reported := newStateSource(objects), &errorRecorder{}
					m := mirrors["informer"](source.asListerWatcher(way), cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: reported.handle})
					end := m.begin(t)
					assert.True(t, m.synced())
					assert.Equal(t, "100", m.version())
					assert.Len(t, m.status().Quarantined, len(objects))
					assert.Len(t, reported.take(), len(objects))
					end()
				})
			}
		})
	}
	t.Run("index function", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reported := &errorRecorder{}
			i := cache.NewTypedInformer(cache.ToListerWatcherWithContext(newStateSource(validPods(30)).asListerWatcher(wholeList)), cache.InformerConfig[*metav1.PartialObjectMetadata]{
				Indexes:          cache.TypedIndexers[*metav1.PartialObjectMetadata]{"bad": func(*metav1.PartialObjectMetadata) ([]string, error) { return nil, errDamaged }},
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = i.Run(ctx) }()
			require.NoError(t, i.WaitSynced(t.Context()))
			assert.Len(t, reported.take(), 30)
			cancel()
			<-done
		})
	})
}

// B25: objects of another kind, if unstructured ones are expected, and objects without metadata
// also have another type. Fails if only Go types with metadata count.
func TestB25KindsAndObjectsWithoutMetadataCountAsOtherTypes(t *testing.T) {
	example := &unstructured.Unstructured{}
	example.SetAPIVersion("v1")
	example.SetKind("Node")
	for name, row := range map[string]struct {
		expected any
		object   apiruntime.Object
		key      string
	}{
		"kind":     {example, wrongTypePod("1", "1"), "a/1"},
		"metadata": {&metav1.PartialObjectMetadata{}, &metav1.Status{}, "item 1 of the list"},
		"not decoded because of its type": {
			&metav1.PartialObjectMetadata{}, ofAnotherType(pod("a", "1")), "a/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource([]apiruntime.Object{row.object}), &errorRecorder{}
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				r := cache.NewReflectorWithOptions(source.asListerWatcher(wholeList), row.expected, store, cache.ReflectorOptions{ErrorHandler: reported.handle})
				m := mirrorUnderTest{run: r.RunWithContext}
				end := m.begin(t)
				assert.False(t, r.Status().Synced)
				errs := reported.take()
				require.Len(t, errs, 1)
				var list *cache.ListTypeError
				require.ErrorAs(t, errs[0], &list)
				assert.Equal(t, row.key, list.Key)
				end()
			})
		})
	}
}

// ofAnotherType returns an object that a source has not decoded because it is of another type.
func ofAnotherType(o *object) apiruntime.Object {
	undecoded := newUndecoded(o)
	undecoded.decodeError = func() error { return fmt.Errorf("item 1: %w", anotherType{}) }
	return undecoded
}

type anotherType struct{}

func (anotherType) Error() string { return "another type" }

func (anotherType) FailureCause() string { return string(causeWrongType) }

// B25: the version of such a list is ignored: an older list of the right type is no regression.
// Fails if it becomes the lower bound for later states.
func TestB25TheVersionOfAListOfWrongTypesIsForgotten(t *testing.T) {
	for _, way := range listMethods {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource(manyOf(5, func(name, _ string) apiruntime.Object { return wrongTypePod(name, "900") }), validPods(3)), &errorRecorder{}
				source.version = func(n int) string { return []string{"900", "50"}[min(n, 2)-1] }
				m := mirrors["informer"](source.asListerWatcher(way), cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: reported.handle})
				end := m.begin(t)
				sleep(time.Minute)
				assert.Len(t, source.stateTimes(), 2)
				assert.Equal(t, "50", m.version())
				assert.Len(t, reported.take(), 1)
				end()
			})
		})
	}
}

// B25: in a streaming list an object that is deleted before its end does not count. Fails if a
// deleted object of another type fails an otherwise empty stream.
func TestB25AWrongObjectThatAStreamDeletesDoesNotFailIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource(nil), &errorRecorder{}
		source.initial = func() []watch.Event {
			return []watch.Event{added(wrongTypePod("1", "5")), deleted(wrongTypePod("1", "6"))}
		}
		m := mirrors["informer"](source.asListerWatcher(streamingList), cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: reported.handle})
		end := m.begin(t)
		assert.True(t, m.synced())
		assert.Empty(t, m.keys())
		errs := reported.take()
		require.Len(t, errs, 1)
		assert.Equal(t, causeInvalidObject, cache.CauseOf(errs[0]))
		assert.Empty(t, m.status().Quarantined)
		end()
	})
}
