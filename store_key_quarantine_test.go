package cache_test

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// ownKeys is a program's store around one of ours, with keys that its objects' labels say.
type ownKeys struct{ cache.Store }

// replacingOwnKeys is one that takes lists in parts.
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

// keyedRig is a reflector that feeds such a store from lists and events that a test sends.
type keyedRig struct {
	*testing.T
	events    chan watch.Event
	reflector *cache.Reflector
	ctx       context.Context
	cancel    func()
	running   sync.WaitGroup
}

// newKeyedRig lists each of the lists once, the last one again and again.
func newKeyedRig(t *testing.T, store cache.ReflectorStore, expected any, strategy cache.ListStrategy, lists ...[]*unstructured.Unstructured) *keyedRig {
	r := &keyedRig{T: t, events: make(chan watch.Event, 16)}
	version := 10
	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
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
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewProxyWatcher(r.events), nil },
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

// holds requires that exactly these keys are quarantined.
func (r *keyedRig) holds(keys ...string) {
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
func TestG6WhatAWrappedStoreRefusesIsHeldAndReleasedUnderItsKey(t *testing.T) {
	things := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	for name, row := range map[string]struct {
		expected any
		script   func(r *keyedRig)
	}{
		"a good state": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.holds("k1")
			r.send(watch.Modified, keyed("1", "k1", "12", false))
			r.holds()
		}},
		"a deletion": {things, func(r *keyedRig) {
			r.send(watch.Modified, keyed("1", "k1", "11", true))
			r.send(watch.Deleted, keyed("1", "k1", "12", true))
			r.holds()
		}},
		"another object, named as the key": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "k2", "12", false))
			r.holds("a/2")
			r.send(watch.Deleted, keyed("2", "k2", "13", false))
			r.holds("a/2")
			r.send(watch.Modified, keyed("1", "a/2", "14", false))
			r.holds()
		}},
		"another object, which is held as well": {things, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "a/2", "11", true))
			r.send(watch.Added, keyed("2", "a/1", "12", true))
			r.holds("a/1", "a/2")
			r.send(watch.Modified, keyed("2", "a/1", "13", false))
			r.holds("a/2")
		}},
		"another kind": {nil, func(r *keyedRig) {
			r.send(watch.Added, keyed("1", "thing-1", "11", true))
			r.send(watch.Added, ofKind("Other", keyed("1", "other-1", "12", true)))
			r.holds("thing-1", "other-1")
			r.send(watch.Modified, ofKind("Other", keyed("1", "other-1", "13", false)))
			r.holds("thing-1")
			r.send(watch.Modified, keyed("1", "thing-1", "14", false))
			r.holds()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newKeyedRig(t, newOwnKeys(), row.expected, cache.ListWhole, nil)
				row.script(r)
				r.stop()
			})
		})
	}
}

// The same for what a list brings.
func TestG6WhatAWrappedStoreRefusesOfAListIsReleasedByALaterState(t *testing.T) {
	for name, store := range map[string]cache.ReflectorStore{"whole": newOwnKeys(), "in parts": replacingOwnKeys{newOwnKeys()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []*unstructured.Unstructured{keyed("1", "a/2", "3", true), keyed("2", "k2", "4", true), keyed("3", "k3", "5", true)}
				r := newKeyedRig(t, store, nil, cache.ListWhole, all, all[:2])
				r.holds("a/2", "k2", "k3")
				r.send(watch.Modified, keyed("2", "k2", "11", false))
				r.holds("a/2", "k3")
				r.send(watch.Error, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Status", "code": int64(410), "reason": "Expired"}})
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, "20", r.reflector.LastSyncResourceVersion())
				r.holds("a/2", "k2")
				r.stop()
			})
		})
	}
}

// Fails if a stream's later state of an object does not count for a key that the store made.
func TestG6AStreamsLaterStateReleasesWhatAWrappedStoreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKeyedRig(t, replacingOwnKeys{newOwnKeys()}, nil, cache.ListStreaming, nil)
		r.send(watch.Added, keyed("1", "a/2", "3", true))
		for n := range 120 { // more than a part, so that the first one is refused before the bookmark
			r.send(watch.Added, keyed(fmt.Sprint(100+n), fmt.Sprint(n), "4", false))
		}
		r.holds("a/2")
		r.send(watch.Added, keyed("1", "a/2", "5", false))
		end := keyed("", "", "10", false)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		r.send(watch.Bookmark, end)
		require.Equal(t, "10", r.reflector.LastSyncResourceVersion())
		r.holds()
		r.stop()
	})
}
