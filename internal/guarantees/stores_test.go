package guarantees

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// versionOf returns the resource version of an object as a number.
func versionOf(obj any) int {
	received := receivedOf(obj)
	version, _ := strconv.Atoi(received.ResourceVersion)
	return version
}

// items returns objects of namespace a, from names and versions in turn.
func items(namesAndVersions ...string) (list []any) {
	for i := 0; i < len(namesAndVersions); i += 2 {
		list = append(list, podAt("a", namesAndVersions[i], namesAndVersions[i+1]))
	}
	return list
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// foreignStore is a store with only the methods of a ReflectorStore. It records its calls.
type foreignStore struct{ calls []string }

func (f *foreignStore) take() []string { calls := f.calls; f.calls = nil; return calls }

func (f *foreignStore) note(call string, obj any) error {
	f.calls = append(f.calls, fmt.Sprintf("%s %s", call, nameOf(obj)))
	return nil
}

func (f *foreignStore) Add(obj any) error { return f.note("add", obj) }

func (f *foreignStore) Update(obj any) error { return f.note("update", obj) }

func (f *foreignStore) Delete(obj any) error { return f.note("delete", obj) }

func (f *foreignStore) Resync() error { return nil }

func (f *foreignStore) Replace(list []any, version string) error {
	call := "replace"
	for _, obj := range list {
		call += " " + nameOf(obj)
	}
	f.calls = append(f.calls, call+" @"+version)
	return nil
}

// contents returns the versions of a store's objects, by key.
func contents(s cache.Store) map[string]string {
	held := map[string]string{}
	for _, obj := range s.List() {
		received := receivedOf(obj)
		held[nameOf(obj)] = received.ResourceVersion
	}
	return held
}

// failIfBad returns an error for a bad object.
func failIfBad(obj any) error {
	if isBad(obj) {
		return errBoom
	}
	return nil
}

// quarantinedVersions returns the versions of quarantined objects, by key.
func quarantinedVersions(s cache.Status) map[string]string {
	held := map[string]string{}
	for _, q := range s.Quarantined {
		held[q.Key] = q.ResourceVersion
	}
	return held
}

// An undecoded deletion of an object whose key needs more than metadata cannot be applied: it is
// reported once and quarantined, also in a stream. Fails if it is not in the status.
func TestAnUndecodedDeletionWithoutAKeyIsReportedAndQuarantined(t *testing.T) {
	for name, fail := range map[string]func() (string, error){
		"fails":  func() (string, error) { return "", errBoom },
		"panics": func() (string, error) { panic(errBoom) },
	} {
		keyFunc := func(obj any) (string, error) {
			if _, undecoded := obj.(interface{ DecodeError() error }); undecoded {
				return fail()
			}
			return cache.MetaNamespaceKeyFunc(obj)
		}
		for _, queue := range []bool{false, true} {
			for _, strategy := range []cache.ListStrategy{cache.ListUnpaged, cache.ListStreaming} {
				t.Run(fmt.Sprintf("%s, queue %v, strategy %d", name, queue, strategy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { deletionWithoutKey(t, keyFunc, queue, strategy) })
				})
			}
		}
	}
}

func deletionWithoutKey(t *testing.T, keyFunc cache.KeyFunc, queue bool, strategy cache.ListStrategy) {
	h := &errorRecorder{}
	events := []watch.Event{
		{Type: watch.Added, Object: podAt("a", "1", "6")},
		{Type: watch.Deleted, Object: newUndecoded(podAt("a", "1", "7"))},
	}
	if strategy == cache.ListStreaming {
		events = append(events, watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("7")})
	}
	source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return newRecordedWatch(events...), nil }}
	var store cache.ReflectorStore = cache.NewStore(keyFunc)
	if queue {
		store = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: keyFunc, EmitDeltaTypeReplaced: true})
	}
	r := cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
	stop := runReflector(t, r)
	require.Len(t, h.all(), 1)
	var object *cache.ObjectError
	require.ErrorAs(t, h.all()[0], &object)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, stageDecode, object.Stage)
	assert.ErrorIs(t, object, errBoom)
	assert.ErrorContains(t, object, "a/1")
	require.Len(t, r.Status().Quarantined, 1)
	assert.Equal(t, "a/1", r.Status().Quarantined[0].Key)
	assert.Equal(t, "7", r.LastSyncResourceVersion())
	if fifo, ok := store.(*cache.DeltaFIFO); ok {
		listed := map[cache.ListStrategy]string{cache.ListUnpaged: "Added a/1@6", cache.ListStreaming: "Replaced a/1@6"}
		assert.Equal(t, []string{listed[strategy]}, drainTexts(t, fifo))
	} else {
		assert.Equal(t, []string{"a/1"}, store.(cache.Store).ListKeys())
	}
	stop()
}
