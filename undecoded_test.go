package cache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// unread stands for an object that could not be decoded, as a source would make it.
type unread struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	why func() error
}

func (u *unread) DecodeError() error                { return u.why() }
func (u *unread) DeepCopyObject() apiruntime.Object { return u }

var _ Undecoded = (*unread)(nil)

// undecoded is an object of which no more than its identity could be read.
func undecoded(o *object) *unread {
	return &unread{
		TypeMeta: o.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		why: func() error { return errBoom },
	}
}

// That an object which could not be decoded is quarantined in lists and events, by
// name, is TestB6OneBadObjectIsQuarantinedAndHoldsNobodyBack. Here is the rest.

func initialEventsEnd(version string) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// Whatever a source makes of an Undecoded, it is one: without metadata, without a cause.
type unreadable struct{ *metav1.ObjectMeta }

func (u *unreadable) DecodeError() error                { return nil }
func (u *unreadable) DeepCopyObject() apiruntime.Object { return u }
func (u *unreadable) GetObjectKind() schema.ObjectKind  { return nil }

func TestAnUndecodedObjectMayBeHollow(t *testing.T) {
	r := NewReflector(&ListWatch{}, &object{}, NewStore(MetaNamespaceKeyFunc), 0)
	for _, hollow := range []apiruntime.Object{&unreadable{}, &unreadable{&metav1.ObjectMeta{}}} {
		bad := r.examine(hollow, &metadata{}, true)
		require.NotNil(t, bad)
		assert.Equal(t, StageDecode, bad.Stage)
		assert.ErrorIs(t, bad, errUndecoded)
		assert.Empty(t, bad.Key)
	}
	nothing := r.examine((*unreadable)(nil), &metadata{}, true)
	require.NotNil(t, nothing)
	assert.Equal(t, StageMetadata, nothing.Stage)
}

// An object that could not be decoded is no failure of the watch, whatever its cause
// looks like: its cause is CauseObject, and it is logged as an error.
func TestAnUndecodedObjectIsClassedAndLoggedAsAnObject(t *testing.T) {
	var out bytes.Buffer
	r := NewNamedReflector("r", &ListWatch{}, nil, NewStore(MetaNamespaceKeyFunc), 0)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	for _, err := range []error{io.ErrUnexpectedEOF, io.EOF, cachetest.ErrExpired(), ErrWatchOverdue, errBoom} {
		out.Reset()
		object := &ObjectError{Key: "a/1", Stage: StageDecode, Err: err}
		assert.Equal(t, CauseObject, CauseOf(object))
		assert.Equal(t, CauseObject, CauseOf(undeleted(object, &ObjectError{Stage: StageKey, Err: errBoom})))
		DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), r, object)
		assert.Contains(t, out.String(), "a/1")
	}
}

// Deletions that could not be decoded.

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
