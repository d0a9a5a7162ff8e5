package protowire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

func TestWatchesOfAPIServersComeFrameByFrame(t *testing.T) {
	about := metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "Carp"}
	first := &carp.Carp{TypeMeta: about, ObjectMeta: named("first"), Spec: carp.CarpSpec{NodeName: "n"}}
	large := &carp.Carp{TypeMeta: about, ObjectMeta: named(strings.Repeat("large", 50_000))}
	bookmark := &carp.Carp{TypeMeta: about, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	meta := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: named("meta"),
	}
	events := []watch.Event{
		{Type: watch.Added, Object: first},
		{Type: watch.Modified, Object: large},
		{Type: watch.Deleted, Object: meta},
		{Type: watch.Bookmark, Object: bookmark},
		{Type: "NEW_TYPE", Object: first},
		{Type: watch.Error, Object: status()},
	}
	var body []byte
	for _, event := range events {
		body = append(body, servedFrame(t, event.Type, event.Object)...)
	}
	for name, deliver := range wiretest.Deliveries {
		t.Run(name, func(t *testing.T) {
			got := readWatch(deliver(bytes.NewReader(body)), roomy)
			require.Equal(t, io.EOF, got.Err)
			require.Len(t, got.Frames, len(events))
			for i, want := range events {
				require.Equal(t, want.Type, got.Frames[i].Type)
				var object runtime.Object
				switch want.Object.(type) {
				case *carp.Carp:
					object = &carp.Carp{}
				case *metav1.Status:
					object = &metav1.Status{}
				case *metav1.PartialObjectMetadata:
					object = &metav1.PartialObjectMetadata{}
				}
				require.NoError(t, Encoding.Into(got.Frames[i].Object, roomy, object))
				require.Equal(t, want.Object, object, "with the type that is in its envelope")
			}
		})
	}
}

func TestWatchesInUnusualForms(t *testing.T) {
	object := bytesField(eventObject, textField(extensionRaw, "k8s\x00object"))
	for name, event := range map[string][]byte{
		"object before type":         join(object, textField(eventType, "ADDED")),
		"unknown fields":             join(varintField(9, 1), textField(eventType, "ADDED"), textField(8, "x"), object),
		"unknown fields beside raw":  join(textField(eventType, "ADDED"), bytesField(eventObject, join(varintField(9, 1), textField(extensionRaw, "k8s\x00object")))),
		"of each field the last one": join(textField(eventType, "X"), bytesField(eventObject, textField(extensionRaw, "x")), object, textField(eventType, "ADDED")),
		"object in two parts":        join(textField(eventType, "ADDED"), object, bytesField(eventObject, varintField(9, 1))),
	} {
		got := readWatch(bytes.NewReader(frameBytes(event)), roomy)
		require.Equal(t, wiretest.Watching{Frames: []wire.Frame{{Type: watch.Added, Object: []byte("k8s\x00object")}}, Err: io.EOF}, got, name)
	}
}

func TestMalformedFramesEndAWatch(t *testing.T) {
	object := bytesField(eventObject, textField(extensionRaw, "k8s\x00object"))
	good := frameBytes(join(textField(eventType, "ADDED"), object))
	for name, c := range map[string]struct {
		body []byte
		text string
	}{
		"no type":                      {frameBytes(object), "a watch frame without type"},
		"an empty type":                {frameBytes(join(textField(eventType, ""), object)), "a watch frame without type"},
		"an empty frame":               {frameBytes(nil), "a watch frame without type"},
		"no object":                    {frameBytes(textField(eventType, "ADDED")), `a watch frame of type "ADDED" without object`},
		"an empty object":              {frameBytes(join(textField(eventType, "ADDED"), bytesField(eventObject, textField(extensionRaw, "")))), "without object"},
		"no object, a type of noise":   {frameBytes(textField(eventType, strings.Repeat("A\x1b", 5000))), "without object"},
		"a type of another wire type":  {frameBytes(varintField(eventType, 1)), "wire type 0"},
		"an object of another":         {frameBytes(join(textField(eventType, "ADDED"), varintField(eventObject, 1))), "wire type 0"},
		"raw of another":               {frameBytes(bytesField(eventObject, varintField(extensionRaw, 1))), "wire type 0"},
		"a field longer than a frame":  {frameBytes(join(textField(eventType, "ADDED"), tagBytes(eventObject, typeBytes), number(9), []byte("four"))), "exceeds its container"},
		"a field longer than a object": {frameBytes(bytesField(eventObject, join(tagBytes(extensionRaw, typeBytes), number(9), []byte("four")))), "exceeds its container"},
		"an object without magic":      {frameBytes(join(textField(eventType, "ADDED"), bytesField(eventObject, textField(extensionRaw, "k8s,object")))), "magic bytes"},
		"a list":                       {served(t, carps(2)), "a CarpList in place of a watch frame"},
		"a Status":                     {served(t, status()), "a Status in place of a watch frame"},
		"an object of no kind":         {sealed(raw(item("x"))), "an object in place of a watch frame"},
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
	frame := servedFrame(t, watch.Added, &carps(1).Items[0])
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
	frame := servedFrame(t, watch.Added, &carps(1).Items[0])
	limits := roomy
	limits.ValueBytes = len(frame) - lengthBytes
	require.Equal(t, io.EOF, readWatch(bytes.NewReader(frame), limits).Err)
	limits.ValueBytes--
	got := readWatch(bytes.NewReader(frame), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limits.ValueBytes}, got.Err)
}

func TestAnErrorOfAWatchStays(t *testing.T) {
	w := Encoding.Watch(strings.NewReader("abc"), roomy)
	for range 3 {
		_, err := w.Next()
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
}

// Fails if the end of a frame is expected only by its length.
func TestALengthThatIsTooLargeEndsAWatchAtTheNextFrame(t *testing.T) {
	frame := servedFrame(t, watch.Added, &carps(1).Items[0])
	for place := 1; place < lengthBytes; place++ {
		damaged := bytes.Clone(frame)
		damaged[place] |= 4
		if bytes.Equal(damaged, frame) {
			continue
		}
		got := readWatch(io.MultiReader(bytes.NewReader(join(damaged, frame)), iotest.ErrReader(errors.New("more was asked for"))), roomy)
		require.ErrorIs(t, got.Err, wire.ErrMalformed)
		require.Empty(t, got.Frames)
	}
}

func TestAFrameMayArriveInAnyPiecesAndBeOfAnyFields(t *testing.T) {
	event := join(varintField(9, 1<<40), textField(eventType, "ADDED"), tagBytes(10, typeFixed64), make([]byte, 8), tagBytes(11, typeFixed32), make([]byte, 4),
		textField(12, strings.Repeat("x", 5000)), bytesField(eventObject, textField(extensionRaw, "k8s\x00object")))
	for name, deliver := range wiretest.Deliveries {
		got := readWatch(deliver(bytes.NewReader(join(frameBytes(event), frameBytes(event)))), roomy)
		require.Equal(t, io.EOF, got.Err, name)
		require.Len(t, got.Frames, 2, name)
	}
}
