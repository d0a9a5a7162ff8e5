package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// listOfKind returns an empty list of a kind, as decoders make of documents that are no lists.
func listOfKind(version, kind string) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": kind}}
}

// B32: after lists with a version comes one without: it has failed, the content stays, and the next list is
// accepted. Fails if such a list empties the cache.
func TestB32AListWithoutAVersionFails(t *testing.T) {
	for name, odd := range map[string]apiruntime.Object{
		"empty":               listAt(""),
		"with an item":        listAt("", validPod("x", "")),
		"discovery":           listOfKind("v1", "APIResourceList"),
		"discovery of groups": listOfKind("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"),
		"an object":           &unstructured.UnstructuredList{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "x", "resourceVersion": "70"}}},
		"a Status":            &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}},
	} {
		for _, regressed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := &networkSource{
						list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
							if n == 2 {
								return odd, nil
							}
							return listAt("60", validPod("a", "9"), validPod("b", "8")), nil
						},
						watch: func(n int, w *networkWatch) error {
							switch {
							case n > 1:
							case regressed:
								w.events <- bookmark("50")
							default:
								return cachetest.ErrExpired()
							}
							return nil
						},
					}
					m := runRecoveryMirror(t, source.asListerWatcher(), fixedJitter(0))
					sawContent := true
					for range 600 {
						time.Sleep(100 * time.Millisecond)
						sawContent = sawContent && len(contents(m.store)) == 2
					}
					m.stop()
					assert.True(t, sawContent)
					causes := m.causes()
					require.Len(t, causes, 2)
					if name != "a Status" {
						assert.Equal(t, cache.CauseInvalidResponse, causes[1])
					}
					assert.Len(t, source.lists, 3)
				})
			})
		}
	}
}

// B32: a document that is no list is none as a first list either. An empty list without a version is one.
func TestB32ADiscoveryDocumentIsNoFirstList(t *testing.T) {
	for first, synced := range map[apiruntime.Object]bool{listOfKind("v1", "APIResourceList"): false, listAt(""): true} {
		synctest.Test(t, func(t *testing.T) {
			source := &networkSource{list: func(int, metav1.ListOptions) (apiruntime.Object, error) { return first, nil }}
			m := source.runFor(t, time.Minute, nil)
			assert.Equal(t, synced, m.Status().Synced)
		})
	}
}

// B32: a source without versions is listed before each watch, since a watch from "" does not send what was deleted
// before. Fails if the watch is repeated alone.
func TestB32ASourceWithoutVersionsIsListedBeforeEachWatch(t *testing.T) {
	for _, version := range []string{"", "0"} {
		for name, end := range map[string]func(w *networkWatch){
			"closed": func(w *networkWatch) { w.closeAfter(time.Minute) },
			"cut":    func(w *networkWatch) { w.cutAfter(time.Minute) },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					present := []*metav1.PartialObjectMetadata{validPod("a", ""), validPod("b", "")}
					source := &networkSource{
						list: func(int, metav1.ListOptions) (apiruntime.Object, error) { return listAt(version, present...), nil },
						watch: func(n int, w *networkWatch) error {
							for _, obj := range present {
								w.events <- added(obj)
							}
							end(w)
							if n == 1 {
								present = present[:1]
							}
							return nil
						},
					}
					m := source.runFor(t, 10*time.Minute-time.Second, nil)
					assert.Equal(t, map[string]string{"a/a": ""}, contents(m.store))
					assert.Len(t, source.watches, 10)
					assert.Len(t, source.lists, 10)
				})
			})
		}
	}
}

// B32: a source that answers watches with 405 is listed about twice a minute, and asked for a watch once an hour.
// Fails if each list is followed by a useless watch, or if lists become rarer than every 30 s.
func TestB32ASourceThatCannotBeWatchedIsListed(t *testing.T) {
	for _, version := range []string{"", "5"} {
		synctest.Test(t, func(t *testing.T) {
			refused := apierrors.NewMethodNotSupported(pods, "watch")
			source := &networkSource{
				list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
					return listAt(version, labelled(validPod("a", ""), itoa(n))), nil
				},
				watch: func(int, *networkWatch) error { return refused },
			}
			m := source.runFor(t, 2*time.Hour-time.Minute, nil)
			assert.Len(t, source.watches, 2)
			assert.Equal(t, []cache.Cause{cache.CauseBadRequest, cache.CauseBadRequest}, m.causes())
			assert.Len(t, source.lists, 240, "every 30 s, and after each refusal")
			for i, at := range source.lists[1:] {
				assert.LessOrEqual(t, at.Sub(source.lists[i]), 30*time.Second)
			}
		})
	}
}

// B32: a list without a version after one with a version has failed: the version stays, so that the next
// list cannot be older.
func TestB32AListWithoutAVersionKeepsTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{"100", "", "50", "120"}
		var asked []string
		source := &funcSource{
			list: func(o metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, o.ResourceVersion)
				version := answers[min(len(asked), len(answers))-1]
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
			},
			watch: func(_ context.Context, n int) (watch.Interface, error) {
				if n > 2 {
					return newRecordedWatch(), nil
				}
				return newRecordedWatch(errorEvent(cachetest.ErrExpired())), nil
			},
		}
		h := &errorRecorder{}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{ErrorHandler: h.handle}))
		sleep(2 * time.Minute)
		assert.Equal(t, []string{"0", "100", "100", ""}, asked[:4])
		assert.Equal(t, []cache.Cause{cache.CauseExpired, cache.CauseInvalidResponse, causeRegression}, h.causes()[:3])
		assert.Equal(t, "120", indexer.LastStoreSyncResourceVersion())
		stop()
	})
}

// pagedRelist is a source whose relist has these answers to the requests for its second page, then a good one.
func pagedRelist(second ...*metav1.PartialObjectMetadataList) *networkSource {
	return &networkSource{
		list: func(n int, options metav1.ListOptions) (apiruntime.Object, error) {
			if options.Continue == "" {
				first := listAt("60", validPod("a", "9"))
				first.Continue = "b"
				return first, nil
			}
			isRelist := n > 2
			if !isRelist || len(second) == 0 {
				return listAt("60", validPod("b", "8")), nil
			}
			page := second[0]
			second = second[1:]
			return page, nil
		},
		watch: func(n int, _ *networkWatch) error {
			if n == 1 {
				return cachetest.ErrExpired()
			}
			return nil
		},
	}
}

// B32: an empty page without a version in a list with one is another document. It has failed and is requested again.
// Fails if it counts as the last page: the objects of the missing ones would be deleted.
func TestB32AnEmptyPageWithoutAVersionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := pagedRelist(listAt(""), listAt(""), listAt(""))
		m := source.runFor(t, time.Minute, nil)
		assert.Equal(t, map[string]string{"a/a": "9", "a/b": "8"}, contents(m.store))
		assert.Len(t, source.lists, 4+3)
		invalid := cache.CauseInvalidResponse
		assert.Equal(t, []cache.Cause{cache.CauseExpired, invalid, invalid, invalid}, m.causes())
	})
}

// B32: a page with items needs no version of its own: that of the first page counts. Fails if it is refused.
func TestB32APageWithItemsNeedsNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := pagedRelist(listAt("", validPod("b", "50")))
		m := source.runFor(t, time.Minute, nil)
		assert.Equal(t, map[string]string{"a/a": "9", "a/b": "50"}, contents(m.store))
		assert.Equal(t, []cache.Cause{cache.CauseExpired}, m.causes())
		assert.Equal(t, "60", m.LastSyncResourceVersion())
	})
}
