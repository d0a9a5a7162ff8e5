package protowire

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// custom is a type like those of custom resources. Both of its embedded types have an Unmarshal
// method, so it has none.
type custom struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (*custom) DeepCopyObject() runtime.Object { return nil }

// byHand decodes itself with a function.
type byHand struct {
	metav1.PartialObjectMetadata
	unmarshal func([]byte) error
}

func (b *byHand) Unmarshal(data []byte) error { return b.unmarshal(data) }

func (b *byHand) Reset() { b.Name = "" }

func TestGeneratedTypesAreSupported(t *testing.T) {
	for _, object := range []runtime.Object{&carp.Carp{}, &metav1.PartialObjectMetadata{}, &metav1.Status{}, &byHand{}} {
		require.True(t, Supports(object), "%T", object)
	}
	for _, object := range []runtime.Object{&custom{}, &unstructured.Unstructured{}} {
		require.False(t, Supports(object), "%T", object)
		err := Encoding.Into(nil, roomy, object)
		require.ErrorContains(t, err, "no Unmarshal method")
		require.NotErrorIs(t, err, wire.ErrMalformed)
	}
}

func TestBytesAloneAreNotDecoded(t *testing.T) {
	_, err := Encoding.Unstructured(served(t, status()), roomy)
	require.ErrorIs(t, err, wire.ErrNotSelfDescribing)
}

func TestDecodedObjectsDoNotReferToTheirBytes(t *testing.T) {
	want := &carps(1).Items[0]
	want.Spec.NodeSelector["long"] = strings.Repeat("x", 1000)
	data, err := want.Marshal()
	require.NoError(t, err)
	for _, data := range [][]byte{data, served(t, want)} {
		object := &carp.Carp{}
		require.NoError(t, Encoding.Into(data, roomy, object))
		id := Encoding.Identify(data)
		for i := range data {
			data[i] = 'z'
		}
		object.TypeMeta = metav1.TypeMeta{}
		require.Equal(t, want, object)
		require.Equal(t, want.Name, id.Name)
	}
}

func TestABareObjectIsGivenNoType(t *testing.T) {
	object := &carp.Carp{TypeMeta: metav1.TypeMeta{Kind: "Carp"}}
	require.NoError(t, Encoding.Into(nil, roomy, object))
	require.Empty(t, object.Kind, "Reset takes what was there before")

	without := &struct{ byHand }{byHand{unmarshal: func([]byte) error { return nil }}}
	without.Kind = "Kept"
	require.NoError(t, Encoding.Into(nil, roomy, without))
	require.Equal(t, "Kept", without.Kind)
}

func TestMalformedObjectsAreRefused(t *testing.T) {
	good := typeMeta("v1", "Carp")
	for name, data := range map[string][]byte{
		"not a message":           []byte("\xff\xff"),
		"JSON":                    []byte(`{"kind":"Carp"}`),
		"metadata of wrong type":  varintField(objectMetadata, 1),
		"an envelope cut short":   sealed(good)[:8],
		"an empty envelope":       magic,
		"an envelope without raw": sealed(good),
		"raw of wrong type":       sealed(varintField(envelopeRaw, 1)),
		"kind of wrong type":      sealed(bytesField(envelopeTypeMeta, varintField(typeMetaKind, 1)), raw()),
		"a type that is none":     sealed(textField(envelopeTypeMeta, "\xff"), raw()),
		"an encoding":             sealed(good, raw(), textField(envelopeContentEncoding, "gzip")),
		"a duplicate raw":         sealed(good, raw(), raw()),
		"a bad raw":               sealed(good, raw([]byte("\xff"))),
	} {
		require.ErrorIs(t, Encoding.Into(data, roomy, &carp.Carp{}), wire.ErrMalformed, name)
	}
}

func TestErrorsOfUnmarshalAreReportedAndNotKept(t *testing.T) {
	cause := errors.New("cause" + strings.Repeat("\n\x1b", 10_000))
	err := Encoding.Into(nil, roomy, &byHand{unmarshal: func([]byte) error { return cause }})
	require.NotErrorIs(t, err, cause, "which may hold the object")
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.Equal(t, "malformed response: cause…", err.Error())
}

func TestAPanicOfUnmarshalBecomesAnError(t *testing.T) {
	object := &byHand{unmarshal: func(data []byte) error { _ = data[len(data)]; return nil }}
	require.ErrorContains(t, Encoding.Into([]byte("x"), roomy, object), "panicked: runtime error: index out of range")

	object.unmarshal = func([]byte) error { panic(strings.Repeat("loud\n", 10_000)) }
	err := Encoding.Into([]byte("x"), roomy, object)
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.Less(t, len(err.Error()), 1000)
	require.NotContains(t, err.Error(), "\n")
}

func TestBrokenObjectsAreIdentifiedAsFarAsTheyCanBeRead(t *testing.T) {
	metadata := bytesField(objectMetadata, join(
		textField(metaName, "n"), textField(2, "generated"), textField(metaNamespace, "ns"),
		textField(metaUID, "u"), textField(metaResourceVersion, "7"), varintField(7, 3)))
	id := wire.Identity{Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7"}
	typed := id
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Carp"}

	for name, c := range map[string]struct {
		data []byte
		want wire.Identity
	}{
		"nothing":                       {nil, wire.Identity{}},
		"noise":                         {[]byte("\xff\xff"), wire.Identity{}},
		"a whole object":                {join(metadata, textField(2, "spec")), id},
		"an object broken behind":       {join(metadata, textField(2, "spec")[:3]), id},
		"an object broken before":       {join([]byte{0x80, 0}, metadata), wire.Identity{}},
		"metadata at the end":           {join(textField(2, "spec"), varintField(9, 1), metadata), id},
		"metadata of wrong type":        {varintField(objectMetadata, 1), wire.Identity{}},
		"a name of wrong type":          {bytesField(objectMetadata, join(varintField(metaName, 5), textField(metaNamespace, "ns"))), wire.Identity{Namespace: "ns"}},
		"a name again, of wrong type":   {bytesField(objectMetadata, join(textField(metaName, "n"), varintField(metaName, 5))), wire.Identity{Name: "n"}},
		"metadata broken in the middle": {bytesField(objectMetadata, join(textField(metaName, "n"), []byte{0xff})), wire.Identity{Name: "n"}},
		"a name too long":               {bytesField(objectMetadata, join(textField(metaName, strings.Repeat("n", wire.MaxName+1)), textField(metaNamespace, "ns"))), wire.Identity{Namespace: "ns"}},
		"a namespace of wrong type":     {bytesField(objectMetadata, join(textField(metaName, "n"), varintField(metaNamespace, 5))), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace cut off":           {bytesField(objectMetadata, join(textField(metaName, "n"), textField(metaNamespace, "ns")[:3])), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace too long":          {bytesField(objectMetadata, join(textField(metaName, "n"), textField(metaNamespace, strings.Repeat("n", wire.MaxName+1)))), wire.Identity{Name: "n", NamespaceUnread: true}},
		"a namespace that is empty":     {bytesField(objectMetadata, join(textField(metaName, "n"), textField(metaNamespace, ""))), wire.Identity{Name: "n"}},
		"an envelope":                   {sealed(typeMeta("v1", "Carp"), raw(metadata)), typed},
		"an envelope broken behind":     {sealed(typeMeta("v1", "Carp"), raw(metadata), []byte{0xff}), typed},
		"an envelope broken before":     {sealed([]byte{0xff}, typeMeta("v1", "Carp"), raw(metadata)), wire.Identity{}},
		"an envelope with a long kind":  {sealed(typeMeta("v1", strings.Repeat("k", wire.MaxName+1)), raw(metadata)), wire.Identity{TypeMeta: metav1.TypeMeta{APIVersion: "v1"}, Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7"}},
	} {
		require.Equal(t, c.want, Encoding.Identify(c.data), name)
	}
	longest := strings.Repeat("n", wire.MaxName)
	require.Equal(t, longest, Encoding.Identify(bytesField(objectMetadata, textField(metaName, longest))).Name)
}

func TestGeneratedObjectsAreIdentified(t *testing.T) {
	object := &carp.Carp{TypeMeta: metav1.TypeMeta{APIVersion: "a/v1", Kind: "Carp"}, ObjectMeta: named("n")}
	object.GenerateName = "generated-"
	require.Equal(t, wire.Identity{
		TypeMeta:  object.TypeMeta,
		Namespace: "ns", Name: "n", UID: types.UID("uid"), ResourceVersion: "7",
	}, Encoding.Identify(served(t, object)))
}
