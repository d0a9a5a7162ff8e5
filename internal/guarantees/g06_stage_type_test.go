package guarantees

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// kindless is an object without a kind.
type kindless struct {
	object
	panics bool
}

func (k *kindless) GetObjectKind() schema.ObjectKind {
	if k.panics {
		panic("no kind")
	}
	return nil
}

func (k *kindless) DeepCopyObject() apiruntime.Object { return k }

func unstructuredAt(kind, key, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	meta := podWithKey(key, version)
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	o.SetUID(meta.UID)
	o.SetResourceVersion(version)
	return o
}

// G6: the deletion of an object of another type is reported once and does not delete the stored
// object of that name, in a streaming list or a watch. Fails if the type of a deleted object is not
// checked.
func TestG6InAStreamADeletionOfAnotherTypeDeletesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		example, good, other apiruntime.Object
	}{
		"another Go type":            {&object{}, podWithKey("a/1", "5"), unstructuredAt("Pod", "a/1", "9")},
		"another kind":               {unstructuredAt("Pod", "", ""), unstructuredAt("Pod", "a/1", "5"), unstructuredAt("ConfigMap", "a/1", "9")},
		"its kind panics, and typed": {&object{}, podWithKey("a/1", "5"), &kindless{*podWithKey("a/1", "9"), true}},
	} {
		for phase, streams := range map[string][][]watch.Event{
			"in a watch":      {{added(row.good), initialEventsEndEvent("6"), deleted(row.other)}},
			"first list":      {{added(row.good), deleted(row.other), initialEventsEndEvent("9")}},
			"later list":      {{added(row.good), initialEventsEndEvent("6"), expiredEvent()}, {added(row.good), deleted(row.other), initialEventsEndEvent("9")}},
			"before the good": {{deleted(row.other), initialEventsEndEvent("9"), added(row.good)}},
		} {
			t.Run(name+", "+phase, func(t *testing.T) {
				forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
					source := &streamScript{streams: streams}
					m := start(source, row.example)
					sleep(pause)
					assert.Equal(t, []string{"a/1@5"}, m.storedVersions())
					want := []string{"type a/1@9"}
					if len(streams) == 2 {
						want = []string{"expired", "type a/1@9"}
					}
					assert.Equal(t, want, m.reportTexts())
					if phase == "before the good" {
						assert.Empty(t, m.quarantined(), "a later state of it was accepted")
					} else {
						assert.Equal(t, []string{"a/1"}, m.quarantined())
					}
					assert.Subset(t, []string{"add a/1@5"}, m.handlerCalls())
				})
			})
		}
	}
}

// G6: an object of another type that a streaming list adds and deletes is reported once, and not
// quarantined, whether its part was passed on in between or not. Fails if the deletion is another
// report then.
func TestG6InAStreamAnObjectOfAnotherTypeThatIsDeletedIsReportedOnce(t *testing.T) {
	other := unstructuredAt("Pod", "a/1", "3")
	for name, between := range map[string][]watch.Event{
		"at once":        {added(podWithKey("a/2", "5"))},
		"after its part": {added(podWithKey("a/2", "5")), modified(podWithKey("a/2", "6"))},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				events := append([]watch.Event{added(other)}, between...)
				events = append(events, deleted(unstructuredAt("Pod", "a/1", "7")), initialEventsEndEvent("9"))
				m := start(&streamScript{streams: [][]watch.Event{events}}, &object{})
				sleep(pause)
				assert.Equal(t, []string{"type a/1@3"}, m.reportTexts())
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// G6: an event of an unknown type quarantines its object, whose previous state stays, also if the stream
// has no other state. Without a name it is only reported.
func TestG6InAStreamAnUnknownEventQuarantinesItsObject(t *testing.T) {
	unknown := watch.Event{Type: "RENAMED", Object: podWithKey("a/1", "7")}
	for name, streams := range map[string][][]watch.Event{
		"in a watch":           {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), unknown}},
		"first list":           {{added(podWithKey("a/1", "5")), unknown, initialEventsEndEvent("8")}},
		"later list":           {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), expiredEvent()}, {added(podWithKey("a/1", "5")), unknown, initialEventsEndEvent("8")}},
		"later list, it alone": {{added(podWithKey("a/1", "5")), initialEventsEndEvent("6"), expiredEvent()}, {unknown, initialEventsEndEvent("8")}},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				source := &streamScript{streams: streams}
				m := start(source, &object{})
				sleep(pause)
				if name != "later list, it alone" || mirror != "a store of somebody else's" { // which is given the rest
					assert.Equal(t, []string{"a/1@5"}, m.storedVersions())
				}
				assert.Contains(t, m.reportTexts(), "type a/1@7")
				assert.Equal(t, []string{"a/1"}, m.quarantined())
				source.send(modified(podWithKey("a/1", "9")))
				assert.Empty(t, m.quarantined())
				source.send(watch.Event{Type: "RENAMED", Object: podWithKey("", "10")})
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// G6: a store that receives a streaming list in one Replace needs the kind of each object, to
// distinguish objects of one name. If the kind is nil or panics, the Go type counts. Fails if it
// panics.
func TestG6AForeignStoreSurvivesAStreamedObjectWithoutAKind(t *testing.T) {
	for name, panics := range map[string]bool{"nil": false, "panics": true} {
		for _, example := range []apiruntime.Object{nil, &kindless{}} {
			for kind, event := range map[string]watch.EventType{"added": watch.Added, "modified": watch.Modified, "deleted": watch.Deleted} {
				t.Run(fmt.Sprintf("%s, %s, typed %v", name, kind, example != nil), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						good, m := apiruntime.Object(podWithKey("a/2", "4")), &streamedMirror{t: t}
						events := []watch.Event{{Type: event, Object: &kindless{*podWithKey("a/1", "5"), panics}}, initialEventsEndEvent("6")}
						if example == nil {
							events = append([]watch.Event{added(good)}, events...)
						}
						streamedMirrors["a store of somebody else's"](m, &streamScript{streams: [][]watch.Event{events}}, example)
						want := []string{}
						if event != watch.Deleted {
							want = append(want, "a/1@5")
						}
						if example == nil {
							want = append(want, "a/2@4")
						}
						assert.ElementsMatch(t, want, m.storedVersions())
						assert.Empty(t, m.reportTexts())
						assert.True(t, m.status.Status().Synced)
					})
				})
			}
		}
	}
}
