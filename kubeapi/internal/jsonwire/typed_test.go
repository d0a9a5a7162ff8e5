package jsonwire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// typed is an object of a user's type.
type typed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec `json:"spec"`
}

func (t *typed) DeepCopyObject() runtime.Object { return t }

type spec struct {
	Replicas int32 `json:"replicas"`
	Strange  own   `json:"strange"`
	Any      any   `json:"any"`
}

// own is a type with its own method, which may do anything.
type own struct{ text string }

var errOwn = errors.New("own")

func (o *own) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case `"panic"`:
		panic(fmt.Sprintf("no\nway: %s", strings.Repeat("x", 10_000)))
	case `"index"`:
		o.text = string(raw[len(raw):][0])
	case `"error"`:
		return fmt.Errorf("%w: %s", errOwn, strings.Repeat("x", 10_000))
	case `"bad error"`:
		return badError{}
	}
	o.text = string(raw)
	return nil
}

// badError is an error whose Error method panics.
type badError struct{}

func (badError) Error() string { panic("no text") }

func TestObjectsAreDecodedIntoGoTypesAsByApimachinery(t *testing.T) {
	object := new(typed)
	require.NoError(t, Encoding.Into([]byte(` {"kind":"T","metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"},
		"spec":{"replicas":3,"REPLICAS":4,"strange":"x","any":{"n":9007199254740993}},"unknown":{}} `), limits, object))
	require.Equal(t, "T", object.Kind)
	require.Equal(t, "a", object.Name)
	require.Equal(t, 2026, object.CreationTimestamp.Year())
	require.Equal(t, spec{Replicas: 3, Strange: own{`"x"`}, Any: map[string]any{"n": int64(9007199254740993)}}, object.Spec)
}

func TestWhatCannotBeDecodedIntoAGoTypeIsAShortError(t *testing.T) {
	for name, test := range map[string]struct{ raw, text string }{
		"no JSON":           {`{"spec":{"replicas":nul}}`, "invalid character"},
		"cut":               {`{"spec":{`, "unexpected end"},
		"two objects":       {`{}{}`, "after top-level value"},
		"another type":      {`{"spec":{"replicas":"x"}}`, "spec.replicas"},
		"number too large":  {`{"spec":{"replicas":` + strings.Repeat("9", 10_000) + `}}`, "cannot unmarshal number 999"},
		"time":              {`{"metadata":{"creationTimestamp":` + quoted(10_000) + `}}`, "parsing time"},
		"error of its own":  {`{"spec":{"strange":"error"}}`, "own: xxx"},
		"panic of its own":  {`{"spec":{"strange":"panic"}}`, "into *jsonwire.typed panicked: no way: xxx"},
		"runtime panic":     {`{"spec":{"strange":"index"}}`, "panicked: runtime error: index out of range"},
		"error that panics": {`{"spec":{"strange":"bad error"}}`, "panicked: no text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Encoding.Into([]byte(test.raw), limits, new(typed))
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, test.text)
			require.Less(t, len(err.Error()), apiclient.MaxForeignText+100)
			require.NotErrorIs(t, err, errOwn, "which may hold the object")
		})
	}
}
