package guarantees

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// G6: if a streaming list has an object in a state without a key, and later in a good state or
// deleted, the object is not quarantined, also if both states are in one part. Fails if later states
// in a part are ignored, or if other objects count as later states.
func TestG6InAStreamALaterStateReleasesOneWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyless := func(obj any) (string, error) {
			if o, ok := obj.(*object); ok && o.Labels["v"] == "keyless" {
				return "", errBoom
			}
			return cache.MetaNamespaceKeyFunc(obj)
		}
		events := []watch.Event{
			{Type: watch.Added, Object: labelled(podAt("a", "recovered", "1"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "recovered", "2")},
			{Type: watch.Added, Object: podAt("a", "spoilt", "3")},
			{Type: watch.Modified, Object: labelled(podAt("a", "spoilt", "4"), "keyless")},
			{Type: watch.Added, Object: labelled(podAt("a", "broken", "5"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "broken", "6")},
			{Type: watch.Modified, Object: newUndecoded(podAt("a", "broken", "7"))},
			{Type: watch.Added, Object: labelled(podAt("a", "removed", "8"), "keyless")},
			{Type: watch.Deleted, Object: podAt("a", "removed", "9")},
			{Type: watch.Added, Object: labelled(podAt("a", "perhaps removed", "10"), "keyless")},
			{Type: watch.Deleted, Object: labelled(podAt("a", "perhaps removed", "11"), "keyless")},
			{Type: watch.Bookmark, Object: initialEventsEnd("12")},
		}
		indexer, h := cache.NewIndexer(keyless, nil), &errorRecorder{}
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
		r := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		assert.ElementsMatch(t, []string{"a/recovered", "a/spoilt", "a/broken"}, indexer.ListKeys())
		var held []string
		for _, q := range r.Status().Quarantined {
			held = append(held, q.Key)
		}
		assert.Equal(t, []string{"a/broken", "a/perhaps removed", "a/spoilt"}, held)
		assert.Equal(t, 7, h.count(causeInvalidObject), "each is reported")
		stop()
	})
}

// ownKeys is a program's store around one of this package; its keys are a label's values.
type ownKeys struct{ cache.Store }

// replacingOwnKeys is an ownKeys that accepts lists in parts.
type replacingOwnKeys struct{ ownKeys }

func (s replacingOwnKeys) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	return s.Store.(cache.Replacer).BeginReplace(options)
}

func newOwnKeys() ownKeys {
	return ownKeys{cache.NewIndexer(func(obj any) (string, error) {
		return obj.(metav1.Object).GetLabels()["key"], nil
	}, cache.Indexers{"good": func(obj any) ([]string, error) {
		if obj.(metav1.Object).GetLabels()["bad"] != "" {
			return nil, errors.New("bad")
		}
		return nil, nil
	}})}
}

// keyed is an object of the kind Thing and the namespace a.
func keyed(name, key, version string, bad bool) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	object.SetNamespace("a")
	object.SetName(name)
	object.SetResourceVersion(version)
	object.SetLabels(map[string]string{"key": key})
	if bad {
		object.SetLabels(map[string]string{"key": key, "bad": "yes"})
	}
	return object
}

func ofKind(kind string, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetKind(kind)
	return object
}

// keyedRig is a reflector that feeds an ownKeys from lists and events of a test.
type keyedRig struct {
	*testing.T
	events    chan watch.Event
	reflector *cache.Reflector
	ctx       context.Context
	cancel    func()
	running   sync.WaitGroup
}

// newKeyedRig returns a rig whose source returns the lists in turn; the last one repeats.
func newKeyedRig(t *testing.T, store cache.ReflectorStore, expected any, strategy cache.ListStrategy, lists ...[]*unstructured.Unstructured) *keyedRig {
	r := &keyedRig{T: t, events: make(chan watch.Event, 16)}
	version := 10
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion(fmt.Sprint(version))
			version += 10
			for _, object := range lists[0] {
				list.Items = append(list.Items, *object)
			}
			if len(lists) > 1 {
				lists = lists[1:]
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(r.events), nil
		},
	}
	r.reflector = cache.NewReflectorWithOptions(source, expected, store, cache.ReflectorOptions{
		Strategy: strategy, ErrorHandler: func(context.Context, *cache.Reflector, error) {},
	})
	r.ctx, r.cancel = context.WithCancel(t.Context())
	r.running.Go(func() { r.reflector.RunWithContext(r.ctx) })
	synctest.Wait()
	return r
}

func (r *keyedRig) send(kind watch.EventType, object *unstructured.Unstructured) {
	r.events <- watch.Event{Type: kind, Object: object}
	synctest.Wait()
}

// assertQuarantined requires that exactly these keys are quarantined.
func (r *keyedRig) assertQuarantined(keys ...string) {
	r.Helper()
	held := []string{}
	for _, one := range r.reflector.Status().Quarantined {
		held = append(held, one.Key)
	}
	assert.ElementsMatch(r, keys, held)
}

func (r *keyedRig) stop() {
	r.cancel()
	r.running.Wait()
}

// Fails if an object that was refused under the store's key is released by its name, or by the key
// that another object has for a name.
func TestG6AnObjectThatAWrappedStoreRefusesIsQuarantinedAndReleasedByKey(t *testing.T) {
	things := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	for name, row := range map[string]struct {
		expected any
		script   func(r *keyedRig)
	}{
		"a good state": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.assertQuarantined("k1")
			r.send(watch.Modified, keyed("1", "k1", "12", false))
			r.assertQuarantined()
		}},
		"a deletion": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.send(watch.Deleted, keyed("1", "k1", "12", true))
			r.assertQuarantined()
		}},
		"another object, named as the key": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "k2", "12", false))
			r.assertQuarantined("a/2")
			r.send(watch.Deleted, keyed("2", "k2", "13", false))
			r.assertQuarantined("a/2")
			r.send(watch.Modified, keyed("1", "a/2", "14", false))
			r.assertQuarantined()
		}},
		"another object, which is held as well": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "a/1", "12", true))
			r.assertQuarantined("a/1", "a/2")
			r.send(watch.Modified, keyed("2", "a/1", "13", false))
			r.assertQuarantined("a/2")
		}},
		"another kind": {nil, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "thing-1", "11", true))
			r.send(watch.Added, ofKind("Other", keyed("1", "other-1", "12", true)))
			r.assertQuarantined("thing-1", "other-1")
			r.send(watch.Modified, ofKind("Other", keyed("1", "other-1", "13", false)))
			r.assertQuarantined("thing-1")
			r.send(watch.Modified, keyed("1", "thing-1", "14", false))
			r.assertQuarantined()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newKeyedRig(t, newOwnKeys(), row.expected, cache.ListUnpaged, nil)
				row.script(r)
				r.stop()
			})
		})
	}
}

// The same for listed objects.
func TestG6ALaterStateReleasesAListedObjectThatAWrappedStoreRefused(t *testing.T) {
	for name, store := range map[string]cache.ReflectorStore{"whole": newOwnKeys(), "in parts": replacingOwnKeys{newOwnKeys()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []*unstructured.Unstructured{keyed("1", "a/2", "3", true), keyed("2", "k2", "4", true), keyed("3", "k3", "5", true)}
				r := newKeyedRig(t, store, nil, cache.ListUnpaged, all, all[:2])
				r.assertQuarantined("a/2", "k2", "k3")
				r.send(watch.Modified, keyed("2", "k2", "11", false))
				r.assertQuarantined("a/2", "k3")
				r.send(watch.Error, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Status", "code": int64(410), "reason": "Expired"}})
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, "20", r.reflector.LastSyncResourceVersion())
				r.assertQuarantined("a/2", "k2")
				r.stop()
			})
		})
	}
}

// Fails if a stream's later state of an object does not count for a key that the store made.
func TestG6ALaterStreamedStateReleasesAnObjectThatAWrappedStoreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKeyedRig(t, replacingOwnKeys{newOwnKeys()}, nil, cache.ListStreaming, nil)
		r.send(watch.Added, keyed("1", "a/2", "3", true))
		for n := range 120 { // more than a part, so that the first part is refused before the bookmark
			r.send(watch.Added, keyed(fmt.Sprint(100+n), fmt.Sprint(n), "4", false))
		}
		r.assertQuarantined("a/2")
		r.send(watch.Added, keyed("1", "a/2", "5", false))
		end := keyed("", "", "10", false)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		r.send(watch.Bookmark, end)
		require.Equal(t, "10", r.reflector.LastSyncResourceVersion())
		r.assertQuarantined()
		r.stop()
	})
}
