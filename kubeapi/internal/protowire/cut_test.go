package protowire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/projection"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

func fieldsOf(t testing.TB, paths ...string) *wire.Fields {
	t.Helper()
	fields, err := projection.New(paths, reflect.TypeFor[carp.Carp]())
	require.NoError(t, err)
	return fields
}

var some = []string{"spec.nodeName", "spec.nodeSelector.zone", "metadata.annotations[a/b]", "status.conditions.type", "status.phase", "status.infos"}

// full returns an object with wanted and unwanted fields.
func full() *carp.Carp {
	seconds, text := int64(30), "c"
	object := &carp.Carp{
		ObjectMeta: named("full"),
		Spec:       carp.CarpSpec{NodeName: "node", NodeSelector: map[string]string{"zone": "z", "disk": "ssd"}, Hostname: "h", HostPID: true, TerminationGracePeriodSeconds: &seconds},
		Status: carp.CarpStatus{
			Phase: "Running", Message: "m", StartTime: &metav1.Time{},
			Conditions: []carp.CarpCondition{{Type: "a", Message: "x"}, {Message: "y"}, {Type: "b", Status: "True"}},
			Infos:      []carp.CarpInfo{{A: 1, B: "b", C: &text}},
		},
	}
	object.Annotations = map[string]string{"a/b": "kept", "a": "not"}
	return object
}

// left returns full without the unwanted fields.
func left() *carp.Carp {
	object := full()
	object.Annotations = map[string]string{"a/b": "kept"}
	object.ManagedFields = nil
	object.Spec = carp.CarpSpec{NodeName: "node", NodeSelector: map[string]string{"zone": "z"}}
	object.Status = carp.CarpStatus{
		Phase: "Running", Infos: object.Status.Infos,
		Conditions: []carp.CarpCondition{{Type: "a"}, {}, {Type: "b"}},
	}
	return object
}

func decodedCut(t *testing.T, raw []byte) *carp.Carp {
	t.Helper()
	cut, err := Encoding.Cut([]byte("before"), raw, fieldsOf(t, some...), roomy)
	require.NoError(t, err)
	require.LessOrEqual(t, len(cut), len(raw)+len("before"))
	object := &carp.Carp{}
	require.NoError(t, Encoding.Into(cut[len("before"):], roomy, object))
	return object
}

func TestOnlyWantedFieldsAreLeftOfAMessage(t *testing.T) {
	bare, err := full().Marshal()
	require.NoError(t, err)
	require.Equal(t, left(), decodedCut(t, bare))

	enveloped := full()
	enveloped.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Carp"}
	want := left()
	want.TypeMeta = enveloped.TypeMeta
	require.Equal(t, want, decodedCut(t, served(t, enveloped)))
}

// A message that became shorter needs fewer bytes for its length. Fails if the written length
// differs from the read one, for any number of bytes that a length can have.
func TestLengthsOfAnySizeAreRightWhenTheirMessageWasCut(t *testing.T) {
	for _, size := range []int{0, 1, 90, 127, 128, 16_000, 16_384, 70_000, 3 << 20} {
		object := full()
		object.Spec.Hostname = strings.Repeat("x", size)
		object.Status.Message = strings.Repeat("y", size/2)
		object.ManagedFields[0].Manager = strings.Repeat("z", size)
		bare, err := object.Marshal()
		require.NoError(t, err)
		require.Equal(t, left(), decodedCut(t, bare), size)

		object.Spec.NodeName = strings.Repeat("n", size)
		want := left()
		want.Spec.NodeName = object.Spec.NodeName
		bare, err = object.Marshal()
		require.NoError(t, err)
		require.Equal(t, want, decodedCut(t, bare), size)
	}
}

// The longest form of a length, which no encoder writes and every decoder reads.
func TestALengthWithLeadingZerosIsReadAndWritten(t *testing.T) {
	spec := join(textField(16, "host"), textField(10, "node"))
	length := []byte{byte(len(spec)) | 0x80, 0x80, 0x80, 0x80, 0}
	object := decodedCut(t, join(tagBytes(2, typeBytes), length, spec))
	require.Equal(t, carp.CarpSpec{NodeName: "node"}, object.Spec)
}

func TestAnEntryOfAMapIsFoundByItsLastKey(t *testing.T) {
	entry := func(parts ...[]byte) []byte { return bytesField(2, bytesField(7, join(parts...))) }
	for name, test := range map[string]struct {
		entry []byte
		want  map[string]string
	}{
		"usual":       {entry(textField(1, "zone"), textField(2, "v")), map[string]string{"zone": "v"}},
		"value first": {entry(textField(2, "v"), textField(1, "zone")), map[string]string{"zone": "v"}},
		"two keys":    {entry(textField(1, "disk"), textField(1, "zone"), textField(2, "v")), map[string]string{"zone": "v"}},
		"last other":  {entry(textField(1, "zone"), textField(1, "disk"), textField(2, "v")), nil},
		"no value":    {entry(textField(1, "zone")), map[string]string{"zone": ""}},
		"no key":      {entry(textField(2, "v")), nil},
		"more fields": {entry(textField(1, "zone"), textField(2, "v"), textField(3, "x"), varintField(4, 1)), map[string]string{"zone": "v"}},
	} {
		require.Equal(t, test.want, decodedCut(t, test.entry).Spec.NodeSelector, name)
	}
}

func TestFaultsOnThePathOfACutAreErrorsOrLeftToTheDecoder(t *testing.T) {
	for name, raw := range map[string][]byte{
		"a tag that is cut off":           {0x80},
		"a length that is cut off":        {2<<3 | typeBytes, 0x80},
		"a length beyond the end":         {2<<3 | typeBytes, 5, 1},
		"a field beyond its message":      bytesField(2, []byte{16<<3 | typeBytes, 200}),
		"a group":                         {9<<3 | 3, 9<<3 | 4},
		"a group within":                  bytesField(2, []byte{30<<3 | 3, 30<<3 | 4}),
		"number 0":                        {0, 0},
		"an unknown wire type":            {9<<3 | 7},
		"a key that is none":              bytesField(2, bytesField(7, varintField(1, 1))),
		"an entry beyond itself":          bytesField(2, bytesField(7, []byte{2<<3 | typeBytes, 9})),
		"an envelope that is cut off":     join(magic, []byte{envelopeRaw<<3 | typeBytes, 9}),
		"a field beyond an envelope's":    sealed(raw(tagBytes(2, typeBytes), number(99))),
		"a varint of more than ten bytes": append([]byte{1 << 3}, strings.Repeat("\xff", 11)...),
	} {
		_, err := Encoding.Cut(nil, raw, fieldsOf(t, some...), roomy)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, raw := range map[string][]byte{
		"a message that is a number":     varintField(2, 1),
		"a map that is a number":         bytesField(2, varintField(7, 1)),
		"a string that is a number":      bytesField(2, varintField(10, 1)),
		"a duplicate raw":                sealed(raw(textField(9, "x")), raw()),
		"no raw":                         sealed(typeMeta("v1", "Carp")),
		"a raw that is a number":         sealed(varintField(envelopeRaw, 1)),
		"an envelope with an encoding":   sealed(raw(), textField(envelopeContentEncoding, "gzip")),
		"a type of an envelope's broken": sealed(textField(envelopeTypeMeta, "\xff"), raw()),
	} {
		cut, err := Encoding.Cut(nil, raw, fieldsOf(t, some...), roomy)
		require.NoError(t, err, name)
		require.ErrorIs(t, Encoding.Into(cut, roomy, &carp.Carp{}), wire.ErrMalformed, name)
	}
}

func TestACutCostsNothingButItsBuffer(t *testing.T) {
	fields, buffer := fieldsOf(t, some...), make([]byte, 0, 64<<10)
	bare, err := full().Marshal()
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := Encoding.Cut(buffer, bare, fields, roomy); err != nil {
			t.Fatal(err)
		}
	}))
}

// FuzzProtobufCut compares the result of cutting any bytes with the wanted leaves, which are found
// in another way, and checks that nothing else remains.
func FuzzProtobufCut(f *testing.F) {
	bare, err := full().Marshal()
	require.NoError(f, err)
	f.Add(bare)
	f.Add(served(f, full()))
	f.Add(sealed(typeMeta("v1", "Carp"), raw(bytesField(2, textField(10, "n")), textField(2, ""))))
	f.Add(bytesField(2, bytesField(7, join(textField(1, "zone"), textField(1, "disk")))))
	fields := fieldsOf(f, some...)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		cut, err := Encoding.Cut(nil, raw, fields, tight)
		require.Equal(t, before, string(raw))
		require.LessOrEqual(t, len(cut), len(raw))
		if err != nil {
			return
		}
		wholeLeaves, cutLeaves := leavesOf(raw, fields.Numbers), leavesOf(cut, fields.Numbers)
		require.Equal(t, wholeLeaves.wanted, cutLeaves.wanted)
		require.Empty(t, cutLeaves.others)
		again, err := Encoding.Cut(nil, cut, fields, tight)
		require.NoError(t, err)
		require.Equal(t, cut, again)
	})
}

// leaves are fields with their positions: the wanted ones, and all others.
type leaves struct{ wanted, others []string }

func leavesOf(raw []byte, wanted *wire.Numbers) (l leaves) {
	if isEnvelope(raw) {
		eachField(raw[len(magic):], func(number int32, value []byte, isBytes bool) {
			if number == envelopeRaw && isBytes {
				l.walk("raw", value, wanted)
			}
		})
		return l
	}
	l.walk("", raw, wanted)
	return l
}

func (l *leaves) walk(path string, message []byte, wanted *wire.Numbers) {
	entries := 0
	eachField(message, func(number int32, value []byte, isBytes bool) {
		below, place := wanted.Find(number), fmt.Sprint(path, ".", number)
		switch {
		case below == nil:
			l.others = append(l.others, place)
		case below.Whole || !isBytes:
			l.wanted = append(l.wanted, fmt.Sprintf("%s=%x", place, value))
		case below.IsMap():
			var key []byte
			eachField(value, func(number int32, value []byte, _ bool) {
				if number == entryKey {
					key = value
				}
			})
			if entry := below.FindKey(key); entry != nil {
				l.walk(fmt.Sprint(place, "#", entries), value, entry)
				entries++
			} else {
				l.others = append(l.others, place)
			}
		default:
			l.walk(place, value, below)
		}
	})
}

func BenchmarkCut(b *testing.B) {
	fields, buffer := fieldsOf(b, some...), make([]byte, 0, 64<<10)
	bare, err := full().Marshal()
	require.NoError(b, err)
	b.SetBytes(int64(len(bare)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encoding.Cut(buffer, bare, fields, roomy); err != nil {
			b.Fatal(err)
		}
	}
}
