package cache

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/cachetest"
)

// That an object which could not be decoded is quarantined in lists and events, by
// name, is TestB6OneBadObjectIsQuarantinedAndHoldsNobodyBack. Here is the rest.

// neverUndecoded fails the test if a function of the user's sees an Undecoded.
func neverUndecoded(t *testing.T) func(any) (any, error) {
	return func(obj any) (any, error) {
		assert.NotImplements(t, (*Undecoded)(nil), obj)
		return obj, nil
	}
}

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
