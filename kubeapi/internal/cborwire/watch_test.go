package cborwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/watch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

func TestWatchesOfAPIServersComeFrameByFrame(t *testing.T) {
	first, large, last := widget("first"), widget(strings.Repeat("large", 50_000)), widget("last")
	typed := &carp.Carp{
		TypeMeta:   metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "Carp"},
		ObjectMeta: named("typed"),
	}
	body := join(
		servedFrame(t, watch.Added, &first),
		servedFrame(t, watch.Modified, &large),
		servedFrame(t, "NEW_TYPE", &last),
		servedFrame(t, watch.Deleted, typed),
		servedFrame(t, watch.Error, status()))
	for name, deliver := range wiretest.Deliveries {
		t.Run(name, func(t *testing.T) {
			got := readWatch(deliver(bytes.NewReader(body)), roomy)
			require.Equal(t, io.EOF, got.Err)
			require.Len(t, got.Frames, 5)
			var types []watch.EventType
			for _, frame := range got.Frames {
				types = append(types, frame.Type)
			}
			require.Equal(t, []watch.EventType{watch.Added, watch.Modified, "NEW_TYPE", watch.Deleted, watch.Error}, types)
			for i, want := range []map[string]any{first.Object, large.Object, last.Object} {
				content, err := Encoding.Unstructured(got.Frames[i].Object, roomy)
				require.NoError(t, err)
				require.Equal(t, want, content)
			}
			object, failed := &carp.Carp{}, &metav1.Status{}
			require.NoError(t, Encoding.Into(got.Frames[3].Object, roomy, object))
			require.Equal(t, typed, object)
			require.NoError(t, Encoding.Into(got.Frames[4].Object, roomy, failed))
			require.Equal(t, status(), failed)
		})
	}
}

func TestWatchesInUnusualForms(t *testing.T) {
	for name, body := range map[string][]byte{
		"type first":        mapping("type", "ADDED", "object", "o"),
		"object first":      mapping("object", "o", "type", "ADDED"),
		"unknown fields":    mapping("x", []any{1}, "object", "o", "kind", "k", "type", "ADDED", "x", nil),
		"indefinite length": openMapping("object", "o", "type", "ADDED"),
		"text strings":      mapping(raw(textString("type")), raw(textString("ADDED")), raw(textString("object")), "o"),
		"tags":              tagged(55799, tagged(55799, mapping("type", "ADDED", "object", "o"))),
	} {
		got := readWatch(bytes.NewReader(body), roomy)
		require.Equal(t, wiretest.Watching{Frames: []wire.Frame{{Type: watch.Added, Object: of("o")}}, Err: io.EOF}, got, name)
	}
}

func TestMalformedFramesEndAWatch(t *testing.T) {
	good := mapping("type", "ADDED", "object", "o")
	for name, c := range map[string]struct {
		body []byte
		text string
	}{
		"no map":                     {array("type", "ADDED"), "a CBOR value that is not a map"},
		"a reserved form":            {[]byte{0x1c}, "reserved CBOR encoding"},
		"a tag":                      {tagged(22, good), "a CBOR value that is not a map"},
		"an empty map":               {mapping(), "a watch frame without type"},
		"no type":                    {mapping("object", "o"), "a watch frame without type"},
		"an empty type":              {mapping("object", "o", "type", ""), "a watch frame without type"},
		"a type that is no string":   {mapping("object", "o", "type", 5), "type is not a string"},
		"no object":                  {mapping("type", "ADDED"), `a watch frame of type "ADDED" without object`},
		"a null object":              {mapping("type", "ADDED", "object", nil), `a watch frame of type "ADDED" without object`},
		"a tagged null object":       {mapping("type", "ADDED", "object", raw(tagged(55799, of(nil)))), "without object"},
		"no object, a type of noise": {mapping("type", strings.Repeat("A\x1b", 5000)), "without object"},
		"two types":                  {mapping("type", "ADDED", "object", "o", "type", "ADDED"), "a duplicate field"},
		"two objects":                {mapping("type", "ADDED", "object", "o", "object", "o"), "a duplicate field"},
		"a field name that is none":  {mapping("type", "ADDED", "object", "o", 5, 5), "field name"},
		"a field without value":      {openMapping("type", "ADDED", "object"), "unexpected CBOR break"},
		"a list":                     {served(t, carps(2)), "a CarpList in place of a watch frame"},
		"a Status":                   {served(t, status()), "a Status in place of a watch frame"},
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				got := readWatch(deliver(bytes.NewReader(join(good, c.body, good))), roomy)
				require.Len(t, got.Frames, 1, "what came before is good")
				require.ErrorIs(t, got.Err, wire.ErrMalformed)
				require.ErrorContains(t, got.Err, c.text)
				require.Less(t, len(got.Err.Error()), 1500)
				require.NotContains(t, got.Err.Error(), "\x1b")
			})
		}
	}
}

func TestWatchesCutShortEndUnexpectedly(t *testing.T) {
	object := widget("w")
	frame := servedFrame(t, watch.Added, &object)
	broken := errors.New("connection reset")
	for n := range 2 * len(frame) {
		body := join(frame, frame)[:n]
		got := readWatch(bytes.NewReader(body), roomy)
		require.Len(t, got.Frames, n/len(frame))
		if n%len(frame) == 0 {
			require.Equal(t, io.EOF, got.Err)
		} else {
			require.Equal(t, io.ErrUnexpectedEOF, got.Err, "of %d bytes", n)
		}
		got = readWatch(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)), roomy)
		require.Equal(t, broken, got.Err)
	}
}

func TestFramesUpToTheLimitPass(t *testing.T) {
	object := widget("w")
	frame := servedFrame(t, watch.Added, &object)
	limits := roomy
	limits.ValueBytes = len(frame)
	require.Equal(t, io.EOF, readWatch(bytes.NewReader(frame), limits).Err)
	limits.ValueBytes--
	got := readWatch(bytes.NewReader(frame), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limits.ValueBytes}, got.Err)
}

func TestAnErrorOfAWatchStays(t *testing.T) {
	w := Encoding.Watch(bytes.NewReader([]byte{0xa1}), roomy)
	for range 3 {
		_, err := w.Next()
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
}
