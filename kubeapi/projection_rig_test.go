package kubeapi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// carpType is the type in a carp.
var carpType = metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "Carp"}

// randomCarps returns carps with all fields filled randomly, including texts that need escapes,
// empty lists and nil pointers.
func randomCarps(n int) []carp.Carp {
	carps := make([]carp.Carp, n)
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range carps {
		fill(reflect.ValueOf(&carps[i]).Elem(), chance)
		carps[i].TypeMeta = carpType
	}
	return carps
}

var texts = []string{"", "a", "b.c/d", "\"\\\n{", "é\u2028", strings.Repeat("long ", 60)}

func fill(value reflect.Value, chance *rand.Rand) {
	switch whole := value.Addr().Interface().(type) {
	case *metav1.Time:
		*whole = metav1.Unix(chance.Int64N(1<<32), 0)
		return
	case *metav1.FieldsV1:
		whole.SetRawString(`{"f:metadata":{"f:labels":{}}}`)
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(texts[chance.IntN(len(texts))])
	case reflect.Bool:
		value.SetBool(chance.IntN(2) == 0)
	case reflect.Int64:
		value.SetInt(chance.Int64N(1<<60) >> chance.IntN(60))
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i), chance)
		}
	case reflect.Pointer:
		if chance.IntN(3) > 0 {
			value.Set(reflect.New(value.Type().Elem()))
			fill(value.Elem(), chance)
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), chance.IntN(4), 4))
		for i := range value.Len() {
			fill(value.Index(i), chance)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for range chance.IntN(4) {
			key := reflect.New(value.Type().Key()).Elem()
			element := reflect.New(value.Type().Elem()).Elem()
			fill(key, chance)
			fill(element, chance)
			value.SetMapIndex(key, element)
		}
	}
}

// apiOf is a server that lists these carps, and a watch delivers that each was modified. It uses
// the encoding that is requested first.
func apiOf(t testing.TB, carps []carp.Carp, encoding Encoding) server {
	items := bytes.Buffer{}
	frames := bytes.Buffer{}
	list := &carp.CarpList{
		TypeMeta: carpType,
		ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items:    carps,
	}
	list.Kind += "List"
	encode := map[Encoding]func(runtime.Object, *bytes.Buffer) error{
		JSON:     func(o runtime.Object, to *bytes.Buffer) error { return json.NewEncoder(to).Encode(o) },
		Protobuf: func(o runtime.Object, to *bytes.Buffer) error { return protobuf.NewSerializer(nil, nil).Encode(o, to) },
		CBOR:     func(o runtime.Object, to *bytes.Buffer) error { return cbor.NewSerializer(nil, nil).Encode(o, to) },
	}[encoding]
	require.NoError(t, encode(list, &items))
	for i := range carps {
		object := bytes.Buffer{}
		require.NoError(t, encode(&carps[i], &object))
		event := &metav1.WatchEvent{
			Type:   "MODIFIED",
			Object: runtime.RawExtension{Raw: object.Bytes()},
		}
		switch encoding {
		case Protobuf:
			frame := bytes.Buffer{}
			require.NoError(t, protobuf.NewRawSerializer(nil, nil).Encode(event, &frame))
			_, err := protobuf.LengthDelimitedFramer.NewFrameWriter(&frames).Write(frame.Bytes())
			require.NoError(t, err)
		default:
			require.NoError(t, encode(event, &frames))
		}
	}
	return func(request *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(request.Header.Get("Accept"), string(encoding)) {
			t.Errorf("asked for %s", request.Header.Get("Accept"))
		}
		body := items.String()
		if request.URL.Query().Get("watch") == "true" {
			body = frames.String()
		}
		return newResponse(200, textBody(body), "Content-Type", string(encoding)), nil
	}
}

// everything returns all objects that a source lists, and that a watch delivers.
func everything(t *testing.T, source *ListerWatcher) (items, watched []runtime.Object) {
	t.Helper()
	list, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	w, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	for event := range w.ResultChan() {
		require.Equal(t, watch.Modified, event.Type)
		watched = append(watched, event.Object)
	}
	return list.(*internalversion.List).Items, watched
}

// zeroed empties the unwanted fields of a Go value, by their names in JSON.
func zeroed(value reflect.Value, wanted *wire.Names) {
	if wanted.Whole {
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			zeroed(value.Elem(), wanted)
		}
	case reflect.Slice:
		for i := range value.Len() {
			zeroed(value.Index(i), wanted)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			if wanted.Find([]byte(key.String())) == nil {
				value.SetMapIndex(key, reflect.Value{})
			}
		}
	case reflect.Struct:
		for i := range value.NumField() {
			name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			below := wanted.Find([]byte(name))
			switch {
			case options == "inline":
				zeroed(value.Field(i), wanted)
			case below == nil:
				value.Field(i).SetZero()
			default:
				zeroed(value.Field(i), below)
			}
		}
	}
}

// carpAsPod returns an example of pods that are decoded as carps, which have some of a pod's
// fields.
func carpAsPod() *carp.Carp {
	return &carp.Carp{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
}
