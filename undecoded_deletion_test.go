package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Deletions that could not be decoded.

// The tombstone is of the newest state that is known, also if that is only queued.
func TestTheTombstoneOfAnUndecodedDeletionHasTheNewestKnownState(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: NewStore(MetaNamespaceKeyFunc), EmitDeltaTypeReplaced: true, Transformer: neverUndecoded(t)})
	gone := undecoded(podAt("a", "1", "7"))
	must(t, f.Delete(gone))
	assert.Zero(t, len(f.log.pendingKeys()), "of nothing that is known, there is no deletion")
	must(t, f.Add(podAt("a", "1", "5")))
	must(t, f.Update(podAt("a", "1", "6")))
	must(t, f.Delete(gone))
	must(t, f.Delete(gone))
	_, err := f.Pop(func(obj any, _ bool) error {
		deltas := obj.(Deltas)
		require.Len(t, deltas, 3)
		tombstone := deltas.Newest().Object.(DeletedFinalStateUnknown)
		assert.Equal(t, "a/1", tombstone.Key)
		assert.Equal(t, "6", receivedOf(tombstone.Obj).ResourceVersion)
		return nil
	})
	must(t, err)
	// As part of a first list, which shows what a stream has told.
	f = NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: neverUndecoded(t)})
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: []any{podAt("a", "1", "6")}})
	part(t, r, ReplacementPart{Gone: []any{gone}})
	_, err = f.Pop(func(obj any, _ bool) error {
		assert.Equal(t, "6", receivedOf(obj.(Deltas).Newest().Object.(DeletedFinalStateUnknown).Obj).ResourceVersion)
		return nil
	})
	must(t, err)
}

// An undecoded deletion of an object whose key needs more than its metadata cannot be
// applied: it is reported once, and quarantined; so it is in a stream. Fails if the
// status hides that the store holds what is gone.
func TestAnUndecodedDeletionWithoutAKeyIsReportedAndQuarantined(t *testing.T) {
	for name, fail := range map[string]func() (string, error){
		"fails":  func() (string, error) { return "", errBoom },
		"panics": func() (string, error) { panic(errBoom) },
	} {
		keyFunc := func(obj any) (string, error) {
			if isUndecoded(obj) {
				return fail()
			}
			return MetaNamespaceKeyFunc(obj)
		}
		for _, queue := range []bool{false, true} {
			for _, strategy := range []ListStrategy{ListWhole, ListStreaming} {
				t.Run(fmt.Sprintf("%s, queue %v, strategy %d", name, queue, strategy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { deletionWithoutKey(t, keyFunc, queue, strategy) })
				})
			}
		}
	}
}

func deletionWithoutKey(t *testing.T, keyFunc KeyFunc, queue bool, strategy ListStrategy) {
	h := &heard{}
	events := []watch.Event{
		{Type: watch.Added, Object: podAt("a", "1", "6")},
		{Type: watch.Deleted, Object: undecoded(podAt("a", "1", "7"))},
	}
	if strategy == ListStreaming {
		events = append(events, watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("7")})
	}
	source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return newProbe(events...), nil }}
	var store ReflectorStore = NewStore(keyFunc)
	if queue {
		store = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, EmitDeltaTypeReplaced: true})
	}
	r := NewReflectorWithOptions(source, nil, store, ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
	stop := runReflector(t, r)
	require.Len(t, h.all(), 1)
	var object *ObjectError
	require.ErrorAs(t, h.all()[0], &object)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, StageDecode, object.Stage)
	assert.ErrorIs(t, object, errBoom)
	assert.ErrorContains(t, object, "a/1")
	require.Len(t, r.Status().Quarantined, 1)
	assert.Equal(t, "a/1", r.Status().Quarantined[0].Key)
	assert.Equal(t, "7", r.LastSyncResourceVersion())
	if fifo, ok := store.(*DeltaFIFO); ok {
		assert.Equal(t, []string{"a/1"}, fifo.log.pendingKeys())
	} else {
		assert.Equal(t, []string{"a/1"}, store.(Store).ListKeys())
	}
	stop()
}

// A list that a foreign store gets in one Replace loses what a stream has deleted, of
// whatever kind the undecoded object is known to be.
func TestAnUndecodedDeletionIsOfTheKindThatItSays(t *testing.T) {
	service := podAt("a", "1", "2")
	service.Kind = "Service"
	untyped := podAt("a", "1", "3")
	untyped.TypeMeta = metav1.TypeMeta{}
	for name, row := range map[string]struct {
		gone *object
		left int
	}{
		"a pod":         {podAt("a", "1", "9"), 1},
		"not known":     {untyped, 0},
		"another":       {podAt("a", "2", "9"), 3},
		"another again": {podAt("b", "1", "9"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wholeReplacement{store: &foreign{}, streamed: true}
			part(t, w, ReplacementPart{Items: []any{podAt("a", "1", "1"), service, untyped}})
			part(t, w, ReplacementPart{Gone: []any{undecoded(row.gone)}})
			assert.Len(t, w.places, row.left)
		})
	}
}
